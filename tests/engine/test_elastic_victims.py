"""Elastic quotas: victims that a first attempt does not find, and those that need not go after all."""

from admitter.engine.commands import Define, Reserve, Submit, Withdraw
from admitter.engine.model import Workload
from tests.engine.builders import engine, evicted, flavor, pods, queue, use, workload
from tests.engine.elastic import asks, gpus, over, quota, quotas, running, runs
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, cpus
from tests.engine.preempting import asks as asks_cpus
from tests.engine.preempting import running as runs_cpus


def test_one_that_may_go_alone_is_found_behind_several_that_are_of_no_use() -> None:
    """A is guaranteed 55. Without b-1, B keeps 12 of its 10; with either small one gone too it would not."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    running(made, "a-0", pods(gpu="40"), name="a")
    for number, size in enumerate((4, 28, 4, 4)):
        running(made, f"b-{number}", pods(gpu=str(size)), name="b", since=number)
    assert over(made, "b") == ["b-3", "b-2", "b-1"]
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-1": "asks"}


def test_what_a_victim_uses_besides_may_be_less_than_its_quota_has() -> None:
    """Memory is contested; of GPUs 9 are left to B by its max, and A uses 3 of its 10."""
    made = quotas(quota("a", {"gpu": 10, "memory": 3}), quota("b", {"gpu": 12, "memory": 10}, {"gpu": 13}))
    running(made, "own", pods(gpu="4", memory="1"), name="b", since=3)
    for number in range(3):
        running(made, f"a-{number}", pods(gpu="1", memory="4"), name="a", since=number)
    made.apply(Submit(Workload("asks", "b", 0, 99, (pods(gpu="4", memory="1"),))))
    assert evicted(made.cycle(100)) == {"a-2": "asks"}


def test_the_same_in_queues_written_by_hand() -> None:
    made = engine(
        flavor("f"),
        queue("a", {"cpu": {"f": "10"}, "memory": {"f": "0"}}, cohort="c"),
        queue("b", {"cpu": {"f": "4..4"}, "memory": {"f": "4"}}, cohort="c", preemption=RECLAIM),
    )
    runs = workload("runs", pods(cpu="1", memory="4"), queue="a")
    made.apply(Reserve("runs", use("a", "f", cpu="1", memory="4"), runs))
    made.apply(Submit(workload("asks", pods(cpu="4", memory="4"), queue="b", created=9)))
    assert evicted(made.cycle(1)) == {"runs": "asks"}


def test_a_pending_eviction_for_a_preemptor_that_is_gone_is_not_needed_for_a_reservation_elsewhere() -> None:
    """The quota was cut meanwhile, so by the plan there is no room for it; but no preemptor waits for it."""
    grace = {"gracePeriod": "1m"}
    made = quotas(
        gpus("a", 4), gpus("b", 0, preemption=grace), DEFAULT, cpus("elsewhere", "4", LOWER, parent="")
    )
    runs(made, "b", 4)
    asks(made, "a", 4)
    runs_cpus(made, "low", 4, "elsewhere")
    asks_cpus(made, "high", 4, "elsewhere", priority=9)
    assert evicted(made.cycle(100)) == {"b-0": "asks", "low": "high"}
    made.apply(Withdraw("asks"))
    made.apply(Define((gpus("a", 2),)))
    assert list(made.ledger.pending_reservations) == ["high"]
    assert not made.ledger.evicting("b-0")

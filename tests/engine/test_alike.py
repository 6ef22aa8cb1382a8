"""What the first of a class got is given to the next one only where that would be found anew."""

import pytest

from admitter.engine.commands import Define, Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import Fungibility, PreemptionPolicy, Queue, WithinQueue
from tests.engine.builders import admitted, engine, flavor, flavors_of, pods, queue, use, workload

SPOT_FIRST = {"cpu": {"spot": "4", "on-demand": "4"}}
SPOT_LAST = {"cpu": {"on-demand": "4", "spot": "4"}}
EVICTS = PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY)


def _waiting(mine: Queue) -> Engine:
    """Four that ask for 2 of a queue with others beside it in its cohort, none of them tried yet."""
    other = queue("other", SPOT_FIRST, cohort="c")
    made = engine(flavor("spot"), flavor("on-demand"), mine, other)
    for number in range(4):
        made.apply(Submit(workload(f"w{number}", pods(cpu="2"), queue="mine", created=number)))
    return made


def _got(made: Engine) -> dict[str, str]:
    plan = made.cycle()
    return {uid: flavors_of(plan, uid)["main"]["cpu"] for uid in admitted(plan)}


@pytest.mark.parametrize(
    "mine",
    [
        queue("mine", SPOT_FIRST),
        queue("mine", SPOT_FIRST, fungibility=Fungibility(preempt=False), preemption=EVICTS),
    ],
    ids=["refused", "passed over"],
)
def test_a_flavor_that_was_full_for_the_last_one_is_tried_first_again(mine: Queue) -> None:
    made = _waiting(mine)
    made.apply(Reserve("runs", use("mine", "spot", cpu="4")))
    assert _got(made) == {"w0": "on-demand", "w1": "on-demand"}
    made.apply(Release("runs"))
    made.apply(Release("w0"))
    assert _got(made) == {"w2": "spot", "w3": "spot"}


def test_a_workload_that_would_borrow_now_looks_at_the_next_flavor() -> None:
    made = _waiting(queue("mine", SPOT_FIRST, cohort="c", fungibility=Fungibility(borrow=False)))
    assert _got(made) == {"w0": "spot", "w1": "spot", "w2": "on-demand", "w3": "on-demand"}


def test_a_workload_that_would_borrow_now_comes_after_one_that_would_not() -> None:
    made = _waiting(queue("mine", {"cpu": {"spot": "4"}}, cohort="c"))
    for number in range(2):
        made.apply(Submit(workload(f"other-{number}", pods(cpu="2"), queue="other", created=9)))
    assert list(_got(made)) == ["w0", "w1", "other-0", "other-1"]


def test_fewer_pods_than_asked_for_are_no_measure_for_the_next_one() -> None:
    made = engine(flavor("spot"), queue("mine", {"cpu": {"spot": "4"}}))
    made.apply(Reserve("runs", use("mine", "spot", cpu="3")))
    for number in range(2):
        made.apply(
            Submit(workload(f"w{number}", pods(4, cpu="1", min_count=1), queue="mine", created=number))
        )
    assert _got(made) == {"w0": "spot"}
    made.apply(Release("w0"))
    made.apply(Release("runs"))
    plan = made.cycle()
    assert [(each.uid, got.pod_sets[0].count) for each, got in plan.admissions] == [("w1", 4)]


def test_another_order_of_flavors_holds_for_those_that_are_left() -> None:
    made = _waiting(queue("mine", SPOT_FIRST))
    made.apply(Reserve("runs", use("mine", "on-demand", cpu="4")))
    assert _got(made) == {"w0": "spot", "w1": "spot"}
    for uid in ("runs", "w0", "w1"):
        made.apply(Release(uid))
    made.apply(Define((queue("mine", SPOT_LAST),)))
    assert _got(made) == {"w2": "on-demand", "w3": "on-demand"}

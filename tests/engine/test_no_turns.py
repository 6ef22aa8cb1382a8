"""Sequences that would go round for ever if a rule were any weaker (docs/design/engine.md, *Preemption*)."""

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import (
    BorrowWithin,
    PreemptionPolicy,
    Reclaim,
    WithinQueue,
)
from tests.engine.builders import (
    admitted,
    cohort,
    engine,
    evicted,
    flavor,
    pods,
    queue,
    use,
    workload,
)
from tests.engine.preempting import DEFAULT, RECLAIM


def comes_to_rest(made: Engine, asking: list[Workload]) -> None:
    """A victim goes at once and waits again: in the end there are none, however often they look."""
    by_uid = {each.uid: each for each in asking}
    evictions = 0
    for cycle in range(30):
        victims = list(evicted(made.cycle()))
        assert not victims or cycle < 20, f"after {evictions} evictions there are more"
        evictions += len(victims)
        for uid in victims:
            made.apply(Release(uid))
            made.apply(Submit(by_uid[uid]))


def test_two_that_borrow_different_things_do_not_evict_each_other_for_ever() -> None:
    """A owns what is contested and borrows the rest; B, more important, has it the other way round."""
    everything = PreemptionPolicy(reclaim=Reclaim.ANY, borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "2"}, "gpu": {"default": "0"}}, cohort="c", preemption=everything),
        queue("b", {"cpu": {"default": "0"}, "gpu": {"default": "0"}}, cohort="c", preemption=everything),
        queue("lender", {"cpu": {"default": "0"}, "gpu": {"default": "2"}}, cohort="c"),
    )
    shape = pods(cpu="2", gpu="2")
    a, b = workload("a", shape, queue="a"), workload("b", shape, queue="b", priority=9)
    made.apply(Reserve("b", use("b", "default", cpu="2", gpu="2"), b))
    made.apply(Submit(a))
    evictions = []
    for _ in range(5):
        plan = made.cycle()
        for victim in evicted(plan):
            evictions.append(victim)
            made.apply(Release(victim))
            made.apply(Submit(b if victim == "b" else a))
    assert len(evictions) <= 1


def test_four_that_evict_each_other_in_turns_by_two_flavors() -> None:
    policy = PreemptionPolicy(WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY, Reclaim.ANY)
    made = engine(
        flavor("a"),
        flavor("b"),
        queue("q0", {"cpu": {"a": "1"}, "gpu": {"b": "3"}}, cohort="c", preemption=policy),
        queue("q2", {"cpu": {"a": "3"}, "gpu": {"b": "4"}}, cohort="c", preemption=policy),
    )
    asking = [
        workload("w4", pods(gpu="5"), queue="q0", priority=2),
        workload("w5", pods(gpu="4", cpu="1"), queue="q0", priority=1),
        workload("w6", pods(gpu="3", cpu="1"), queue="q2"),
        workload("w7", pods(cpu="3"), queue="q2", priority=1),
    ]
    for each in asking:
        made.apply(Submit(each))
    comes_to_rest(made, asking)


def test_one_of_three_reclaims_what_it_owns_and_borrows_the_rest() -> None:
    """Memory is taken back with borrowed CPU; that goes to middle priority, and from there to high."""
    both = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(
        DEFAULT,
        cohort("c", limits={"cpu": {"default": "3"}}),
        queue("p", {"cpu": {"default": "0"}, "memory": {"default": "0"}}, cohort="c", preemption=both),
        queue("r", {"cpu": {"default": "0"}, "memory": {"default": "4"}}, cohort="c", preemption=RECLAIM),
    )
    asking = [
        workload("x", pods(cpu="1", memory="2"), queue="p", priority=2),
        workload("y", pods(cpu="1", memory="3"), queue="r", priority=0),
        workload("z", pods(cpu="3"), queue="p", priority=1),
    ]
    made.apply(Submit(asking[0]))
    assert admitted(made.cycle()) == ["x"]
    for each in asking[1:]:
        made.apply(Submit(each))
    comes_to_rest(made, asking)

"""Elastic quotas: several who are planned into the place of one that has been told to go."""

from admitter.engine.cycle import Engine
from admitter.quotas.elastic import POOL
from tests.engine.builders import admitted, evicted
from tests.engine.elastic import asks, gpus, quotas, runs


def three_in_one_place() -> Engine:
    """There are 10. B's 6 are told to go for `large`; meanwhile B's `guest` takes 2 of the 4 that are free.

    Then `small` asks: the guest is told to go for it, and as 2 are free in fact, it gets in at once.
    """
    made = quotas(gpus("d", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    runs(made, "b", 6)
    asks(made, "d", 8, uid="large")
    assert evicted(made.cycle(100)) == {"b-0": "large"}
    asks(made, "b", 2, uid="guest")
    assert admitted(made.cycle(101)) == ["guest"]
    asks(made, "d", 2, uid="small")
    plan = made.cycle(102)
    assert (evicted(plan), admitted(plan)) == ({"guest": "small"}, ["small"])
    return made


def test_who_was_told_goes_though_his_preemptor_got_in_if_others_are_planned_into_his_place() -> None:
    made = three_in_one_place()
    assert list(made.ledger.holds) == ["large"]
    used = {name: made.ledger.planned.used(name).get((POOL, "gpu"), 0) for name in "bd"}
    assert sum(used.values()) <= 10, "the plan passes no limit"
    assert made.ledger.evicting("guest")


def test_a_promise_is_kept_once_who_was_told_for_it_has_gone() -> None:
    made = three_in_one_place()
    made.goes("b-0")
    made.release("b-0")
    assert evicted(made.cycle(103)) == {}, "the guest was told before, and its time runs"
    made.goes("guest")
    made.release("guest")
    assert admitted(made.cycle(104)) == ["large"]

"""Elastic quotas: promises of places that are not kept yet."""

from tests.engine.builders import admitted, evicted
from tests.engine.elastic import asks, gpus, quotas, runs


def test_a_promise_is_kept_though_somebody_else_gets_in_before_who_was_told_for_him_has_gone() -> None:
    """Of 10, B uses 6, which go for `large`; meanwhile 4 are free: B takes 2, and D those and 2 more back."""
    made = quotas(gpus("d", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    runs(made, "b", 6)
    asks(made, "d", 8, uid="large")
    assert evicted(made.cycle(100)) == {"b-0": "large"}
    asks(made, "b", 2, uid="guest")
    assert admitted(made.cycle(101)) == ["guest"]
    asks(made, "d", 2, uid="small")
    plan = made.cycle(102)
    assert (evicted(plan), admitted(plan)) == ({"guest": "small"}, ["small"]), "2 are free in fact"
    made.cycle(103)
    made.goes("b-0")
    made.release("b-0")
    made.goes("guest")
    made.release("guest")
    assert admitted(made.cycle(104)) == ["large"]


def test_who_was_promised_a_place_gets_it_as_soon_as_who_was_told_for_him_has_gone() -> None:
    """The same, but `small` finds its place in one cycle with the guest's: the guest has to go all the same."""
    made = quotas(gpus("d", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    runs(made, "b", 6)
    asks(made, "d", 8, uid="large")
    made.cycle(100)
    asks(made, "b", 2, uid="guest")
    made.cycle(101)
    asks(made, "d", 2, uid="small")
    made.cycle(102)
    assert list(made.ledger.holds) == ["large"]
    assert made.ledger.evicting("guest"), "by the plan there is no room for it beside the two"

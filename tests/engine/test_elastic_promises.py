"""Elastic quotas: several workloads that are planned into the place of one that has been told to go."""

from admitter.engine.commands import Release, StartEviction
from admitter.engine.cycle import Engine
from admitter.quotas.elastic import POOL
from tests.engine.builders import admitted, evicted
from tests.engine.elastic import asks, gpus, quotas, runs


def three_in_one_place() -> Engine:
    """There are 10. B's 6 are told to go for `large`; meanwhile B's `guest` takes 2 of the 4 that are free.

    Then `small` asks: the guest is told to go for it. The 2 that are free in fact are a part of the place of
    `large`, so `small` has to wait for the guest.
    """
    made = quotas(gpus("d", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    runs(made, "b", 6)
    asks(made, "d", 8, uid="large")
    assert evicted(made.cycle(100)) == {"b-0": "large"}
    asks(made, "b", 2, uid="guest")
    assert admitted(made.cycle(101)) == ["guest"]
    asks(made, "d", 2, uid="small")
    plan = made.cycle(102)
    assert (evicted(plan), admitted(plan)) == ({"guest": "small"}, [])
    return made


def test_a_place_that_waits_does_not_take_the_room_of_another_one() -> None:
    made = three_in_one_place()
    assert sorted(made.ledger.pending_reservations) == ["large", "small"]
    used = {name: made.ledger.planned.used(name).get((POOL, "gpu"), 0) for name in "bd"}
    assert sum(used.values()) <= 10, "the plan passes no limit"
    assert made.ledger.evicting("guest")


def test_a_promise_is_kept_once_what_was_told_for_it_has_gone() -> None:
    made = three_in_one_place()
    made.apply(StartEviction("b-0"))
    made.apply(Release("b-0"))
    assert admitted(made.cycle(103)) == ["large"]
    made.apply(StartEviction("guest"))
    made.apply(Release("guest"))
    assert admitted(made.cycle(104)) == ["small"]

"""What was told to go makes room for its own preemptor alone. Source: docs/design/preemption.md.

The worked example of that page: of 5 CPUs `t` uses 4, which its queue borrows, and `v` of queue `b` uses 1.
`p` of queue `a` takes 1 back, and `t` is told to go in 30 s. `q` of `b` asks for 4: with what `t` would leave
beside `p`, and what `v` uses, these would be there.
"""

from dataclasses import replace

import pytest

from admitter.engine.commands import Evict, Release, StartEviction, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.policy import VictimTerms
from tests.engine.builders import admitted, engine, evicted
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, asks, cpus, running


def full() -> Engine:
    """`t` and `v` use all there is."""
    lends = replace(cpus("lends", "0"), victim_terms=VictimTerms(grace=30))
    made = engine(DEFAULT, lends, cpus("a", "1", RECLAIM), cpus("b", "4", LOWER))
    running(made, "t", 4, "lends", since=1)
    running(made, "v", 1, "b", since=2)
    return made


@pytest.fixture
def told() -> Engine:
    """`t` was told to go for `p`, and `q` has asked."""
    made = full()
    asks(made, "p", 1, "a", created=10)
    plan = made.cycle(10)
    assert evicted(plan) == {"t": "p"}
    assert plan.evictions[0].grace == 30
    asks(made, "q", 4, "b", priority=1, created=11)
    return made


def test_nothing_is_evicted_for_room_that_may_stay_in_use(told: Engine) -> None:
    assert evicted(told.cycle(11)) == {}
    told.apply(Withdraw("p"))
    assert evicted(told.cycle(12)) == {}, "t stays, and v would have gone in vain"
    assert told.waits("q")
    assert not told.ledger.evicting("t")


def test_what_waits_for_that_room_is_tried_again_once_it_is_sure(told: Engine) -> None:
    told.cycle(11)
    assert not told.changed
    told.apply(StartEviction("t"))
    assert evicted(told.cycle(40)) == {"v": "q"}, "t goes now, whatever becomes of p"
    told.apply(Release("v"))
    assert admitted(told.cycle(41)) == []
    told.apply(Release("t"))
    assert sorted(admitted(told.cycle(42))) == ["p", "q"]


def test_what_is_gone_makes_room(told: Engine) -> None:
    told.cycle(11)
    told.apply(Release("t"))
    plan = told.cycle(12)
    assert (admitted(plan), evicted(plan)) == (["p"], {"v": "q"})


def test_what_needs_no_eviction_has_a_place_there(told: Engine) -> None:
    asks(told, "small", 1, "b", priority=2, created=12)
    plan = told.cycle(12)
    assert ("small" in plan.planned, evicted(plan)) == (True, {})
    told.apply(Release("t"))
    assert sorted(admitted(told.cycle(13))) == ["p", "small"]


@pytest.fixture
def placed() -> Engine:
    """`low` of `b` has the place of `v`, `t` was told to go for `p`; `q` of `b` asks for more than `low`."""
    made = full()
    asks(made, "low", 1, "b", priority=1, created=9)
    assert evicted(made.cycle(9)) == {"v": "low"}
    asks(made, "p", 1, "a", created=10)
    assert evicted(made.cycle(10)) == {"t": "p"}
    asks(made, "q", 4, "b", priority=2, created=11)
    assert made.cycle(11).taken_over == {}, "with what t leaves, and without low, there would be 4"
    return made


def test_a_place_does_not_pass_on_to_what_relies_on_room_that_may_stay_in_use(placed: Engine) -> None:
    placed.apply(Withdraw("p"))
    placed.apply(Release("v"))
    assert admitted(placed.cycle(12)) == ["low"], "v went for it, and not in vain"


def test_a_place_passes_on_once_that_room_is_sure(placed: Engine) -> None:
    assert not placed.changed
    placed.apply(StartEviction("t"))
    assert [each.uid for each in placed.cycle(40).taken_over["q"]] == ["low"]
    placed.apply(Release("t"))
    placed.apply(Release("v"))
    assert sorted(admitted(placed.cycle(41))) == ["p", "q"]


def test_after_a_restart_it_is_the_same() -> None:
    """The same state, taken up: `t` was told for `p` before, and nothing else of `q`."""
    made = full()
    before = full()
    asks(before, "p", 1, "a", created=10)
    eviction = before.cycle(10).evictions[0]
    made.apply(Evict("t", eviction.preemptor, eviction.admission, pending=True))
    asks(made, "q", 4, "b", priority=1, created=11)
    assert evicted(made.cycle(11)) == {}

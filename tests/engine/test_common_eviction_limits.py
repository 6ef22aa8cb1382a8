"""How many workloads of a queue, or below a Cohort, are evicted for others has a limit.

Source: docs/design/eviction-limits.md.
"""

from dataclasses import replace
from math import inf

import pytest

from admitter.engine.commands import CancelEviction, Define, Release, SetEvictions, StartEviction
from admitter.engine.cycle import Engine
from admitter.engine.policy import Cohort, EvictionLimit, VictimTerms
from admitter.engine.quota.eviction_limits import LimitOf, LimitReached, Window
from admitter.engine.quota.evictions import EvictionHistory
from admitter.engine.quota.tree import Tree
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, cohort, engine, evicted
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, asks, cpus, running

ONCE = EvictionLimit(1, 3600)
TWICE = EvictionLimit(2, 3600)


def limited(name: str, limit: EvictionLimit | None) -> Cohort:
    return replace(cohort(name), max_evictions=limit)


def lent(
    limit: EvictionLimit | None = None, above: EvictionLimit | None = None, terms: VictimTerms | None = None
) -> Engine:
    """`a` owns 4 CPUs; `b0` to `b3`, of one CPU each, have borrowed them in `b`."""
    borrowing = replace(cpus("b", "0"), max_evictions=limit, victim_terms=terms or VictimTerms())
    made = engine(DEFAULT, limited("c", above), cpus("a", "4", RECLAIM), borrowing)
    for number in range(4):
        running(made, f"b{number}", 1, "b", since=number)
    return made


def gone(made: Engine, uid: str, at: float, *before: tuple[float, str], queue: str = "b") -> None:
    """A victim has gone, as a controller tells it: first the record of its queue has it."""
    made.apply(SetEvictions(queue, (*before, (at, uid))))
    made.apply(StartEviction(uid))
    made.apply(Release(uid))


@pytest.mark.parametrize(
    ("count", "times", "more", "opening"),
    [
        (2, (), 2, 0),
        (2, (100,), 1, 0),
        (2, (100,), 2, 3700),
        (2, (100, 200), 1, 3700),
        (2, (100, 200), 2, 3800),
        (2, (100, 200, 300), 1, 3800),
        (1, (), 2, inf),
        (0, (), 1, inf),
    ],
)
def test_a_window_opens_for_so_many_once_the_oldest_are_out_of_it(
    count: int, times: tuple[float, ...], more: int, opening: float
) -> None:
    assert Window(EvictionLimit(count, 3600), times).opens(more) == opening


def test_of_a_queue_no_more_go_than_its_limit_has_left_and_the_next_when_it_opens() -> None:
    made = lent(ONCE)
    asks(made, "first", 1, "a")
    assert evicted(made.cycle(100)) == {"b3": "first"}
    gone(made, "b3", 102)
    assert admitted(made.cycle(103)) == ["first"]
    asks(made, "second", 1, "a")
    plan = made.cycle(200)
    assert evicted(plan) == {}
    assert plan.refusals["second"].reason is Reason.EVICTIONS_LIMITED
    assert plan.refusals["second"].limited == LimitReached("b", ONCE, 3702, LimitOf.QUEUE)
    assert made.refused_by("a", Reason.EVICTIONS_LIMITED) == 1
    assert made.due == 3702
    assert not made.changed
    assert evicted(made.cycle(3702)) == {"b2": "second"}
    assert made.refused_by("a", Reason.EVICTIONS_LIMITED) == 0


def test_below_a_cohort_the_evictions_of_all_queues_count_at_every_level() -> None:
    made = engine(
        DEFAULT,
        limited("top", TWICE),
        cohort("c", "top"),
        cohort("d", "top"),
        cpus("a", "3", RECLAIM, "top"),
        cpus("b", "0", parent="c"),
        cpus("e", "0", parent="d"),
    )
    running(made, "b0", 1, "b", since=1)
    running(made, "e0", 1, "e", since=2)
    running(made, "b1", 1, "b", since=0)
    asks(made, "first", 2, "a")
    assert evicted(made.cycle(100)) == {"b0": "first", "e0": "first"}
    gone(made, "b0", 100)
    gone(made, "e0", 110, queue="e")
    made.cycle(111)
    asks(made, "second", 1, "a")
    assert made.cycle(112).refusals["second"].limited == LimitReached("top", TWICE, 3700, LimitOf.COHORT)
    assert evicted(made.cycle(3700)) == {"b1": "second"}


def test_what_is_in_flight_counts_before_it_begins_and_not_once_it_is_cancelled() -> None:
    made = lent(ONCE, terms=VictimTerms(grace=500))
    asks(made, "first", 1, "a")
    assert evicted(made.cycle(100)) == {"b3": "first"}
    asks(made, "second", 1, "a", created=100)
    assert made.cycle(101).refusals["second"].reason is Reason.EVICTIONS_LIMITED
    made.apply(CancelEviction("b3"))
    assert made.changed
    assert len(evicted(made.cycle(102))) == 1


def test_a_victim_that_ends_by_itself_before_it_goes_was_not_evicted() -> None:
    made = lent(ONCE, terms=VictimTerms(grace=500))
    asks(made, "first", 1, "a")
    assert evicted(made.cycle(100)) == {"b3": "first"}
    asks(made, "second", 1, "a", created=100)
    made.cycle(101)
    made.apply(Release("b3"))
    plan = made.cycle(102)
    assert admitted(plan) == ["first"]
    assert evicted(plan) == {"b2": "second"}


def test_the_record_tells_when_the_next_may_be_once_it_is_written() -> None:
    made = lent(ONCE)
    asks(made, "first", 1, "a")
    made.cycle(100)
    asks(made, "second", 1, "a", created=100)
    assert made.cycle(101).refusals["second"].limited == LimitReached("b", ONCE, 3701, LimitOf.QUEUE)
    made.apply(SetEvictions("b", ((103, "b3"),)))
    assert made.changed
    assert made.cycle(103).refusals["second"].limited == LimitReached("b", ONCE, 3703, LimitOf.QUEUE)


def test_a_larger_one_goes_where_several_would_be_too_many() -> None:
    borrowing = replace(cpus("b", "0"), max_evictions=ONCE)
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), borrowing)
    running(made, "large", 2, "b", since=0)
    for number in (1, 2):
        running(made, f"small{number}", 1, "b", since=number)
    asks(made, "asks", 2, "a")
    assert evicted(made.cycle(100)) == {"large": "asks"}


def test_what_needs_more_at_once_than_there_may_ever_be_says_so() -> None:
    made = lent(ONCE)
    asks(made, "asks", 2, "a")
    assert made.cycle(100).refusals["asks"].limited == LimitReached("b", ONCE, inf, LimitOf.QUEUE)
    assert made.due is None
    made.apply(Define((replace(cpus("b", "0"), max_evictions=TWICE),)))
    assert evicted(made.cycle(101)) == {"b3": "asks", "b2": "asks"}


def test_a_limit_of_zero_keeps_all() -> None:
    made = lent(above=EvictionLimit(0, 60))
    asks(made, "asks", 1, "a")
    refusal = made.cycle(100).refusals["asks"]
    assert refusal.limited == LimitReached("c", EvictionLimit(0, 60), inf, LimitOf.COHORT)
    assert made.due is None


def test_others_go_where_one_queue_has_none_left() -> None:
    borrowing = replace(cpus("b", "0"), max_evictions=ONCE)
    made = engine(DEFAULT, cpus("a", "2", RECLAIM), borrowing, cpus("d", "0"))
    running(made, "of-b", 1, "b", since=9)
    running(made, "of-d", 1, "d", since=0)
    made.apply(SetEvictions("b", ((50, "earlier"),)))
    asks(made, "asks", 1, "a")
    assert evicted(made.cycle(100)) == {"of-d": "asks"}


def test_in_the_own_queue_the_same_holds() -> None:
    made = engine(DEFAULT, replace(cpus("b", "2", LOWER), max_evictions=ONCE))
    running(made, "low", 2, "b")
    made.apply(SetEvictions("b", ((50, "earlier"),)))
    asks(made, "high", 2, "b", priority=1)
    assert made.cycle(100).refusals["high"].reason is Reason.EVICTIONS_LIMITED
    assert evicted(made.cycle(3650)) == {"low": "high"}


def test_what_waits_behind_the_own_quota_of_others_has_its_other_reason() -> None:
    """The limit is reached, and without it nothing would be evicted either."""
    made = lent(ONCE)
    made.apply(SetEvictions("b", ((50, "earlier"),)))
    asks(made, "asks", 5, "a")
    assert made.cycle(100).refusals["asks"].reason is not Reason.EVICTIONS_LIMITED


def test_a_queue_that_comes_below_a_cohort_brings_its_record() -> None:
    made = lent(above=ONCE)
    made.apply(Define((cpus("d", "0", parent="elsewhere"),)))
    made.apply(SetEvictions("d", ((50, "earlier"),)))
    made.apply(Define((cpus("d", "0"),)))
    asks(made, "asks", 1, "a")
    assert made.cycle(100).refusals["asks"].limited == LimitReached("c", ONCE, 3650, LimitOf.COHORT)
    made.apply(Define((cpus("d", "0", parent="elsewhere"),)))
    assert evicted(made.cycle(101)) == {"b3": "asks"}


def test_what_is_new_in_a_record_flies_no_longer_and_counts_once() -> None:
    tree = Tree()
    tree.set_queue(replace(cpus("b", "0"), max_evictions=TWICE))
    history, node = EvictionHistory(tree), ("queue", "b")
    history.set("b", ((10, "one"),))
    history.decide("one", "b")
    assert history.window(node, 100).times == (10, 100), "it was evicted before, and is again"
    history.set("b", ((10, "one"), (103, "one")))
    assert not history.in_flight
    assert history.window(node, 104).times == (10, 103)
    assert history.window(node, 3610).times == (103,)
    assert not history.set("b", ((10, "one"), (103, "one")))
    assert history.set("b", ())
    assert not [*history.records()]

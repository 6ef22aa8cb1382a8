"""How often a workload is evicted for others has a limit. Source: docs/design/eviction-limits.md."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.commands import Define, Release, Reserve, StartEviction, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import EvictionLimit, VictimTerms
from admitter.engine.quota.eviction_limits import LimitReached, opens
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, engine, evicted, pods, use, workload
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, asks, cpus

TWICE = EvictionLimit(2, 3600)


def runs(made: Engine, uid: str, *evictions: float, name: str = "b", cpu: int = 10) -> None:
    """Something that runs since 0, and was evicted before."""
    who = replace(workload(uid, pods(cpu=str(cpu)), queue=name), evictions=evictions)
    made.apply(Reserve(uid, use(name, "default", cpu=str(cpu)), who))


def lent(limit: EvictionLimit | None = TWICE) -> Engine:
    """Queue b may use the 10 CPUs of a; its workloads are evicted so often at most."""
    return engine(DEFAULT, cpus("a", "10", RECLAIM), replace(cpus("b", "0"), eviction_limit=limit))


@pytest.mark.parametrize(
    ("evictions", "opening"),
    [((), 0), ((100,), 0), ((100, 200), 3700), ((1, 100, 200), 3700), ((100, 4000), 3700), ((7, 7), 3607)],
)
def test_a_window_opens_once_all_but_the_last_are_out_of_it(
    evictions: tuple[float, ...], opening: float
) -> None:
    assert opens(TWICE, evictions) == opening


def test_no_limit_is_always_open_and_a_limit_of_zero_never() -> None:
    assert opens(None, (1.0, 2.0)) == 0
    assert opens(EvictionLimit(0, 3600), ()) == inf


@given(
    st.integers(1, 4), st.integers(0, 20), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=40)
)
def test_no_span_has_more_than_the_limit_and_no_eviction_is_refused_without_need(
    count: int, per: int, tries: list[tuple[int, bool]]
) -> None:
    limit, now, times = EvictionLimit(count, per), 0, list[float]()
    for after, wanted in tries:
        now += after
        within = [time for time in times if now - per < time]
        assert (opens(limit, times) <= now) == (len(within) < count)
        if wanted and opens(limit, times) <= now:
            times.append(now)
    for first in times:
        assert sum(first <= time < first + per for time in times) <= count


def test_one_that_was_evicted_too_often_is_no_candidate_before_the_window_opens() -> None:
    made = lent()
    runs(made, "train", 1000, 2000)
    asks(made, "asks", 10, "a")
    plan = made.cycle(4599)
    assert evicted(plan) == {}
    assert plan.refusals["asks"].reason is Reason.EVICTIONS_LIMITED
    assert plan.refusals["asks"].limited == LimitReached("b", TWICE, 4600)
    assert made.due == 4600
    assert not made.changed
    explained = made.explain("asks")
    assert explained is not None
    assert explained.refusal is not None
    assert explained.refusal.limited == LimitReached("b", TWICE, 4600)
    assert evicted(made.cycle(4600)) == {"train": "asks"}


def test_another_one_goes_in_its_place() -> None:
    made = engine(DEFAULT, cpus("a", "20", RECLAIM), replace(cpus("b", "0"), eviction_limit=TWICE))
    runs(made, "train", 1000, 2000)
    runs(made, "other", 1000)
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(3000)) == {"other": "asks"}


def test_the_reason_is_another_one_if_without_the_limit_it_would_not_fit_either() -> None:
    made = lent()
    runs(made, "train", 1000, 2000)
    runs(made, "more", name="a", cpu=1)
    made.apply(
        Define((replace(cpus("b", "0"), eviction_limit=TWICE, victim_terms=VictimTerms(runtime=9000)),))
    )
    asks(made, "asks", 9, "a")
    plan = made.cycle(3000)
    assert plan.refusals["asks"].reason is Reason.INSUFFICIENT_QUOTA, "it has not run long enough"
    assert made.due == 9000


def test_with_a_limit_of_zero_nothing_is_due() -> None:
    made = lent(EvictionLimit(0, 60))
    runs(made, "train")
    asks(made, "asks", 10, "a")
    plan = made.cycle(100)
    assert plan.refusals["asks"].limited == LimitReached("b", EvictionLimit(0, 60), inf)
    assert made.due is None


def test_in_the_own_queue_the_same_holds() -> None:
    made = engine(DEFAULT, replace(cpus("b", "10", LOWER), eviction_limit=TWICE))
    runs(made, "train", 1000, 2000)
    asks(made, "asks", 10, "b", priority=1)
    assert made.cycle(3000).refusals["asks"].reason is Reason.EVICTIONS_LIMITED
    assert evicted(made.cycle(4600)) == {"train": "asks"}


def test_a_higher_limit_and_none_let_it_go_at_once() -> None:
    for limit in (EvictionLimit(3, 3600), EvictionLimit(2, 1000), None):
        made = lent()
        runs(made, "train", 1000, 2000)
        asks(made, "asks", 10, "a")
        assert evicted(made.cycle(3000)) == {}
        made.apply(Define((replace(cpus("b", "0"), eviction_limit=limit),)))
        assert evicted(made.cycle(3000)) == {"train": "asks"}


def test_it_is_known_between_an_admission_and_what_is_read_of_it() -> None:
    made = lent()
    victim = replace(workload("train", pods(cpu="10"), queue="b"), evictions=(1000.0, 2000.0))
    made.apply(Submit(victim))
    assert admitted(made.cycle(2500)) == ["train"]
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(2501)) == {}
    assert made.due == 4600


def test_an_eviction_under_way_is_of_no_other_preemptor() -> None:
    made = lent(EvictionLimit(1, 3600))
    runs(made, "train")
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(100)) == {"train": "asks"}
    asks(made, "more", 10, "a", created=200)
    assert evicted(made.cycle(101)) == {}
    made.apply(StartEviction("train"))
    made.apply(Release("train"))
    assert admitted(made.cycle(102)) == ["asks"]

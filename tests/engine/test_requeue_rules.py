"""Rules of the table in `queue/requeue.py` are needed: the check of `test_requeue` notices a missing one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from admitter.engine.commands import (
    CancelEviction,
    Define,
    Release,
    Reserve,
    SetEvictions,
    SetWeight,
    Submit,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import (
    BorrowWithin,
    EvictionLimit,
    PreemptionPolicy,
    Reclaim,
    Strategy,
    VictimTerms,
    WithinQueue,
)
from admitter.engine.queue import events
from admitter.engine.queue.requeue import TABLE, Rule
from admitter.engine.queue.selection import Selection
from tests.engine.builders import admitted, cohort, engine, flavor, pods, queue, use, workload
from tests.engine.test_requeue import Few, let_in

LATER: Final = 10.0
LOWER: Final = PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY)
BORROWS: Final = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
GUARANTEED: Final = PreemptionPolicy(borrow=BorrowWithin.GUARANTEED_SHARE)
RECLAIMS: Final = PreemptionPolicy(reclaim=Reclaim.ANY)
RECLAIMS_LOWER: Final = PreemptionPolicy(reclaim=Reclaim.LOWER_PRIORITY)
NEWER: Final = PreemptionPolicy(within=WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)


def runs(made: Engine, uid: str, cores: int, *, queue: str, priority: int = 0, created: float = 0) -> None:
    """A workload that another process has admitted."""
    made.apply(Reserve(uid, use(queue, "f", cpu=str(cores)), asks(uid, cores, queue, priority, created)))


def asks(uid: str, cores: int, queue: str, priority: int = 0, created: float = 0) -> Workload:
    return workload(uid, pods(cpu=str(cores)), queue=queue, priority=priority, created=created)


def with_smaller_share() -> Engine:
    """`a` must keep as much as `b` gets: with more of `a`, a Job of it may go that could not before."""
    made = engine(
        flavor("f"),
        cohort("c", limits={"cpu": {"f": "7"}}, fair=True),
        *(queue(name, {"cpu": {"f": "0"}}, cohort="c", preemption=RECLAIMS_LOWER) for name in "ab"),
    )
    runs(made, "stays", 2, queue="a", priority=2)
    runs(made, "goes", 3, queue="a")
    made.apply(Submit(asks("waits", 3, "b", 1)))
    made.cycle()
    made.apply(Submit(asks("more", 2, "a", 2)))
    assert admitted(made.cycle()) == ["more"]
    return made


def on_smaller_side() -> Engine:
    """The cohort of `waits` has a smaller share without memory of another queue; `waits` asks for none."""
    limits = {"cpu": {"f": "12"}, "memory": {"f": "12Gi"}}
    nothing = {"cpu": {"f": "0"}, "memory": {"f": "0"}}
    made = engine(
        flavor("f"),
        cohort("top", limits=limits, fair=True),
        cohort("side", "top"),
        queue("a", nothing, cohort="top"),
        queue("b", nothing, cohort="side", preemption=RECLAIMS),
        queue("other", nothing, cohort="side"),
    )
    for number in range(9):
        runs(made, f"a{number}", 1, queue="a")
    made.apply(Reserve("memory", use("other", "f", memory="10Gi"), asks("memory", 0, "other")))
    made.apply(Submit(asks("waits", 4, "b")))
    made.cycle()
    made.apply(Release("memory"))
    made.cycle()
    return made


def evicting_borrowers() -> Engine:
    """`a` begins to borrow as another process admits more than there is: `goes` may be reclaimed."""
    made = engine(
        flavor("f"),
        queue("a", {"cpu": {"f": "4"}}, cohort="c"),
        queue("b", {"cpu": {"f": "4"}}, cohort="c", preemption=RECLAIMS_LOWER),
        queue("d", {"cpu": {"f": "0"}}, cohort="c"),
    )
    runs(made, "borrows", 2, queue="d", priority=2)
    runs(made, "goes", 3, queue="a")
    runs(made, "stays", 1, queue="a", priority=2)
    made.apply(Submit(asks("waits", 4, "b", 1)))
    made.cycle()
    runs(made, "more", 1, queue="a", priority=2)
    made.cycle()
    return made


def older() -> Engine:
    """An equal workload is older than what runs, which the first of its class was not."""
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}, preemption=NEWER))
    runs(made, "goes", 4, queue="q", created=5)
    made.apply(Submit(asks("young", 4, "q", created=9)))
    made.cycle()
    made.apply(Submit(asks("waits", 4, "q", created=1)))
    made.cycle()
    return made


def entitled() -> Engine:
    """The worked example of docs/design/engine.md: all of `a` ends, and `b` has taken its place."""
    made = engine(
        flavor("f"),
        queue("a", {"cpu": {"f": "4"}}, cohort="c", preemption=RECLAIMS),
        queue("b", {"cpu": {"f": "4"}}, cohort="c"),
    )
    for number in range(8):
        runs(made, f"a{number}", 1, queue="a")
    made.apply(Submit(asks("waits", 4, "a", created=9)))
    made.cycle()
    for number in range(7):
        made.apply(Submit(asks(f"b{number}", 1, "b")))
        made.apply(Release(f"a{number}"))
        assert admitted(made.cycle()) == [f"b{number}"]
    made.apply(Release("a7"))
    assert len(made.cycle().evictions) == 3 * ("waits" in made.ledger.pending_reservations)
    return made


def run_long_enough() -> Engine:
    """`goes` has run for the 3 seconds that it was granted."""
    defined = queue("q", {"cpu": {"f": "4"}}, preemption=LOWER)
    made = engine(flavor("f"), replace(defined, victim_terms=VictimTerms(runtime=3.0)))
    runs(made, "goes", 4, queue="q")
    made.apply(Submit(asks("waits", 4, "q", 1)))
    made.cycle(0.0)
    made.cycle(3.0)
    return made


def weighs_more() -> Engine:
    """With twice the weight a namespace has a smaller share than the one it takes from."""
    defined = queue("q", {"cpu": {"f": "12"}}, preemption=LOWER)
    made = engine(flavor("f"), replace(defined, by_namespace=True))
    for number in range(12):
        uid, namespace = f"r{number}", f"n{number % 2}"
        running = replace(asks(uid, 1, "q"), namespace=namespace)
        made.apply(Reserve(uid, use("q", "f", cpu="1"), running, namespace=namespace))
    made.apply(Submit(replace(asks("waits", 1, "q"), namespace="n1")))
    made.cycle()
    made.apply(SetWeight("n1", 2))
    made.cycle()
    return made


def owns_more() -> Engine:
    """A queue gets more quota."""
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}))
    made.apply(Submit(asks("waits", 6, "q")))
    made.cycle()
    made.apply(Define((queue("q", {"cpu": {"f": "8"}}),)))
    made.cycle()
    return made


def of_a_victim_that_stays() -> Engine:
    """The eviction of `goes` is refused, and the workload that it was for is withdrawn."""
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}, preemption=LOWER))
    runs(made, "goes", 4, queue="q")
    made.apply(Submit(asks("first", 4, "q", 2)))
    assert len(made.cycle().evictions) == 1
    made.apply(Submit(asks("waits", 4, "q", 1)))
    made.cycle()
    made.apply(CancelEviction("goes"))
    made.apply(Withdraw("first"))
    made.cycle()
    return made


def borrowing_more() -> Engine:
    """`a` borrows already, and then more: without `goes` it keeps what it owns, so `waits` may evict that."""
    made = engine(
        flavor("f"),
        cohort("c", limits={"cpu": {"f": "2"}}),
        queue("a", {"cpu": {"f": "2"}}, cohort="c", preemption=RECLAIMS),
        queue("b", {"cpu": {"f": "0"}}, cohort="c", preemption=BORROWS),
    )
    runs(made, "goes", 2, queue="a")
    runs(made, "stays", 1, queue="a", priority=2)
    made.apply(Submit(asks("waits", 2, "b", 1)))
    made.cycle()
    runs(made, "more", 1, queue="a", priority=2)
    made.cycle()
    return made


def by_guarantee() -> Engine:
    """`d` uses 2 of its own, so less is unused: `a` keeps the 5 it is guaranteed without `goes`."""
    made = engine(
        flavor("f"),
        cohort("c", limits={"cpu": {"f": "3"}}),
        queue("a", {"cpu": {"f": "4"}}, cohort="c", preemption=GUARANTEED),
        queue("b", {"cpu": {"f": "0"}}, cohort="c", preemption=BORROWS),
        queue("d", {"cpu": {"f": "4"}}, cohort="c"),
    )
    runs(made, "goes", 4, queue="a")
    runs(made, "stays", 5, queue="a", priority=2)
    made.apply(Submit(asks("waits", 4, "b", 1)))
    made.cycle()
    runs(made, "more", 2, queue="d")
    made.cycle()
    return made


def losing_room_to_a_claimant() -> Engine:
    """`waits` is about to be admitted, is kept out by a new claim, and then the claimant takes the room."""
    made = engine(
        flavor("f"),
        queue("a", {"cpu": {"f": "0"}}, cohort="c", preemption=LOWER),
        queue("b", {"cpu": {"f": "7"}}, cohort="c", strategy=Strategy.STRICT_FIFO),
    )
    runs(made, "goes", 2, queue="a")
    runs(made, "busy", 3, queue="b")
    runs(made, "one", 1, queue="b")
    made.apply(Submit(asks("first", 2, "b", 3)))
    made.apply(Submit(asks("second", 4, "b", 2)))
    made.apply(Submit(asks("waits", 1, "a", 1)))
    made.cycle()
    made.apply(Release("busy"))
    made.cycle()
    made.apply(Release("first"))
    made.cycle()
    return made


def with_less_memory() -> Engine:
    """`waits` would borrow memory without a weight, until it has to evict `goes` for that."""
    made = engine(
        flavor("f"),
        cohort("c", fair=True),
        queue("a", {"cpu": {"f": "0"}, "memory": {"f": "8Gi"}}, cohort="c"),
        queue(
            "b",
            {"cpu": {"f": "5"}, "memory": {"f": "7Gi..8Gi"}},
            cohort="c",
            preemption=PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY, reclaim=Reclaim.ANY),
            weight=0,
        ),
    )
    runs(made, "lent", 2, queue="a")
    runs(made, "stays", 1, queue="b", priority=1)
    made.apply(Reserve("goes", use("b", "f", cpu="2", memory="6Gi"), asks("goes", 2, "b", 1)))
    made.apply(Submit(workload("waits", pods(cpu="4", memory="2Gi"), queue="b", priority=2)))
    made.cycle()
    made.apply(Submit(workload("more", pods(memory="1Gi"), queue="b", priority=2)))
    made.cycle()
    return made


def with_evictions_left() -> Engine:
    """An eviction was recorded that never began: once that is corrected `waits` may evict `goes`."""
    owner = queue("a", {"cpu": {"f": "2"}}, cohort="c", preemption=RECLAIMS)
    lends = replace(queue("b", {"cpu": {"f": "0"}}, cohort="c"), max_evictions=EvictionLimit(1, 1000))
    made = engine(flavor("f"), owner, lends)
    runs(made, "goes", 2, queue="b")
    made.apply(SetEvictions("b", ((5, "other"),)))
    made.apply(Submit(asks("waits", 2, "a")))
    made.cycle(LATER)
    made.apply(SetEvictions("b", ()))
    made.cycle(LATER)
    return made


STORIES: Final[tuple[tuple[type[events.Event], Rule, Callable[[], Engine]], ...]] = (
    (events.UsageShrank, Selection.entitled, entitled),
    (events.UsageShrank, Selection.on_smaller_side, on_smaller_side),
    (events.UsageGrew, Selection.with_smaller_share, with_smaller_share),
    (events.UsageGrew, Selection.evicting_borrowers, evicting_borrowers),
    (events.UsageGrew, Selection.evicting_borrowers, borrowing_more),
    (events.UsageGrew, Selection.by_guarantee, by_guarantee),
    (events.RoundBegan, Selection.kept_out_by_claims, losing_room_to_a_claimant),
    (events.RoundBegan, Selection.kept_out_by_claims, with_less_memory),
    (events.Arrived, Selection.older, older),
    (events.TimerDue, Selection.all_of_queue, run_long_enough),
    (events.TermsChanged, Selection.all_of_queue, weighs_more),
    (events.EvictionCancelled, Selection.all_of_tree, of_a_victim_that_stays),
    (events.FewerEvictions, Selection.all_of_tree, with_evictions_left),
    (events.Redefined, Selection.all_concerned, owns_more),
)
SEEDS: Final = (
    (events.UsageShrank, Selection.with_room, 5),
    (events.UsageShrank, Selection.by_larger_guarantee, 147),
    (events.UsageShrank, Selection.itself, 537),
    (events.ClaimsLessened, Selection.with_room, 537),
    (events.UsageGrew, Selection.evicting_within, 74),
    (events.RoundBegan, Selection.kept_out_by_claims, 52),
)


def leave_out(patch: pytest.MonkeyPatch, event: type[events.Event], rule: Rule) -> None:
    patch.setitem(TABLE, event, tuple(each for each in TABLE[event] if each is not rule))


@pytest.mark.parametrize(("event", "rule", "story"), STORIES)
def test_what_a_rule_selects_would_be_left_inadmissible_without_it(
    event: type[events.Event], rule: Rule, story: Callable[[], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not story()._state.waiting("waits"), "it is let in"
    leave_out(monkeypatch, event, rule)
    assert let_in(story(), LATER)[1] == ["waits"]


@pytest.mark.parametrize(("event", "rule", "seed"), SEEDS)
def test_beside_other_processes_a_missing_rule_is_noticed(
    event: type[events.Event], rule: Rule, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out(monkeypatch, event, rule)
    assert "could be let in" in Few(seed).play()

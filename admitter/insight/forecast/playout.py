"""One possible future: the decisions at one moment, and when the workloads start that wait then."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from admitter.api.conditions import WaitingReason
from admitter.cache.views import WorkloadView
from admitter.engine.cycle import Engine
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import HOPELESS, Reason
from admitter.insight.forecast.deadline import Deadline, OutOfTimeError, Proceed, without_end
from admitter.insight.forecast.durations import Durations
from admitter.insight.listing import job_name
from admitter.policy.lifecycle import Phase
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.items import Event, Item
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator

Key = tuple[str, str]

BLOCKED = frozenset(map(str, WaitingReason)) - frozenset(map(str, Reason))
"""Reasons for which a Workload does not compete."""


_WAITING = frozenset({Phase.PENDING, Phase.EVICTED})


class Effect(StrEnum):
    """What happens to a Workload at once."""

    ADMITTED = "admitted"
    EVICTED = "evicted"
    WAITS = "waits"
    BLOCKED = "may not compete"
    NEVER = "can never run"


class ExcessUse(NamedTuple):
    """A place of the quota tree that uses more than it may, in the resource's unit."""

    node: Node
    flavor: str
    resource: str
    used: int
    allowed: int

    @property
    def place(self) -> tuple[Node, str, str]:
        """The place and resource, without the amounts."""
        return self.node, self.flavor, self.resource

    @property
    def beyond(self) -> int:
        return self.used - self.allowed


class WorkloadTitle(NamedTuple):
    """What is said of a Workload."""

    key: Key  # namespace, and name of its Job or its own
    queue: str  # the engine's name of its queue
    waiting: str  # why it waits; empty if it does not
    gone: str  # why it lost its quota, if not by the end of its work
    preemptor: Key | None = None  # the Workload that is named there, by its Job's name or its own


@dataclass(frozen=True, slots=True)
class Playout:
    """The result of a playout."""

    effects: Mapping[str, Effect]  # what happens to each Workload at once, by UID
    words: Mapping[str, WorkloadTitle]  # what is said of each then, by UID; empty if it was not requested
    # of the workloads that wait then, in seconds from now, by UID; None: unknown, never, or later than the
    # playout ran
    starts: Mapping[str, float | None]
    # how far it ran, in seconds from now, if the time was over before all had started; None: to its end
    reached: float | None
    excesses: tuple[ExcessUse, ...]  # use above what is allowed then
    unproven: int  # how many workloads have an unproven stated runtime only
    errors: tuple[str, ...]  # objects that can't be used, and why
    waited: frozenset[str] = frozenset()  # the Workloads that waited before these decisions, by UID


def play_out(
    known: Facts,
    whole: Facts,
    changes: Sequence[Change],
    begin: Callable[[], Deadline],
    *,
    words: bool,
    proceed: Proceed = without_end,
) -> Playout:
    """Run the facts forward until all waiting workloads have started, or nothing changes any more.

    The changes come at the first moment. The first decisions are always made; then `begin` starts the time
    that limits how far it runs after them. All facts, `whole`, tell the runtimes of Workloads. `proceed` is
    called at each step, and what it raises during the first decisions ends the playout.
    """
    now, snapshot = known.taken, Snapshot(known)
    durations = Durations(snapshot, whole)
    unproven: set[str] = set()

    def lasts(view: WorkloadView, ran: float) -> float | None:
        found = durations.of(view) if not view.finished else None
        if found is not None and found.unproven:
            unproven.add(view.uid)
        return found.middle(ran) if found is not None else None

    simulator = Simulator(Timeline(now, list(changes), []), snapshot, lasts)
    waited = frozenset(uid for uid, item in simulator.items.items() if item.phase in _WAITING)
    events = {}
    for event in simulator.run(until=now, watch=lambda _: proceed()):
        events[event.key] = event
        proceed()
    items = simulator.items
    effects = {uid: _effect(item) for uid, item in items.items()}
    said = {uid: _words(item, events, simulator) for uid, item in items.items()} if words else {}
    errors = tuple(f"{error.object}: {error.message}" for error in simulator.errors)
    excesses = tuple(over(simulator.engine))
    deadline = begin()

    def go_on() -> None:
        deadline.proceed()
        proceed()

    starts, reached = _starts(simulator, now, go_on)
    return Playout(effects, said, starts, reached, excesses, len(unproven), errors, waited)


def _starts(
    simulator: Simulator, now: float, proceed: Proceed
) -> tuple[dict[str, float | None], float | None]:
    """Run on. Returns when the waiting workloads start; and how far it ran, if not to its end."""
    items = simulator.items.items()
    waiting = {uid: item.view.key for uid, item in items if item.phase in _WAITING}
    left = set(waiting.values())
    starts: dict[Key, float] = {}
    reached: float | None = None
    try:
        for event in simulator.run(watch=lambda _: proceed()) if left else ():
            if event.kind == "Admitted" and event.key in left:
                starts[event.key] = event.time - now
                left.discard(event.key)
                if not left:
                    break
            proceed()
    except OutOfTimeError:
        reached = simulator.now - now
    return {uid: starts.get(key) for uid, key in waiting.items()}, reached


def shown(item: Item) -> Key:
    """A Workload as its user knows it: by its Job's name."""
    name = item.job.name if item.job is not None else ""
    return item.view.namespace, name or job_name(item.view)


def _effect(item: Item) -> Effect:
    if item.phase.runs:
        return Effect.ADMITTED
    if item.waiting is None:
        return Effect.WAITS
    if item.waiting.reason in HOPELESS:
        return Effect.NEVER
    return Effect.BLOCKED if item.waiting.reason in BLOCKED else Effect.WAITS


def _words(item: Item, events: Mapping[Key, Event], simulator: Simulator) -> WorkloadTitle:
    event = events.get(item.view.key)
    gone, preemptor = event.reason if event is not None else "", None
    if event is not None and event.preemptor:
        preemptor = _preemptor(event, simulator)
        gone = f"preempted for {'/'.join(preemptor)}"
    waiting = item.waiting.message if item.waiting is not None else ""
    return WorkloadTitle(shown(item), item.queue or "", waiting, gone, preemptor)


def _preemptor(event: Event, simulator: Simulator) -> Key:
    items = simulator.items.values()
    return next(
        (shown(item) for item in items if item.view.key == event.preemptor), event.preemptor or ("", "")
    )


def over(engine: Engine) -> Iterator[ExcessUse]:
    """Every place that uses more than its `max`, and every tree that uses more than its quota."""
    book, tree = engine.ledger.real, engine.tree
    roots = {tree.root(name) for name in tree.queues}
    for root in sorted(roots):
        for node in tree.nodes(root):
            for (flavor, resource), cell in sorted(book.cells(node).items()):
                beyond = cell.total - cell.limit if cell.limit is not None else 0
                if cell.parent is None:
                    beyond = max(beyond, cell.used - cell.subtree_quota)
                if beyond > 0:
                    yield ExcessUse(node, flavor, resource, cell.total, cell.total - beyond)

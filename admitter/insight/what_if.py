"""What a change of queues, quota, flavors, nodes or Jobs would do: one moment played twice, and compared.

Once as it is, once with the change made at that moment. What either decides at once is compared, then both
are run forward, with the runtimes that are known, to compare when Workloads start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from admitter.api.conditions import WaitingReason
from admitter.controllers.gate import Waiting
from admitter.controllers.messages import queue_title
from admitter.controllers.views import WorkloadView
from admitter.engine.cycle import Engine
from admitter.engine.explain import Reason
from admitter.engine.quota import Node
from admitter.insight.concerned import concerned
from admitter.insight.durations import Durations
from admitter.insight.estimates import SAME_SECONDS
from admitter.insight.playing import Player, in_turn
from admitter.insight.why import HOPELESS
from admitter.simulate.items import Event, Item
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.picture import Facts, Picture
from admitter.simulate.simulator import Simulator

Key = tuple[str, str]

BLOCKED = frozenset(map(str, WaitingReason)) - frozenset(map(str, Reason))
"""Reasons for which a Workload does not even compete."""


class Effect(StrEnum):
    """What happens to a Workload at once."""

    ADMITTED = "admitted"
    EVICTED = "evicted"
    WAITS = "waits"
    BLOCKED = "may not compete"
    NEVER = "can never run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the change does to one Workload at once.

    Attributes:
        key: namespace, and name of its Job or its own.
        queue: the engine's name of its queue.
        effect: what happens.
        why: a sentence.
    """

    key: Key
    queue: str
    effect: Effect
    why: str


@dataclass(frozen=True, slots=True)
class Excess:
    """A place of the quota tree that uses more than it may, and would not without the change.

    Attributes:
        node: a queue or a cohort.
        flavor: by its name.
        resource: by its name.
        used: how much, in the resource's unit.
        allowed: how much it may.
    """

    node: Node
    flavor: str
    resource: str
    used: int
    allowed: int


@dataclass(frozen=True, slots=True)
class Shift:
    """A Workload that starts at another time.

    Attributes:
        key: namespace, and name of its Job or its own.
        before: how long it waits as things are, in seconds from now; None: nobody knows, or for ever.
        after: the same with the change.
        new: whether it comes with the change.
    """

    key: Key
    before: float | None
    after: float | None
    new: bool = False

    @property
    def later(self) -> bool:
        """Whether it waits longer."""
        return self.after is None or (self.before is not None and self.after > self.before)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does.

    Attributes:
        outcomes: at once, by name.
        excesses: quota that is over.
        shifts: of when Workloads start, by name.
        errors: objects that can't be used, and why.
    """

    outcomes: tuple[Outcome, ...]
    excesses: tuple[Excess, ...]
    shifts: tuple[Shift, ...]
    errors: tuple[str, ...]


@dataclass(slots=True)
class _Course:
    """One way that things go.

    Attributes:
        simulator: what they are played in.
        now: when it begins, in seconds since the epoch.
        events: what has happened at once.
        waiting: who waits after that.
        starts: when those start, in seconds from now.
    """

    simulator: Simulator
    now: float
    events: dict[Key, Event] = field(default_factory=dict)
    waiting: set[Key] = field(default_factory=set)
    starts: dict[Key, float] = field(default_factory=dict)

    def begin(self) -> None:
        """Let all happen that happens at once."""
        self.events = {event.key: event for event in self.simulator.run(until=self.now)}
        items = self.simulator.items.values()
        self.waiting = {item.view.key for item in items if item.state in {"Pending", "Preempted"}}

    def go_on(self) -> dict[Key, float]:
        """Go on until all have started who wait, or nothing changes any more; returns when they start."""
        starts: dict[Key, float] = {}
        for event in self.simulator.run() if self.waiting else ():
            if event.kind == "Admitted" and event.key in self.waiting:
                starts.setdefault(event.key, event.time - self.now)
                if len(starts) == len(self.waiting):
                    break
        return starts


def compare(known: Facts, changes: Sequence[Change], play: Player = in_turn) -> Difference:
    """What changes at this moment would do.

    Args:
        known: the cluster as it is.
        changes: of its objects, all at once.
        play: how the two courses are played.
    """
    whole, known = known, concerned(known, changes)
    picture = Picture(known)
    durations = Durations(picture, whole)
    runtimes = {view.uid: durations.of(view) for view in picture.world.workloads if not view.finished}

    def lasts(view: WorkloadView, ran: float) -> float | None:
        found = runtimes.get(view.uid)
        return found.middle(ran) if found is not None else None

    now = known.taken
    before = _Course(Simulator(Timeline(now, [], []), picture, lasts), now)
    after = _Course(Simulator(Timeline(now, list(changes), []), Picture(known), lasts), now)
    for course in (before, after):
        course.begin()
    outcomes = tuple(sorted(_outcomes(before, after), key=lambda each: (each.effect, each.key)))
    errors = tuple(f"{error.object}: {error.message}" for error in after.simulator.errors)
    excesses = tuple(_excesses(before.simulator.engine, after.simulator.engine))
    before.starts, after.starts = play([before.go_on, after.go_on])
    shifts = tuple(sorted(_shifts(before, after), key=lambda shift: shift.key))
    return Difference(outcomes, excesses, shifts, errors)


def shown(item: Item) -> Key:
    """A Workload as its user knows it: by its Job's name."""
    view = item.view
    name = item.job.name if item.job is not None else (view.job[0] if view.job is not None else "")
    return view.namespace, name or view.name


def _outcomes(before: _Course, after: _Course) -> Iterator[Outcome]:
    """Those for whom the change makes a difference at once."""
    without = before.simulator.items
    for uid, item in after.simulator.items.items():
        was = without.get(uid)
        if was is None:  # it came with the change
            yield _outcome(item, Effect.ADMITTED if item.state == "Admitted" else _effect(item), after)
        elif item.state == "Admitted" and was.state != "Admitted":
            yield _outcome(item, Effect.ADMITTED, after)
        elif was.state == "Admitted" and item.state != "Admitted":
            yield _outcome(item, Effect.EVICTED, after)
        elif _effect(item) is not Effect.WAITS and _effect(item) is not _effect(was):
            yield _outcome(item, _effect(item), after)


def _effect(item: Item) -> Effect:
    """What becomes of one that waits."""
    if _hopeless(item.waiting):
        return Effect.NEVER
    blocked = item.waiting is not None and item.waiting.reason in BLOCKED
    return Effect.BLOCKED if blocked else Effect.WAITS


def _hopeless(waiting: Waiting | None) -> bool:
    return waiting is not None and waiting.reason in HOPELESS


def _outcome(item: Item, effect: Effect, course: _Course) -> Outcome:
    event = course.events.get(item.view.key)
    why = item.waiting.message if item.waiting is not None else ""
    if effect is Effect.EVICTED and event is not None:
        why = f"preempted for {'/'.join(_preemptor(event, course))}" if event.preemptor else event.reason
    elif effect is Effect.ADMITTED:
        why = f"in {queue_title(item.queue or '')}"
    return Outcome(shown(item), item.queue or "", effect, why)


def _preemptor(event: Event, course: _Course) -> Key:
    items = course.simulator.items.values()
    return next(
        (shown(item) for item in items if item.view.key == event.preemptor), event.preemptor or ("", "")
    )


def _excesses(before: Engine, after: Engine) -> Iterator[Excess]:
    """What is over with the change, by more than without it."""
    known = {(each.node, each.flavor, each.resource): each.used - each.allowed for each in over(before)}
    for each in over(after):
        if each.used - each.allowed > known.get((each.node, each.flavor, each.resource), 0):
            yield each


def over(engine: Engine) -> Iterator[Excess]:
    """Every place that uses more than its `max`, and every tree that uses more than it has."""
    book, tree = engine.ledger.real, engine.tree
    roots = {tree.root(name) for name in tree.queues}
    for root in sorted(roots):
        for node in tree.nodes(root):
            for (flavor, resource), cell in sorted(book.cells(node).items()):
                beyond = cell.total - cell.limit if cell.limit is not None else 0
                if cell.parent is None:
                    beyond = max(beyond, cell.used - cell.own)
                if beyond > 0:
                    yield Excess(node, flavor, resource, cell.total, cell.total - beyond)


def _shifts(before: _Course, after: _Course) -> Iterator[Shift]:
    """Those that wait in both courses, and start at another time; and those that come with the change."""
    for uid, item in after.simulator.items.items():
        key = item.view.key
        if key not in after.waiting:
            continue
        shift = Shift(shown(item), before.starts.get(key), after.starts.get(key))
        if uid not in before.simulator.items:
            yield replace(shift, new=True)
        elif key in before.waiting and _differ(shift.before, shift.after):
            yield shift


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(before - after) >= SAME_SECONDS

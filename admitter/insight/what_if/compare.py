"""The effects of a change of queues, quota, flavors, nodes or Jobs: two playouts of one moment, compared.

One playout is of the cluster as it is, the other of the cluster with the change. Their first decisions are
compared, then both run forward with the known runtimes, to compare when Workloads start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from admitter.insight.forecast.deadline import NO_LIMIT, Allowance, Proceed, without_end
from admitter.insight.forecast.estimates import SAME_SECONDS
from admitter.insight.forecast.playing import Player, in_turn
from admitter.insight.forecast.playout import Effect, ExcessUse, Key, Playout, WorkloadTitle, play_out
from admitter.insight.what_if.scope import Part, concerned
from admitter.policy.messages import queue_title
from admitter.policy.snapshot import Facts
from admitter.simulate.manifests import Change


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the change does to one Workload at once."""

    key: Key  # namespace, and name of its Job or its own
    queue: str  # the engine's name of its queue
    effect: Effect
    why: str  # in a sentence
    preemptor: Key | None = None  # the Workload that is named there, by its Job's name or its own


@dataclass(frozen=True, slots=True)
class Shift:
    """A Workload that starts at another time."""

    key: Key  # namespace, and name of its Job or its own
    # how long it waits without the change, in seconds from now; None: unknown, or for ever
    before: float | None
    after: float | None  # the same with the change
    new: bool = False  # whether it comes with the change

    @property
    def later(self) -> bool:
        return self.after is None or (self.before is not None and self.after > self.before)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change does."""

    outcomes: tuple[Outcome, ...]  # at once, by name
    excesses: tuple[ExcessUse, ...]  # quota that is over, by more than without the change
    shifts: tuple[Shift, ...]  # of when Workloads start, by name
    until: float | None  # how far from now starts are compared, in seconds; None: to the end of the playouts
    unproven: int  # how many Workloads of the playouts have an unproven stated runtime only
    errors: tuple[str, ...]  # objects that can't be used, and why


def compare(
    known: Facts,
    changes: Sequence[Change],
    play: Player = in_turn,
    processes: int = 1,
    allowed: Allowance = NO_LIMIT,
    proceed: Proceed = without_end,
) -> Difference:
    """What changes of objects, all at once and at this moment, would do to the cluster as it is.

    `play` runs two playouts of each part of the cluster; for more processes it is divided into more parts.
    All playouts together may look for starts for as long as is `allowed`, after their first decisions.
    `proceed` is called at each step. If it raises OutOfTimeError, nothing later is looked for.

    Raises:
        OutOfTimeError: `proceed` has raised it before the first decisions were made.
    """
    parts = concerned(known, changes, processes // 2)
    playing = partial(play_out, proceed=proceed)
    begin = partial(allowed.begin, min(1.0, processes / (2 * len(parts))))
    playouts = play(
        [
            partial(playing, part.known, known, part.changes if changed else (), begin, words=changed)
            for part in parts
            for changed in (True, False)
        ]
    )
    found = [
        _difference(before, after, part)
        for part, after, before in zip(parts, playouts[::2], playouts[1::2], strict=True)
    ]
    outcomes = (outcome for each in found for outcome in each.outcomes)
    shifts = (shift for each in found for shift in each.shifts)
    return Difference(
        tuple(sorted(outcomes, key=lambda each: (each.effect, each.key))),
        tuple(sorted(excess for each in found for excess in each.excesses)),
        tuple(sorted(shifts, key=lambda shift: shift.key)),
        min((each.until for each in found if each.until is not None), default=None),
        sum(each.unproven for each in found),
        tuple(dict.fromkeys(error for each in found for error in each.errors)),
    )


def _difference(before: Playout, after: Playout, part: Part) -> Difference:
    until = min((each.reached for each in (before, after) if each.reached is not None), default=None)
    return Difference(
        tuple(_outcomes(before, after)),
        tuple(each for each in _excesses(before, after) if part.nodes is None or each.node in part.nodes),
        tuple(_shifts(before, after, inf if until is None else until)),
        until,
        before.unproven,
        after.errors,
    )


def _outcomes(before: Playout, after: Playout) -> Iterator[Outcome]:
    """The workloads that the change affects at once."""
    for uid, effect in after.effects.items():
        was, words = before.effects.get(uid), after.words[uid]
        lost = was is Effect.ADMITTED and effect is not Effect.ADMITTED
        if lost and uid not in before.waited:
            why = words.gone or words.waiting
            yield Outcome(words.key, words.queue, Effect.EVICTED, why, words.preemptor)
        elif lost or was is None or (effect is not was and effect is not Effect.WAITS):
            yield Outcome(words.key, words.queue, effect, _why(effect, words))


def _why(effect: Effect, words: WorkloadTitle) -> str:
    return f"in {queue_title(words.queue)}" if effect is Effect.ADMITTED else words.waiting


def _excesses(before: Playout, after: Playout) -> Iterator[ExcessUse]:
    """Excesses that the change causes or increases."""
    known = {each.place: each.beyond for each in before.excesses}
    yield from (each for each in after.excesses if each.beyond > known.get(each.place, 0))


def _shifts(before: Playout, after: Playout, until: float) -> Iterator[Shift]:
    """Workloads that wait in both playouts and start at different times, and those that come with the change.

    Starts after the end of either playout can't be compared.
    """
    for uid, start in after.starts.items():
        key, was = after.words[uid].key, before.starts.get(uid)
        if uid not in before.effects:
            yield Shift(key, was, start, new=True)
        elif uid in before.starts and _differ(was, start) and _first(was, start) <= until:
            yield Shift(key, was, start)


def _first(before: float | None, after: float | None) -> float:
    return min(inf if each is None else each for each in (before, after))


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(before - after) >= SAME_SECONDS

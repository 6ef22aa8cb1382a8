"""Finds preemption loops: with one, a simulation would never end.

Decisions follow from what each workload holds, the waiting workloads and the pending reservations. If such a
state comes back without an arrival, end or change in between, it comes back for ever. Times that are left are
part of the state: of a grace period, a runtime, a minimum or maximum runtime.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from admitter.engine.cycle import Engine
from admitter.engine.tree_cycle import PlannedEviction
from admitter.policy.lifecycle import Phase
from admitter.simulate.items import Item, Key
from admitter.simulate.run_times import left

FEW: Final = 8  # rounds of evictions before states are compared: so many are usual

MANY: Final = 1000  # the simulation stops after so many decisions, and ten more for each workload

LAST: Final = 20  # the most evictions that are named if no state came back: the last ones


@dataclass(frozen=True, slots=True)
class Endless:
    """Evictions without end."""

    time: float  # when they were found, in seconds since the epoch
    repeated: bool  # whether the state came back; else there were only too many evictions
    evictions: tuple[tuple[Key, Key], ...]  # the victim and its preemptor, in order, each pair once


class Rounds:
    """Follows decisions while nothing comes from outside."""

    def __init__(self, engine: Engine, items: Mapping[str, Item], age: Callable[[Item], float]) -> None:
        """No decision yet; `age` is the time that decides a place in a queue, in seconds since the epoch."""
        self._engine = engine
        self._items = items
        self._age = age
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget all states: something has come from outside."""
        self._decisions = self._rounds = self._compared = 0
        self._every = 1
        self._evicting = False
        self._before: tuple[float, Hashable] | None = None
        self._evictions: list[tuple[Key, Key]] = []

    def decided(self, evictions: list[PlannedEviction]) -> None:
        """A decision was made, with these evictions."""
        self._decisions += 1
        for eviction in evictions:
            victim, preemptor = (self._items.get(u) for u in (eviction.victim.holder, eviction.preemptor.uid))
            if victim is not None and preemptor is not None:
                self._evictions.append((victim.view.key, preemptor.view.key))
                self._evicting = True

    def look(self, now: float, pending: Mapping[str, float], *, to_come: bool) -> Endless | None:
        """Whether there is a preemption loop, once all victims are gone that have no time left.

        One earlier state is kept, and replaced by a newer one after 1, 2, 4 and so on rounds: this finds
        loops of any length. Changes that are `to_come` end a loop that takes time. `pending` says when
        pending evictions start, by UID of the victim; times are in seconds since the epoch.
        """
        if self._decisions > MANY + 10 * len(self._items):
            return self._endless(now, repeated=False)
        if not self._evicting:
            return None
        self._evicting = False
        self._rounds += 1
        if self._rounds < FEW:
            return None
        state = self._state(now, pending)
        if self._before is not None and self._before[1] == state and (not to_come or self._before[0] == now):
            return self._endless(now, repeated=True)
        self._compared += 1
        if self._compared >= self._every:
            self._before, self._compared, self._every = (now, state), 0, 2 * self._every
            self._evictions.clear()
        return None

    def _endless(self, now: float, *, repeated: bool) -> Endless:
        evictions = self._evictions if repeated else self._evictions[-LAST:]
        return Endless(now, repeated, tuple(dict.fromkeys(evictions)))

    def _state(self, now: float, pending: Mapping[str, float]) -> Hashable:
        """All that decisions depend on, except definitions, which only change from outside."""
        tree, ledger = self._engine.tree, self._engine.ledger
        items = sorted((uid, item) for uid, item in self._items.items() if item.phase is not Phase.FINISHED)
        ages = {age: place for place, age in enumerate(sorted({self._age(item) for _, item in items}))}
        reserved = {uid: held for uid, _ in items if (held := ledger.held(uid)) is not None}
        starts = sorted({held.since for held in reserved.values()})
        places = {since: place for place, since in enumerate(starts)}
        backed_off = self._engine.returned.lasting.items()
        state: list[Hashable] = [(pair, each.until - now) for pair, each in sorted(backed_off)]
        for uid, item in items:
            state.append(left(item, now))
            held, promised = reserved.get(uid), ledger.pending_reservations.get(uid)
            if held is None:
                state.append(
                    (uid, ages[self._age(item)], promised.admission if promised is not None else None)
                )
                continue
            ran, min_runtime = now - held.since, tree.victim_terms(held.queue).runtime
            counts = ran if item.runtime is not None else min(ran, min_runtime)
            going = (pending[uid] - now, ledger.preemptor(uid)) if uid in pending else None
            state.append((uid, ages[self._age(item)], held.admission, places[held.since], counts, going))
        return tuple(state)

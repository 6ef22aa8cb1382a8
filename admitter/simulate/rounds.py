"""Notices evictions that go round: with such, a simulation would never come to its end.

What is decided follows from what each workload holds, what waits and what is promised. If all of that comes
back, with nothing from outside in between (no arrival, end or change), it comes back for ever. What only the
clock decides is part of it, as time that is left: a grace period, a runtime, a minimum runtime.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from admitter.engine.cycle import Engine
from admitter.engine.tree_cycle import PlannedEviction
from admitter.simulate.items import Item, Key, PendingEviction

FEW: Final = 8
"""So many rounds of evictions are nothing unusual: before that, states are not compared."""

MANY: Final = 1000
"""After so many decisions, and ten for each workload, the end is not waited for."""

LAST: Final = 20
"""How many of the last evictions are named at most if no state came back."""


@dataclass(frozen=True, slots=True)
class Endless:
    """Evictions that go on and on.

    Attributes:
        time: when that was noticed, in seconds since the epoch.
        repeated: whether all is as it was before them; else there were only too many of them.
        evictions: the victim and its preemptor, in order, each pair once.
    """

    time: float
    repeated: bool
    evictions: tuple[tuple[Key, Key], ...]


class Rounds:
    """Follows what is decided while nothing comes from outside."""

    def __init__(self, engine: Engine, items: Mapping[str, Item], age: Callable[[Item], float]) -> None:
        """Prepare.

        Args:
            engine: what decides.
            items: all workloads, by UID.
            age: what the place of one in its queue counts from, in seconds since the epoch.
        """
        self._engine = engine
        self._items = items
        self._age = age
        self.begin_anew()

    def begin_anew(self) -> None:
        """Something has come from outside: what follows may be new."""
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

    def look(self, now: float, told: Mapping[str, PendingEviction], *, to_come: bool) -> Endless | None:
        """Whether evictions go round, once all victims are gone that have no time left.

        One earlier state is kept, and a newer one in its place after 1, 2, 4 and so on rounds: of any length
        of the way round one is found in this way.

        Args:
            now: the time, in seconds since the epoch.
            told: victims that go later, by UID.
            to_come: whether there are changes to come, which end what goes round if it takes time.
        """
        if self._decisions > MANY + 10 * len(self._items):
            return self._endless(now, repeated=False)
        if not self._evicting:
            return None
        self._evicting = False
        self._rounds += 1
        if self._rounds < FEW:
            return None
        state = self._state(now, told)
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

    def _state(self, now: float, told: Mapping[str, PendingEviction]) -> Hashable:
        """All that decisions follow from, but for definitions, which only change from outside."""
        tree, ledger = self._engine.tree, self._engine.ledger
        items = sorted((uid, item) for uid, item in self._items.items() if item.state != "Finished")
        ages = {age: place for place, age in enumerate(sorted({self._age(item) for _, item in items}))}
        reserved = {uid: held for uid, _ in items if (held := ledger.held(uid)) is not None}
        starts = sorted({held.since for held in reserved.values()})
        places = {since: place for place, since in enumerate(starts)}
        backed_off = self._engine.returned.lasting.items()
        state: list[Hashable] = [(pair, each.until - now) for pair, each in sorted(backed_off)]
        for uid, item in items:
            held, hold = reserved.get(uid), ledger.pending_reservations.get(uid)
            if held is None:
                state.append((uid, ages[self._age(item)], hold.admission if hold is not None else None))
                continue
            ran, patience = now - held.since, tree.victim_terms(held.queue).runtime
            left = ran if item.runtime is not None else min(ran, patience)
            going = (told[uid].until - now, ledger.preemptor(uid)) if uid in told else None
            state.append((uid, ages[self._age(item)], held.admission, places[held.since], left, going))
        return tuple(state)

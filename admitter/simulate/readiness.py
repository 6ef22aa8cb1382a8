"""Readiness in a simulation: a Job states when its pods are ready, and a queue how long they may take.

The arithmetic is that of the controller (`policy.readiness`). What states nothing is ready at once.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from admitter.api.conditions import EvictedReason, WaitingReason
from admitter.cache.readiness_status import ReadinessStatus
from admitter.cache.views import at, timestamp
from admitter.cache.world import World
from admitter.engine.model import Workload
from admitter.policy import readiness as arithmetic
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Waiting
from admitter.policy.gate_readiness import limit_of
from admitter.simulate.items import Item

MOST_TRIES: Final = 20
"""After so many evictions in a row a simulation tries a workload no more: else it might never end."""
REASON: Final = EvictedReason.PODS_NOT_READY


class SimulatedReadiness:
    """Which workloads will be late, and which wait for their next try; times are since the epoch."""

    def __init__(self, world: World, catalog: Catalog) -> None:
        self._world = world
        self._catalog = catalog
        self._late: dict[str, float] = {}  # when workloads that run are evicted, by UID
        self._tries: dict[str, float] = {}  # when others are tried again, by UID
        self._known: dict[str, ReadinessStatus] = {}

    @property
    def due(self) -> float | None:
        """When something happens next; None: nothing does."""
        return min((*self._late.values(), *self._tries.values()), default=None)

    def begin_with(self, item: Item, now: float) -> None:
        """Take in what the status of a Workload says that waits for its next try."""
        known = item.view.readiness
        if item.view.admission is None and known.next_try is not None and known.next_try > now:
            self._known[item.view.uid], self._tries[item.view.uid] = known, known.next_try

    def admitted(self, item: Item, queue: str, now: float) -> None:
        """A workload is admitted now: it will be late, or is ready in time and begins a new row."""
        uid = item.view.uid
        known = self._known.pop(uid, ReadinessStatus())
        self._tries.pop(uid, None)
        if item.job is None or item.ready_after is None:
            return
        limit, _ = limit_of(self._world, self._catalog, item.job, queue)
        if limit and item.ready_after > limit:
            self._late[uid] = now + limit
            self._known[uid] = arithmetic.admitted_anew(known, now + limit)

    def stopped(self, uid: str) -> None:
        """A workload does not run any more."""
        self._late.pop(uid, None)

    def gone(self, uid: str) -> None:
        for kept in (self._late, self._tries, self._known):
            kept.pop(uid, None)

    def late(self, now: float) -> list[str]:
        """The workloads that are out of time."""
        return [uid for uid, deadline in self._late.items() if deadline <= now]

    def evicted(self, item: Item, now: float) -> None:
        """A workload is evicted now since it is late: its next try is fixed, or it is given up."""
        assert item.admission is not None
        uid, rules = item.view.uid, self._catalog.lifecycle(item.admission.queue).ready
        before = self._known.get(uid, ReadinessStatus())
        known = arithmetic.after_eviction(before, item.runs[-1].start, now, uid, rules, to_blame=True)
        flavors = {name for each in item.admission.pod_sets for _, name in each.flavors}
        self._known[uid] = replace(known, tried_last=tuple(sorted(flavors)))
        if known.next_try is not None and known.attempts < MOST_TRIES:
            self._tries[uid] = known.next_try

    def tried_again(self, now: float) -> Iterator[str]:
        """The workloads with a next try that has come."""
        for uid, time in list(self._tries.items()):
            if time <= now:
                del self._tries[uid]
                self._known[uid] = replace(self._known[uid], next_try=None)
                yield uid

    def waiting(self, uid: str) -> Waiting | None:
        """Why a workload does not compete that was late; None if it may."""
        known = self._known.get(uid)
        if known is None or (known.next_try is None and not known.gave_up):
            return None
        row = f"evicted {known.attempts} times for readiness"
        if known.gave_up:
            return Waiting(WaitingReason.GAVE_UP, f"given up: {known.gave_up}; {row}")
        assert known.next_try is not None
        words = f"{row}; next try at {timestamp(at(known.next_try))}"
        return Waiting(WaitingReason.PODS_NOT_READY, words)

    def in_turn(self, made: Workload) -> Workload:
        """A workload as it competes: flavors on which it was late come last once."""
        last = self._known.get(made.uid, ReadinessStatus()).tried_last
        return replace(made, tried_last=last) if last else made

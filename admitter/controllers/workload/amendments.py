"""Writes what has changed of evictions that are over, or have started: for which preemptor, or for none.

Previous step: a cycle has reassigned victims, or lets evicted Workloads evict again (`workload.admission`).
Nothing waits for these writes. A next leader that reads an old status lets its Workload evict less until
something ends, so each is tried until it is written or concerns an eviction of the past.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import Json, WorkloadView
from admitter.cache.world import World
from admitter.client.errors import ClusterError, ConflictError, is_retryable
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.controllers.guarded import guarded
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.controllers.workload.writes import PAUSE_SECONDS, REFUSED_SECONDS, StatusWrites
from admitter.engine.tree_cycle import Plan
from admitter.policy import status

NOT_AMENDED: Final = "eviction not amended"


@dataclass(frozen=True, slots=True, eq=False)
class Amendment:
    """What the status of a Workload is to say of one of its evictions."""

    evicted: WorkloadView  # as it was when that was decided
    body: Callable[[WorkloadView], Json]

    def concerns(self, now: WorkloadView | None) -> bool:
        """Whether the eviction is still the last thing that has happened to the Workload."""
        before = self.evicted
        return now is not None and (now.uid, now.admission, now.evicted_for) == (
            *(before.uid, before.admission, before.evicted_for),
        )


class Amendments:
    """Keeps each change until it is written.

    When `on_due` is called, `write` should be soon: something has to be written again.
    """

    def __init__(self, world: World, reasons: WaitingReasons, writes: StatusWrites) -> None:
        """Write with the other decisions, in the same slots."""
        self._world = world
        self._reasons = reasons
        self._writes = writes
        self.on_due: Signal[[]] = Signal()
        self._wanted: dict[Key, Amendment] = {}
        self._due: dict[Key, None] = {}
        self._writing: set[Key] = set()

    def decided(self, plan: Plan, keys: Mapping[str, Key], generation: Callable[[str, Key], int]) -> None:
        """Take in what a cycle has changed.

        `keys` has the keys of Workloads by UID; `generation` gives that of a preemptor's last reservation.
        """
        for each in plan.reassigned:
            key, view = keys[each.preemptor.uid], self._world.workloads.get(keys.get(each.victim, ("", "")))
            if view is not None and view.uid == each.victim and view.evict_at is None and view.preemption:
                uid, why = each.preemptor.uid, view.preemption.why
                by = PreemptionStatus(key, uid, each.admission, generation(uid, key), why=why)
                self._want(view, partial(status.reassigned, by=by))
        for uid in plan.restored:
            view = self._world.workloads.get(keys.get(uid, ("", "")))
            if view is not None and view.uid == uid and view.admission is None and view.preemption:
                self._want(view, status.restored)

    def _want(self, view: WorkloadView, body: Callable[[WorkloadView], Json]) -> None:
        self._wanted[view.key] = Amendment(view, body)
        self._due[view.key] = None

    def write(self, group: asyncio.TaskGroup) -> None:
        """Begin to write what is due; `group` runs the writes."""
        for key in [key for key in self._due if key not in self._writing]:
            del self._due[key]
            self._writing.add(key)
            group.create_task(guarded(self._written(key), "to amend"))

    async def _written(self, key: Key) -> None:
        """Write a change, once; what fails is tried again a little later."""
        try:
            async with self._writes.slots:
                wanted, now = self._wanted.get(key), self._world.workloads.get(key)
                if wanted is not None and now is not None and self._is_due(key, wanted, now):
                    await self._writes.patch(now, wanted.body(now))
                    self._reasons.failures.over(key, NOT_AMENDED)
            if self._wanted.get(key) is wanted:
                self._wanted.pop(key, None)
        except ClusterError as error:
            self._reasons.failed(NOT_AMENDED, key, error)
            passes = isinstance(error, ConflictError) or is_retryable(error)
            pause = PAUSE_SECONDS if passes else REFUSED_SECONDS
            asyncio.get_running_loop().call_later(pause, self._try_again, key)
        finally:
            self._writing.discard(key)
            if key in self._due:
                self.on_due()  # meanwhile it has become another one

    def _is_due(self, key: Key, wanted: Amendment, now: WorkloadView) -> bool:
        readable = key not in self._world.workloads.unreadable
        return readable and wanted.concerns(now) and self._world.owners.owns(key)

    def _try_again(self, key: Key) -> None:
        if key in self._wanted:
            self._due[key] = None
            self.on_due()

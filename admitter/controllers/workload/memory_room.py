"""What large Workloads may take of the process's memory, and how namespaces share it.

A Workload of usual size is always held. Of large ones a namespace may fill a quarter of the room, and what is
beyond waits *parked*: nothing but its name is kept in memory. A small part is each namespace's own, so that a
flood of others leaves it something. What holds quota is never parked: quota bounds it.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import structlog

from admitter.cache.room import fits
from admitter.cache.views import WorkloadView
from admitter.cache.world import workload_path
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.source import Source
from admitter.client.store import Key, Unreadable
from admitter.client.transport import Transport

SMALL_BYTES: Final = 2_048
"""Of the JSON of a spec; that of a usual Job has 200."""
LOOKED_AGAIN_SECONDS: Final = 2.0

log = structlog.get_logger(__name__)


class MemoryRoom:
    """Parks what there is no room for, and takes it in when there is."""

    def __init__(self, workloads: Source[WorkloadView], transport: Transport) -> None:
        """Limit from now on what the store of Workloads keeps."""
        self._source = workloads
        store = self._store = workloads.store
        self._transport = transport
        self._held: dict[Key, int] = {}
        self._of: Counter[str] = Counter()
        self._parked: dict[Key, int] = {}
        store.keep = self.keep
        store.listen(self._changed)

    def keep(self, view: WorkloadView) -> WorkloadView:
        """A Workload as far as there is room for it."""
        self._release(view.key)
        if view.size <= SMALL_BYTES:
            return view
        if view.finished:
            return _without_pod_sets(view)
        if view.admission is None and (
            view.parked or not fits(self._of[view.namespace], self._of.total(), view.size)
        ):
            self._parked[view.key] = view.size
            return _without_pod_sets(replace(view, parked=True))
        self._held[view.key] = view.size
        self._of[view.namespace] += view.size
        return view

    async def run(self) -> None:
        """Read what is parked again when there is room for it; ends when it is cancelled."""
        while True:
            await asyncio.sleep(LOOKED_AGAIN_SECONDS)
            await self.look_again()

    async def look_again(self) -> None:
        """Read of what is parked as much as there is room for now."""
        for key in list(self._next()):
            try:
                raw = await self._transport.get(workload_path(key))
            except NotFoundError:
                continue
            except ClusterError as error:
                log.warning("parked Workload not read", namespace=key[0], name=key[1], error=str(error))
                return
            view = self._source.seen(raw)
            if view is not None and not isinstance(view, Unreadable):
                self._store.take_again(view)

    def _next(self) -> Iterator[Key]:
        """What is parked and fits now, all of it together."""
        planned, total = Counter(self._of), self._of.total()
        for key, size in self._parked.items():
            if fits(planned[key[0]], total, size):
                planned[key[0]] += size
                total += size
                yield key

    def _release(self, key: Key) -> None:
        self._parked.pop(key, None)
        size = self._held.pop(key, 0)
        if size:
            self._of[key[0]] -= size
            if not self._of[key[0]]:
                del self._of[key[0]]

    def _changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if new is None and old is not None:
            self._release(old.key)


def _without_pod_sets(view: WorkloadView) -> WorkloadView:
    return replace(view, spec=view.spec | {"podSets": []})

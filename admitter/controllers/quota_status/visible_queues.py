"""What the status of a LocalQueue tells its namespace of the ClusterQueue (docs/design/tenants.md).

One ClusterQueue may have a thousand LocalQueues, and each admission changes what all of them could say. So
these figures are made anew every few seconds only, and of those LocalQueues of which nothing else has changed
only a few are written each time.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Final

from admitter.cache.views import Json, ObjectView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource
from admitter.policy.catalog import Catalog

REFRESH_SECONDS: Final = 5.0
REFRESHED: Final = 20
"""So many LocalQueues at most are written each time for nothing but these figures."""
SHOWN: Final = 10
"""Workloads of a LocalQueue with a position in its status."""
FIELD: Final = "clusterQueue"

Amounts = dict[str, int]
"""Of a resource in a flavor, by the name of the field."""


class VisibleQueues:
    """Makes the field `clusterQueue` of LocalQueues, and has it written now and then."""

    def __init__(
        self,
        world: World,
        catalog: Catalog,
        engine: Engine,
        counts: Callable[[ObjectView], Json],
        touch: Callable[[Key], None],
    ) -> None:
        """Nothing is due.

        `counts` makes the fields of a ClusterQueue that a namespace may see, without its line; `touch` has a
        LocalQueue written that says what is no longer so.
        """
        self._world = world
        self._catalog = catalog
        self._engine = engine
        self._counts = counts
        self._touch = touch
        self._made: dict[Key, Json] = {}
        self._of_queue: dict[str, tuple[Json, dict[str, int]]] = {}
        self._acted: dict[Key, None] = {}
        self._stale: dict[Key, None] = {}
        self._refreshed: set[Key] = set()
        self._due = asyncio.Event()

    def of(self, local_queue: ObjectView) -> Json | None:
        """What a LocalQueue says of its ClusterQueue; None if it says nothing.

        It is the same until the next `refresh`.
        """
        name = str(local_queue.spec["clusterQueue"])
        view, entry = self._world.cluster_queues.get(("", name)), self._catalog.queue(name)
        if view is None or entry.hidden or not entry.selects(self._world.labels_of(local_queue.namespace)):
            return None
        if local_queue.key not in self._made:
            if view.name not in self._of_queue:
                places = {uid: place for place, uid in enumerate(self._engine.line(view.name), start=1)}
                self._of_queue[view.name] = (self._counts(view), places)
            counts, places = self._of_queue[view.name]
            line = sorted(self._line(local_queue.key, places))[:SHOWN] if places else []
            shown = [{"name": name, "position": place} for place, name in line]
            self._made[local_queue.key] = {**counts, "line": shown}
        return self._made[local_queue.key]

    def _line(self, local_queue: Key, places: dict[str, int]) -> Iterator[tuple[int, str]]:
        for key in self._world.workloads_by_queue.get(local_queue):
            workload = self._world.workloads.get(key)
            if workload is not None and workload.uid in places:
                yield places[workload.uid], workload.name

    def changed(self, cluster_queue: str) -> None:
        """The figures of a ClusterQueue may be others: its LocalQueues may say what is no longer so."""
        for key in self._world.local_queues_by_cluster_queue.get(cluster_queue):
            self.defer(key)

    def defer(self, local_queue: Key) -> None:
        """A LocalQueue has its turn in one of the next refreshes."""
        self._stale.setdefault(local_queue)
        self._due.set()

    def hasten(self, local_queue: Key) -> None:
        """A LocalQueue was written with figures that may be old: it has its turn in the next refresh."""
        self._acted.setdefault(local_queue)
        self._due.set()

    def forget(self) -> None:
        """Make all figures anew when they are asked for: a follower's may be old."""
        self._made.clear()
        self._of_queue.clear()

    def take_turn(self, local_queue: Key) -> bool:
        """Whether a LocalQueue may be written for nothing but these figures; its turn is over then."""
        if local_queue not in self._refreshed:
            return False
        self._refreshed.discard(local_queue)
        return True

    async def run(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(REFRESH_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Make all figures anew from now on, and give the next few LocalQueues their turn.

        Those with a change of their own since the last refresh come first, and leave half of the turns.
        """
        self.forget()
        order = list(dict.fromkeys(chain(islice(self._acted, REFRESHED // 2), self._stale, self._acted)))
        self._acted, self._stale = {}, dict.fromkeys(order[REFRESHED:])
        # One that was deleted between its turn and its write will take no turn.
        self._refreshed = {key for key in self._refreshed if self._world.local_queues.get(key) is not None}
        for key in order[:REFRESHED]:
            self._refreshed.add(key)
            self._touch(key)
        if not self._stale:
            self._due.clear()


def amounts(engine: Engine, cluster_queue: str) -> Iterator[tuple[FlavorResource, Amounts]]:
    """Quota and use of a ClusterQueue, in the order of what it counts, be it listed or inherited."""
    definition = engine.tree.queues.get(cluster_queue)
    for key in definition.keys() if definition is not None else ():
        cell = engine.ledger.real.cell(cluster_queue, key)
        yield (
            key,
            {
                "quota": cell.quota.minimum,
                "max": cell.potential_available(),
                "used": cell.used,
                "borrowed": max(0, cell.used - cell.subtree_quota),
                "free": max(0, cell.room()),
            },
        )

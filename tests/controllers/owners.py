"""Several owners of shards at one API server, in a time of their own, with watches as slow as a test wants.

Every tree has room for ten, whatever its queues say; owners admit as long as they believe that there is room.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any, Self, cast

from admitter.cache.views import parse_object, parse_workload
from admitter.cache.world import OWN, World
from admitter.client.transport import Transport
from admitter.controllers.succession import ACCOUNT, WORKLOADS, Succession, epoch_annotation
from admitter.election.elector import ElectionListener, Elector
from admitter.election.leases import Clocks, LeaseCache, LeaseSettings
from tests.client.virtual_time import VirtualTime
from tests.election.lease_server import NOON, LeaseServer

Json = dict[str, Any]
ROOM = 10
NUMBER = 8
KINDS = ("cohorts", "clusterqueues", "elasticquotas", "compositeelasticquotas", "workloads")


class Server(LeaseServer):
    """Keeps Leases, Cohorts, ClusterQueues and Workloads.

    Attributes:
        objects: by kind and name, as they are.
        truth: trees as they really are; it has no shards of its own.
        wrong: every admission by which quota was given away twice, in words.
        admitted: the queue of each admission, and the shard of the process that decided it.
    """

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(time, Random(1))
        self.objects: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self.truth = World()
        self.truth.shards.spread(NUMBER)
        self.wrong: list[str] = []
        self.admitted: list[tuple[str, int]] = []
        self.epochs: dict[str, str] = {}
        self.owners: list[Owner] = []
        self._revision = 100
        self._edited = 0
        self._gone_on: set[tuple[str, str]] = set()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        kind = path.rpartition("/")[2]
        if path == ACCOUNT:
            return {"metadata": {"resourceVersion": "1", "annotations": dict(self.epochs)}}
        if path not in {f"{OWN}/{kind}" for kind in KINDS}:
            return await super().get(path, query)
        await self._way()
        assert path == WORKLOADS or "fieldSelector" not in (query or {})
        items = list(self.objects[kind].values())
        state = (query or {}).get("fieldSelector", "").rpartition("=")[2]
        items = [item for item in items if not state or item["status"]["state"] == state]
        answer = {"items": items, "metadata": {"resourceVersion": str(self._revision)}}
        await self._way()
        return answer

    async def patch(self, path: str, body: Json) -> Json:
        if path != ACCOUNT:
            return await super().patch(path, body)
        await self._way()
        self.epochs.update(body["metadata"]["annotations"])
        return {}

    def put(self, kind: str, name: str, spec: Json, status: Json | None = None) -> None:
        """A user makes or changes an object; owners learn of it when their watches bring it."""
        self._revision += 1
        before = self.objects[kind].get(name)
        changed = before is None or before["spec"] != spec
        generation = (before["metadata"]["generation"] if before else 0) + changed
        metadata = {
            "name": name,
            "namespace": "team" if kind == "workloads" else "",
            "uid": f"uid-{name}",
            "resourceVersion": str(self._revision),
            "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        raw = {"metadata": metadata, "spec": spec, "status": status or {}}
        self.objects[kind][name] = raw
        _take(self.truth, kind, raw)
        for owner in self.owners:
            owner.learns(kind, raw)

    def admit(self, queue: str, term: tuple[int, int], known: int) -> None:
        """An owner's admission arrives.

        Args:
            queue: which it is of.
            term: the shard and the epoch in which it was decided.
            known: up to which change of the trees was known to the process that decided it.
        """
        shard, epoch = term
        if self.epochs[epoch_annotation(shard)] != str(epoch):
            return
        root = self.truth.shards.root(queue)
        if shard != self.truth.shards.of_tree(root):
            if root in self._gone_on:
                self.wrong.append(f"{queue} in {root[1]}, where another owner has gone on")
        elif known >= self._edited:
            self._gone_on.add(root)
            if used_in(self.truth, root) >= ROOM:
                self.wrong.append(f"{queue} in {root[1]}, which is full")
        self.admitted.append((queue, shard))
        assignment = {"name": "main", "count": 1, "flavors": {}, "usage": {}}
        status = {"state": "Admitted", "admission": {"clusterQueue": queue, "podSets": [assignment]}}
        spec = {"queueName": queue, "podSets": [], "active": True}
        self.put("workloads", f"w-{len(self.objects['workloads'])}", spec, status)

    def reshape(self, kind: str, name: str, spec: Json) -> None:
        """As `put`; owners may go on by the trees as they were until they know of it."""
        self.put(kind, name, spec)
        self._gone_on.clear()
        self._edited = self._revision


def _take(world: World, kind: str, raw: Json) -> None:
    if kind == "workloads":
        world.workloads.apply(parse_workload(raw))
    else:
        store = world.cohorts if kind == "cohorts" else world.cluster_queues
        store.apply(parse_object(raw))


def used_in(world: World, root: tuple[str, str]) -> int:
    """How many are admitted in a tree, as far as is known."""
    queues = [workload.admission.queue for workload in world.workloads if workload.admission is not None]
    return sum(world.shards.root(queue) == root for queue in queues)


class Owner:
    """One replica: the real succession and elector around a decider of one line.

    Attributes:
        world: what it knows.
        lag: for how many seconds its watches are late.
        slowness: for how many seconds its admissions are on their way.
    """

    def __init__(self, name: str, server: Server, time: VirtualTime) -> None:
        self.name, self.shard_count = name, NUMBER
        self.world = World()
        self.world.shards.spread(NUMBER)
        self.lag, self.slowness = 0.05, 0.05
        self._time, self._server = time, server
        self._clocks = Clocks(lambda: time.now, lambda: NOON, time.sleep)
        self._elector: Elector | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self._coming: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self.succession = Succession(self.world, self, cast("Transport", server), self, self._clocks)

    @property
    def lease_cache(self) -> LeaseCache | None:
        return self._elector.cache if self._elector is not None else None

    def start(self, listener: ElectionListener) -> None:
        transport = cast("Transport", self._server)
        self._elector = Elector(transport, self.name, NUMBER, LeaseSettings(), listener, self._clocks)
        self._spawn(self._elector.run())

    def publish(self, shard: int, notes: dict[str, str]) -> None:
        assert self._elector is not None
        self._elector.publish(shard, notes)

    def release(self, shard: int) -> None:
        assert self._elector is not None
        self._elector.release(shard)

    def lead(self, epochs: dict[int, int]) -> None:
        self.world.shards.epochs.update(epochs)

    def refresh(self) -> None:
        """What it knows is in force at once."""

    def abandon(self) -> None:
        """It plans nothing."""

    async def drained(self) -> None:
        if self._writing:
            await asyncio.wait(set(self._writing))

    def learns(self, kind: str, raw: Json) -> None:
        async def learn() -> None:
            await self._time.sleep(self.lag)
            _take(self.world, kind, raw)

        self._spawn(learn())

    def _spawn(self, doing: Any) -> None:
        task = asyncio.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def run(self) -> None:
        self._spawn(self.succession.run())
        while True:
            for view in sorted(self.world.cluster_queues, key=lambda view: view.name):
                self._decide(view.name)
            await self._time.sleep(0.1)

    def _decide(self, queue: str) -> None:
        shards = self.world.shards
        root, term = shards.root(queue), shards.epoch_of(queue)
        coming = sum(n for each, n in self._coming.items() if shards.root(each) == root)
        if term is not None and used_in(self.world, root) + coming < ROOM:
            self._coming[queue] += 1
            self._spawn(self._count(queue))
            task = asyncio.create_task(self._admit(queue, term, max(shards.versions)))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _admit(self, queue: str, term: tuple[int, int], known: int) -> None:
        await self._time.sleep(self.slowness)
        self._server.admit(queue, term, known)

    async def _count(self, queue: str) -> None:
        """Count what is decided until the watch has brought it."""
        await self._time.sleep(self.slowness + self.lag + 0.01)
        self._coming[queue] -= 1

    def stop(self) -> None:
        for task in (*self._tasks, *self._writing):
            task.cancel()


class Owners:
    """Some owners at one server."""

    def __init__(self, *names: str) -> None:
        self.time = VirtualTime()
        self.server = Server(self.time)
        self.all = {name: Owner(name, self.server, self.time) for name in names}
        self.server.owners = list(self.all.values())
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(owner.run()) for owner in self.all.values()]
        return self

    async def __aexit__(self, *_: object) -> None:
        for owner in self.all.values():
            owner.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        await self.time.pass_until(self.time.now + seconds)

    def owner_of(self, queue: str) -> Owner:
        """The process that decides about a queue's tree, as it really is."""
        shard = self.server.truth.shards.of_queue(queue)
        (owner,) = [owner for owner in self.all.values() if shard in owner.world.shards.epochs]
        return owner

"""A controller on such a server: what it decides is written by the code that writes it anywhere."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any

from admitter.api.conditions import FinishedReason
from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import WorkloadView, parse_object, parse_workload
from admitter.cache.world import workload_path
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle
from admitter.engine.model import Admission
from admitter.policy import status
from admitter.policy.lifecycle import TRANSITIONS, Phase
from admitter.policy.status import Clock
from tests.apiserver.server import clock
from tests.restarts.server import TEAM, WATCH_SECONDS, Server

Json = dict[str, Any]

CLASSES = {"low": -10, "high": 10, "urgent": 100}
QUIET_SECONDS = 4.0
"""After so long all has been written that was decided, if nothing fails."""
RECOVERY_SECONDS = 40.0
"""After so long what failed has been tried again, and what comes late has come."""


def thing(name: str, spec: Json, namespace: str = "") -> Json:
    """An object of any kind that a controller reads."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata | {"generation": 1}, "spec": spec}


def queue(name: str, cpu: int, strategy: str = "BestEffortFIFO", **preemption: Any) -> Json:
    """A ClusterQueue of the one cohort."""
    quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": str(cpu)}}]}]
    spec = {"namespaceSelector": {}, "cohort": "all", "resources": quota, "preemption": preemption}
    return thing(name, spec | {"queueingStrategy": strategy})


def asks(queue_name: str, cpu: int, priority: str = "") -> Json:
    """What a Workload asks for."""
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": str(cpu)}}]
    spec: Json = {"queueName": queue_name, "podSets": pod_sets, "active": True}
    if priority:
        spec |= {"priorityClassName": priority, "priority": CLASSES[priority]}
    return spec


class Controller:
    """One that leads, until it is killed."""

    def __init__(self, server: Server, queues: list[Json], now: Clock = clock) -> None:
        self.server = server
        self.app = App(server, now, Random(1))
        self.lifecycle = AppLifecycle(self.app)
        self.world, self.engine = self.app.world, self.app.engine
        self._define(queues)
        for raw in server.workloads.values():
            self.world.workloads.apply(parse_workload(raw))
        server.listen(self._changed)
        self.lifecycle.routing.follow()
        server.epoch += 1
        self.app.admissions.lead({0: server.epoch})
        admissions, reasons = self.app.admissions.run(), self.app.reasons.run()
        self._tasks = [asyncio.create_task(admissions), asyncio.create_task(reasons)]

    def _define(self, queues: list[Json]) -> None:
        world = self.world
        world.namespaces.apply(parse_namespace(thing(TEAM, {})))
        world.flavors.apply(parse_object(thing("any", {})))
        for name, value in CLASSES.items():
            world.priority_classes.apply(parse_object(thing(name, {}) | {"value": value}))
        for each in queues:
            name = each["metadata"]["name"]
            world.cluster_queues.apply(parse_object(each))
            world.local_queues.apply(parse_object(thing(name, {"clusterQueue": name}, TEAM)))

    def _changed(self, _plural: str, before: Json | None, after: Json | None) -> None:
        asyncio.get_running_loop().call_later(WATCH_SECONDS, self._seen, before, after)

    def _seen(self, before: Json | None, after: Json | None) -> None:
        if after is not None:
            self.world.workloads.apply(parse_workload(after))
        elif before is not None:
            self.world.workloads.delete((TEAM, before["metadata"]["name"]), before["metadata"]["uid"])

    async def kill(self) -> None:
        """It stops at once, whatever it was writing."""
        self.server.ignore(self._changed)
        self.lifecycle.stop_timers()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def view(self, name: str) -> WorkloadView:
        """A Workload, as the API server has it."""
        return parse_workload(self.server.workloads[name])

    async def stop_what_must(self) -> None:
        """Begin to evict what has had its time, or has been paused."""
        eviction = self.app.evictions
        for view in sorted(self.world.workloads, key=lambda view: view.name):
            if view.admission is not None and not view.evicting and eviction.wanted(view):
                await eviction.converge(view, None)

    async def gone(self, name: str) -> None:
        """No pod of an evicted Workload is left: it gives its quota back."""
        await self.app.evictions.converge(self.view(name), None)

    def finish(self, name: str) -> None:
        """A Workload that runs comes to its end."""
        body = status.finished(self.view(name), FinishedReason.JOB_SUCCEEDED, "done", clock())
        self.server.write(f"{workload_path((TEAM, name))}/status", body)

    def admitted(self) -> set[str]:
        """The names of the Workloads that hold quota."""
        return {name for name in self.server.workloads if self.view(name).admission is not None}

    def keeps_to_the_table(self) -> None:
        """Every phase of a Workload has followed from the one before by a step."""
        steps = {move for moves in TRANSITIONS.values() for move in moves.items()}
        assert self.server.moves <= steps | {(phase, phase) for phase in Phase}

    def agrees(self) -> None:
        """At rest the statuses say what the engine knows: which places are kept, and what makes room."""
        self.keeps_to_the_table()
        views = [self.view(name) for name in self.server.workloads]
        waiting = [view for view in views if view.admission is None and not view.finished]
        places = {
            view.uid: view.reservation.admission for view in waiting if view.reservation.admission is not None
        }
        kept = {uid: hold.admission for uid, hold in self.engine.ledger.pending_reservations.items()}
        assert places == kept, "the places"
        written = {
            view.name
            for view in views
            if view.preemption is not None and (view.evicting or view.evict_at is not None)
        }
        going = {view.name for view in views if self.engine.ledger.evicting(view.uid)}
        assert written == going, "what makes room"

    def decisions(self) -> dict[str, object]:
        """What the statuses say of decisions, by the name of the Workload."""
        return {name: _decided(self.view(name)) for name in sorted(self.server.workloads)}


def _decided(view: WorkloadView) -> tuple[object, ...]:
    goes = view.evicting or view.evict_at is not None
    by = (view.preemption.key, view.preemption.generation) if view.preemption is not None and goes else None
    return view.finished, view.admission, view.evicting, view.evict_at, by, view.reservation


def used(controllers: Mapping[str, Admission | None]) -> int:
    """How much CPU some admissions hold together, in thousandths."""
    held = [admission for admission in controllers.values() if admission is not None]
    return sum(amount for admission in held for _, amount in admission.usage)


async def quiet(seconds: float = QUIET_SECONDS) -> None:
    """Let everything be written that was decided."""
    await asyncio.sleep(seconds)

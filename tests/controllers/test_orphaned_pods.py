"""Workloads, Jobs and pods come by watches that know nothing of each other: in the end no quota is lost.

A Job is started on an admission, its pods run, and all of that is deleted, in an order of chance. A
controller that follows, and leads from some moment on, hears of each kind in the order of what happened, but
of one kind sooner or later than of another.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import orjson
import pytest

from admitter.cache.namespace_views import parse_namespace
from admitter.cache.pod_views import parse_pod
from admitter.cache.views import parse_job, parse_object, parse_workload
from admitter.client.errors import NotFoundError
from admitter.client.transport import Transport
from admitter.controllers.app import App
from admitter.controllers.routing import Routing
from admitter.controllers.workload.orphaned_pods import LATER_SECONDS
from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    FLAVORS_ANNOTATION,
    JOB_LABEL,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from tests.apiserver.loop import run
from tests.controllers.test_busy_admission import NOON
from tests.restarts.server import TEAM
from tests.restarts.team import queue, thing
from tests.scale import scaled

Json = dict[str, Any]
JOBS = ("a", "b", "c")
PODS = 2
STORIES = scaled(45, 1500)
KINDS = ("workload", "job", "pod")
REQUESTS: Json = {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}
ADMISSION: Json = {
    "clusterQueue": "q",
    "podSets": [{"name": "main", "count": PODS, "flavors": {"cpu": "any"}, "usage": {"cpu": str(PODS)}}],
}


class Cluster:
    """What there is, and what of it a controller has heard.

    Attributes:
        there: the objects, by kind and name.
        unheard: by kind, changes of which the controller has yet to hear: the object, and whether it is gone.
    """

    def __init__(self) -> None:
        self.there: dict[tuple[str, str], Json] = {}
        self.unheard: Mapping[str, deque[tuple[Json, bool]]] = {kind: deque() for kind in KINDS}
        self._version = 10
        self.app = App(cast("Transport", self), lambda: NOON, Random(1))
        self.world = self.app.world
        self.world.namespaces.apply(parse_namespace(thing(TEAM, {})))
        self.world.flavors.apply(parse_object(thing("any", {})))
        self.world.cluster_queues.apply(parse_object(queue("q", 100)))
        self.world.local_queues.apply(parse_object(thing("q", {"clusterQueue": "q"}, TEAM)))
        Routing(self.app).follow()
        self.books = self.app.engine.ledger

    def put(self, kind: str, name: str, *, metadata: Json | None = None, **content: Any) -> Json:
        """An object comes or changes."""
        self._version += 1
        before = self.there.get((kind, name)) or thing(name, {}, TEAM)
        versioned = {"uid": before["metadata"].get("uid"), "resourceVersion": str(self._version)}
        made = {**before, **content, "metadata": before["metadata"] | versioned | (metadata or {})}
        self.there[kind, name] = made
        self.unheard[kind].append((made, False))
        return made

    def remove(self, kind: str, name: str) -> None:
        """An object goes, if it is there."""
        gone = self.there.pop((kind, name), None)
        if gone is not None:
            self.unheard[kind].append((gone, True))

    def hear(self, kind: str) -> None:
        """The next change of a kind reaches the controller."""
        if not self.unheard[kind]:
            return
        found, gone = self.unheard[kind].popleft()
        metadata = found["metadata"]
        if kind == "workload":
            store, view = self.world.workloads, parse_workload(found)
        elif kind == "job":
            store, view = self.world.jobs, parse_job(found)  # type: ignore[assignment]
        else:
            store, view = self.world.pods, parse_pod(found)  # type: ignore[assignment]
        if gone:
            store.delete((TEAM, metadata["name"]), metadata["uid"])
        else:
            store.apply(view)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        await asyncio.sleep(0.01)
        if path.endswith("/pods"):
            name = (query or {})["labelSelector"].partition("=")[2]
            pods = (each for (kind, _), each in self.there.items() if kind == "pod")
            return {"items": [pod for pod in pods if pod["metadata"]["labels"][WORKLOAD_LABEL] == name]}
        found = self.there.get(("job" if "/jobs/" in path else "workload", path.rsplit("/", 1)[-1]))
        if found is None:
            raise NotFoundError(404, "NotFound", path)
        return found

    async def patch(self, path: str, *_: object, **__: object) -> Json:
        raise NotFoundError(404, "NotFound", path)

    def counted(self) -> int:
        """CPUs that the controller counts as in use."""
        return sum(self.books.real.used("q").values()) // 1000

    def known_to_run(self) -> int:
        """CPUs of the pods of which the controller has heard."""
        return sum(amount for pod in self.world.pods if pod.live for _, amount in pod.usage.usage) // 1000


class Story:
    """One Job, from its creation until nothing is left of it."""

    def __init__(self, cluster: Cluster, name: str, chance: Random) -> None:
        self._cluster, self._name, self._chance = cluster, name, chance
        uid = f"uid-{name}-{chance.getrandbits(32)}"
        self._job = cluster.put("job", name, metadata={"uid": uid}, spec=_job_spec(suspend=True))
        self._workload = parse_job(self._job).workload
        self._uid = f"uid-{self._workload}"
        self._steps = [self._admit, self._start, *[self._pod] * PODS]
        ends = [self._delete_workload, self._delete_job, *[self._end_pod] * (2 * PODS)]
        chance.shuffle(ends)
        self._steps += ends
        self._pods: list[str] = []

    def go_on(self) -> bool:
        """Do the next step; False if there is none."""
        if self._steps:
            self._steps.pop(0)()
        return bool(self._steps)

    def _admit(self) -> None:
        metadata = {"uid": self._uid, "labels": {JOB_LABEL: self._job["metadata"]["uid"]}}
        owner = {"kind": "Job", "name": self._name, "uid": self._job["metadata"]["uid"], "controller": True}
        pod_sets = [{"name": "main", "count": PODS, "requests": {"cpu": "1"}}]
        spec = {"queueName": "q", "podSets": pod_sets}
        self._cluster.put(
            "workload", self._workload, spec=spec, metadata=metadata | {"ownerReferences": [owner]}
        )
        self._cluster.put("workload", self._workload, status={"admission": ADMISSION})

    def _marks(self) -> Json:
        return {
            "labels": {WORKLOAD_LABEL: self._workload, CLUSTER_QUEUE_LABEL: "q"},
            "annotations": {
                WORKLOAD_UID_ANNOTATION: self._uid,
                FLAVORS_ANNOTATION: orjson.dumps({"cpu": "any"}).decode(),
            },
        }

    def _start(self) -> None:
        self._cluster.put("job", self._name, spec=_job_spec(suspend=False, marks=self._marks()))

    def _pod(self) -> None:
        name = f"{self._name}-{len(self._pods)}"
        self._pods.append(name)
        self._cluster.put("pod", name, metadata=self._marks() | {"uid": name}, spec=REQUESTS)
        if self._chance.random() < 0.5:
            self._cluster.put("pod", name, status={"phase": "Running"})

    def _end_pod(self) -> None:
        if self._pods:
            self._cluster.remove("pod", self._pods.pop())

    def _delete_workload(self) -> None:
        self._cluster.remove("workload", self._workload)

    def _delete_job(self) -> None:
        self._cluster.remove("job", self._name)


def _job_spec(*, suspend: bool, marks: Json | None = None) -> Json:
    template = {"metadata": marks or {}, "spec": REQUESTS}
    return {"suspend": suspend, "parallelism": PODS, "completions": PODS, "template": template}


async def tell(seed: int) -> int:
    """Tell stories side by side; returns how often pods were there that no Workload covered."""
    chance, cluster, orphaned = Random(seed), Cluster(), 0
    deciding = asyncio.create_task(cluster.app.admissions.run())
    stories = [Story(cluster, name, chance) for name in JOBS]
    leads_at, moment = chance.randrange(60), 0
    while stories or any(cluster.unheard.values()):
        moment += 1
        if moment == leads_at:
            cluster.app.admissions.lead({0: 1})
        if stories and chance.random() < 0.4:
            story = chance.choice(stories)
            if not story.go_on():
                stories.remove(story)
        else:
            cluster.hear(chance.choice(KINDS))
        if chance.random() < 0.2:
            await asyncio.sleep(chance.choice((0.0, 0.05, LATER_SECONDS)))
        assert cluster.counted() >= cluster.known_to_run(), f"seed {seed}: pods that run count"
        covered = {view.uid for view in cluster.world.workloads if view.admission is not None}
        orphaned += any(pod.workload_uid not in covered for pod in cluster.world.pods)
    if leads_at >= moment:
        cluster.app.admissions.lead({0: 1})
    await asyncio.sleep(3 * LATER_SECONDS)
    assert cluster.counted() == 0, f"seed {seed}: nothing is left, and nothing counts"
    assert not any(cluster.books.planned.used("q").values()), f"seed {seed}: nor is it planned"
    deciding.cancel()
    await asyncio.gather(deciding, return_exceptions=True)
    return orphaned


@pytest.mark.parametrize("part", range(4))
def test_no_quota_is_lost_in_whatever_order_watches_tell_of_it(part: int) -> None:
    orphaned = sum(run(tell(seed)) for seed in range(part * STORIES, (part + 1) * STORIES))
    assert orphaned > STORIES, "pods without their Workload are what is tried"

"""A cluster in which Workloads come, are admitted, finish and go, and are as many at every moment.

No API server: `Api` stands in for one, and tells changes to its watchers. So informers, stores and
pictures are the real ones, and an hour takes as long as they take.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
from kubernetes_asyncio.client import Configuration

from admitter.cache.views import parse_job
from admitter.cache.world import World
from admitter.client.store import Key, key_of
from admitter.client.transport import HttpTransport
from admitter.names import JOB_LABEL, QUEUE_LABEL, WORKLOAD_LABEL
from admitter.policy.snapshot import plural_of, sources_of

Json = dict[str, Any]

MIDNIGHT: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
QUEUES_A_COHORT: Final = 6
HOLDERS: Final = 4
"""At least so many of each queue hold quota; a tenth, if that is more."""
MOVE: Final = 10
"""Every so many rounds a queue goes with all that is in it, and another comes."""
_CONTAINERS: Final = [{"resources": {"requests": {"cpu": "1"}}}]
_READ: Final = [(source.path, source.selector) for source in sources_of(World()).values()]
"""Collections, and the label that those of it have that are followed; empty: all are."""


class Api(HttpTransport):
    """Answers lists and watches from memory, one watch a collection and label, and believes each user's name.

    A token is a user's name; one that begins with `admin` may list everything, others in their
    namespace.
    """

    def __init__(self) -> None:
        super().__init__(Configuration(host="http://127.0.0.1:1"), repeats=False)
        self.objects: defaultdict[str, dict[Key, Json]] = defaultdict(dict)
        self._version = 0
        self._said: dict[tuple[str, str], list[bytes]] = {read: [] for read in _READ}
        self._pieces: dict[tuple[str, str], asyncio.Queue[bytes]] = {read: asyncio.Queue() for read in _READ}

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """All of a collection that have a label; there are no Leases, and no watch of them."""
        label = (query or {}).get("labelSelector", "")
        if (path, label) in self._said:
            self._said[path, label].clear()
        return {
            "items": [each for each in self.objects[plural_of(path)].values() if _has(each, label)],
            "metadata": {"resourceVersion": str(self._version)},
        }

    async def create(self, path: str, body: Json, _: Mapping[str, str] | None = None) -> Json:
        """The name of a user, or whether the user may list something."""
        spec = body["spec"]
        if path.endswith("tokenreviews"):
            return {"status": {"authenticated": True, "user": {"username": spec["token"]}}}
        namespace = spec["resourceAttributes"]["namespace"]
        return {"status": {"allowed": spec["user"].startswith("admin") or spec["user"] == namespace}}

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch that does not end."""
        yield self._watch(path, query.get("labelSelector", ""))

    async def _watch(self, path: str, label: str) -> AsyncIterator[bytes]:
        while True:
            yield await self._pieces[path, label].get()

    def put(self, plural: str, made: Json) -> None:
        """Make or change an object."""
        self._version += 1
        key, known = key_of(made["metadata"]), self.objects[plural]
        made["metadata"]["resourceVersion"] = str(self._version)
        if key in known:
            made["metadata"]["creationTimestamp"] = known[key]["metadata"]["creationTimestamp"]
        self._say(plural, "MODIFIED" if key in known else "ADDED", made)
        known[key] = made

    def drop(self, plural: str, key: Key) -> None:
        """Delete an object; one that there is not is no error."""
        gone = self.objects[plural].pop(key, None)
        if gone is not None:
            self._version += 1
            gone["metadata"]["resourceVersion"] = str(self._version)
            self._say(plural, "DELETED", gone)

    def _say(self, plural: str, kind: str, item: Json) -> None:
        for (path, label), said in self._said.items():
            if plural_of(path) == plural and _has(item, label):
                said.append(orjson.dumps({"type": kind, "object": item}))

    def tell(self) -> None:
        """Let watchers know what has happened, all of it together, and that nothing else has."""
        heard = {"metadata": {"resourceVersion": str(self._version)}}
        for read, said in self._said.items():
            said.append(orjson.dumps({"type": "BOOKMARK", "object": heard}))
            self._pieces[read].put_nowait(b"\n".join(said) + b"\n")
            said.clear()


def _has(item: Json, label: str) -> bool:
    """Whether an object has a label; it need have none if that is empty."""
    return not label or label in (item["metadata"].get("labels") or {})


GUESTS: Final = "guests"
"""A namespace with Jobs in all queues."""


class _Job(NamedTuple):
    """A Job, and the Workload and the pod that are made for it."""

    namespace: str
    name: str
    workload: str
    made: Json


@dataclass
class _Queue:
    """A queue, with its namespace of the same name, and the Jobs in it in the order in which they came."""

    name: str
    cohort: str
    waiting: deque[_Job] = field(default_factory=deque)
    holding: deque[_Job] = field(default_factory=deque)
    finished: deque[_Job] = field(default_factory=deque)


class Turnover:
    """Plays rounds of a second each.

    Attributes:
        api: where it happens.
        now: the time, in seconds since the epoch.
        lasting: a queue that stays; all others go in turns.
    """

    def __init__(self, queues: int, workloads: int) -> None:
        self.api = Api()
        self.now = MIDNIGHT
        self._serial = 0
        self._rounds = 0
        self._size = workloads // queues
        self._holders = max(HOLDERS, self._size // 10)
        self.api.put("resourceflavors", self._object("flavor", "default", spec={}))
        self.api.put("namespaces", self._object("namespace", GUESTS))
        for number in range(-(-queues // QUEUES_A_COHORT)):
            self.api.put("cohorts", self._object("cohort", f"cohort-{number}", spec={}))
        self._queues = [self._open(place) for place in range(queues)]
        self.lasting = self._queues[0].name

    def play(self) -> None:
        """A second passes: in each queue what finished goes; one finishes, one starts, one comes."""
        self.now += 1
        self._rounds += 1
        if self._rounds % MOVE == 0:
            place = 1 + self._rounds // MOVE % (len(self._queues) - 1)
            self._close(self._queues[place])
            self._queues[place] = self._open(place)
        for queue in self._queues:
            while queue.finished:
                self._go(queue.finished.popleft())
            queue.finished.append(queue.holding.popleft())
            self._end(queue.finished[-1])
            self._admit(queue)
            self._come(queue)
        self.api.tell()

    def _open(self, place: int) -> _Queue:
        """A queue comes with its namespace, and Workloads in it."""
        self._serial += 1
        made = _Queue(f"team-{self._serial:07}", f"cohort-{place // QUEUES_A_COHORT}")
        quota = {"name": "default", "quota": {"min": str(self._holders)}}
        resources = [{"name": "cpu", "flavors": [quota]}]
        spec = {"cohort": made.cohort, "namespaceSelector": {}, "resources": resources}
        self.api.put("namespaces", self._object("namespace", made.name))
        self.api.put("clusterqueues", self._object("queue", made.name, spec=spec))
        for namespace in (made.name, GUESTS):
            local = self._object("local", made.name, namespace, spec={"clusterQueue": made.name})
            self.api.put("localqueues", local)
        for _ in range(self._size):
            self._come(made)
        for _ in range(self._holders):
            self._admit(made)
        return made

    def _close(self, queue: _Queue) -> None:
        """A queue goes, with its namespace and all Workloads in it."""
        for job in (*queue.waiting, *queue.holding, *queue.finished):
            self._go(job)
        for namespace in (queue.name, GUESTS):
            self.api.drop("localqueues", (namespace, queue.name))
        self.api.drop("clusterqueues", ("", queue.name))
        self.api.drop("namespaces", ("", queue.name))

    def _come(self, queue: _Queue) -> None:
        self._serial += 1
        namespace = GUESTS if self._serial % 3 == 0 else queue.name
        spec = {"suspend": True, "template": {"spec": {"containers": _CONTAINERS}}}
        made = self._object("job", f"job-{self._serial:07}", namespace, spec=spec, status={})
        made["metadata"]["labels"] = {QUEUE_LABEL: queue.name}
        self.api.put("jobs", made)
        queue.waiting.append(_Job(namespace, made["metadata"]["name"], parse_job(made).workload, made))
        self._write_workload(queue.waiting[-1], {"state": "Pending", "conditions": []})

    def _admit(self, queue: _Queue) -> None:
        job = queue.waiting.popleft()
        queue.holding.append(job)
        self.api.put("jobs", job.made | {"spec": job.made["spec"] | {"suspend": False}})
        usage = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "usage": {"cpu": "1"}}
        admission = {"clusterQueue": queue.name, "podSets": [usage]}
        conditions = [self._condition(kind) for kind in ("QuotaReserved", "Admitted")]
        status = {"state": "Admitted", "conditions": conditions, "admission": admission}
        self._write_workload(job, status)
        self._write_pod(job, "Running")

    def _end(self, job: _Job) -> None:
        over = {"conditions": [self._condition("Complete")]}
        self.api.put("jobs", job.made | {"spec": job.made["spec"] | {"suspend": False}, "status": over})
        before = self.api.objects["workloads"][job.namespace, job.workload]["status"]
        conditions = [*before["conditions"], self._condition("Finished")]
        self._write_workload(job, before | {"state": "Finished", "conditions": conditions})
        self._write_pod(job, "Succeeded")

    def _go(self, job: _Job) -> None:
        self.api.drop("pods", (job.namespace, job.name))
        self.api.drop("workloads", (job.namespace, job.workload))
        self.api.drop("jobs", (job.namespace, job.name))

    def _write_workload(self, job: _Job, status: Json) -> None:
        uid = job.made["metadata"]["uid"]
        pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
        spec = {"queueName": job.made["metadata"]["labels"][QUEUE_LABEL], "priority": 0, "podSets": [pod_set]}
        made = self._object("workload", job.workload, job.namespace, spec=spec, status=status)
        owner = {"kind": "Job", "name": job.name, "uid": uid, "controller": True}
        made["metadata"] |= {"labels": {JOB_LABEL: uid}, "ownerReferences": [owner]}
        self.api.put("workloads", made)

    def _write_pod(self, job: _Job, phase: str) -> None:
        spec, status = {"containers": _CONTAINERS}, {"phase": phase}
        made = self._object("pod", job.name, job.namespace, spec=spec, status=status)
        made["metadata"]["labels"] = {WORKLOAD_LABEL: job.workload}
        self.api.put("pods", made)

    def _condition(self, kind: str) -> Json:
        return {"type": kind, "status": "True", "lastTransitionTime": _moment(self.now), "reason": kind}

    def _object(self, kind: str, name: str, namespace: str = "", **body: Json) -> Json:
        uid = f"{kind}/{namespace}/{name}"
        metadata = {"namespace": namespace, "name": name, "uid": uid, "creationTimestamp": _moment(self.now)}
        return {"metadata": metadata, **body}


def _moment(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

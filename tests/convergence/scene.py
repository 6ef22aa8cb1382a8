"""The whole controller in this process, on an API server in memory, and what it must come to."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, TypeVar

from admitter.cache.views import WorkloadView, parse_workload
from admitter.cache.world import OWN
from admitter.client.errors import FENCE, api_error
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle
from admitter.controllers.succession import ACCOUNT, Candidacy
from admitter.election.elector import ElectionListener
from admitter.election.lease_lock import Term
from admitter.engine.model import Admission
from admitter.names import EPOCH_ANNOTATION, NAMESPACE, QUEUE_LABEL, SERVICE_ACCOUNT
from admitter.policy.growing import extra_usage
from admitter.policy.held import left_of
from admitter.quantities.amounts import to_amount
from tests.apiserver.job_controller import JobController, is_live, is_owned
from tests.apiserver.server import ApiServer, clock

Json = dict[str, Any]

TEAM = "team"
T = TypeVar("T")

JOBS = f"/apis/batch/v1/namespaces/{TEAM}/jobs"
CLASSES = {"low": -10, "high": 10}


class Alone:
    """The only process that there is: the one shard is its own as soon as it asks."""

    shard_count = 1
    lease_cache = None

    def start(self, listener: ElectionListener) -> None:
        listener.acquired(0, Term(handed_over=False))

    def publish(self, _shard: int, _notes: dict[str, str]) -> None:
        """No other process reads them."""

    def release(self, _shard: int) -> None:
        raise AssertionError("no other process is to have it")


class Scene:
    """Queues of one Cohort, each with its own quota of CPU, and a LocalQueue of the same name for each.

    Attributes:
        server: the API server.
        jobs: makes pods.
        excesses: moments at which more was admitted, or ran, than there is.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        self.server = ApiServer(seconds=0.01)
        self.jobs = JobController(self.server)
        self.excesses: list[str] = []
        self._total = sum(cpu.values()) * 1000
        self._views: dict[tuple[str, str], Any] = {}
        self._running: asyncio.Task[None] | None = None
        self._define("/api/v1/namespaces", "default")
        self._define("/api/v1/namespaces", TEAM)
        self._define("/api/v1/namespaces", NAMESPACE)
        self._define(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", SERVICE_ACCOUNT)
        self._define(f"{OWN}/resourceflavors", "any")
        self._define(f"{OWN}/cohorts", "all")
        for name, value in CLASSES.items():
            self._define("/apis/scheduling.k8s.io/v1/priorityclasses", name, value=value)
        for name, cores in cpu.items():
            quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": str(cores)}}]}]
            spec = {"namespaceSelector": {}, "cohort": "all", "resources": quota, "preemption": preemption}
            self._define(f"{OWN}/clusterqueues", name, spec=spec)
            self._define(f"{OWN}/namespaces/{TEAM}/localqueues", name, spec={"clusterQueue": name})
        self.server.policies.append(self._fenced)
        self.server.listen(self._changed)

    def _define(self, path: str, name: str, **content: Any) -> None:
        self.server.make(path, {"metadata": {"name": name}, **content})

    def _fenced(self, plural: str, before: Json | None, after: Json | None) -> None:
        """Refuse admissions of a controller that leads no more."""
        if plural != "workloads" or before is None or after is None:
            return
        admission = (after.get("status") or {}).get("admission")
        if admission and admission != (before.get("status") or {}).get("admission"):
            notes = self.server.find(ACCOUNT)["metadata"].get("annotations") or {}
            if str(admission.get("epoch")) != notes.get(EPOCH_ANNOTATION):
                raise api_error(422, {"reason": "Invalid", "message": FENCE})

    def _changed(self, plural: str, _before: Json | None, _after: Json | None) -> None:
        """Add up at each change what is admitted, and what runs."""
        if plural in {"workloads", "pods"}:
            pods = [pod for pod in self.server.objects["pods"].values() if is_live(pod)]
            running = sum(_cpu(pod["spec"]) for pod in pods if not pod["spec"].get("schedulingGates"))
            admitted = sum(map(self.used, self._queues()))
            if max(running, admitted) > self._total:
                self.excesses.append(f"{clock():%T}: {admitted} admitted, {running} run")

    async def start(self, seed: int = 1, candidacy: Candidacy | None = None) -> None:
        """Start the controller; by default it leads at once, for ever."""
        app = App(self.server, clock, Random(seed))
        self._running = asyncio.create_task(AppLifecycle(app).run(candidacy or Alone()))

    async def kill(self) -> None:
        """End it at once, whatever it was writing."""
        assert self._running is not None
        assert not self._running.done(), self._running.result()
        self._running.cancel()
        await asyncio.wait([self._running])

    def submit(
        self,
        name: str,
        queue: str,
        cpu: int,
        priority: str = "",
        pods: int = 1,
        labels: dict[str, str] | None = None,
    ) -> None:
        """A user makes a Job, which the API server suspends."""
        chosen = {"priorityClassName": priority} if priority else {}
        containers = [{"resources": {"requests": {"cpu": str(cpu)}}}]
        spec: Json = {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"labels": labels or {}}, "spec": {"containers": containers, **chosen}},
        }
        self.server.make(JOBS, {"metadata": {"name": name, "labels": {QUEUE_LABEL: queue}}, "spec": spec})

    def delete(self, name: str) -> None:
        """A user deletes a Job."""
        self.server.remove(f"{JOBS}/{name}")

    def job(self, name: str) -> Json:
        """A Job as it is."""
        return self.server.find(f"{JOBS}/{name}")

    def is_done(self, name: str) -> bool:
        """Whether a Job has finished, and its Workload says so."""
        return self.condition(name, "Finished") == "True"

    def workload(self, job: str) -> Json | None:
        """The Workload of a Job."""
        uid = self.job(job)["metadata"]["uid"]
        for raw in self.server.objects["workloads"].values():
            if is_owned(raw, uid):
                return raw
        return None

    def events(self, job: str) -> dict[str, str]:
        """The newest message of each reason of events on a Job."""
        found = [e for e in self.server.objects["events"].values() if e["involvedObject"]["name"] == job]
        return {event["reason"]: event["message"] for event in found}

    def condition(self, job: str, kind: str) -> str:
        """The status of a condition of a Job's Workload; empty without it."""
        conditions = ((self.workload(job) or {}).get("status") or {}).get("conditions") or ()
        return next((each["status"] for each in conditions if each["type"] == kind), "")

    def runs(self, job: str) -> int:
        """How many pods of a Job run."""
        uid = self.job(job)["metadata"]["uid"]
        pods = self.server.objects["pods"].values()
        return sum(is_live(pod) and is_owned(pod, uid) for pod in pods)

    def _queues(self) -> list[str]:
        return [name for _, name in self.server.objects["clusterqueues"]]

    def used(self, queue: str) -> int:
        """Thousandths of a CPU that are admitted in a queue."""
        views = self.parsed(parse_workload, self.server.objects["workloads"].values())
        holding = [view for view in views if view.admission is not None and not view.finished]
        usages = [
            each.usage + extra_usage(view)
            for view in holding
            for each in (self.held(view),)
            if each.queue == queue
        ]
        return sum(amount for usage in usages for _, amount in usage)

    def parsed(self, parse: Callable[[Json], T], objects: Iterable[Json]) -> list[T]:
        """Views of objects; each version of one is parsed once."""
        found = []
        for raw in objects:
            key = (raw["metadata"]["uid"], raw["metadata"]["resourceVersion"])
            if key not in self._views:
                self._views[key] = parse(raw)
            found.append(self._views[key])
        return found

    def held(self, workload: WorkloadView) -> Admission:
        """What a Workload holds that has been admitted."""
        assert workload.admission is not None
        return left_of(workload.admission, workload)

    def untold(self) -> list[str]:
        """What the statuses of queues and Cohorts do not say as it is."""
        pending, admitted = Counter[str](), Counter[str]()
        for raw in self.server.objects["workloads"].values():
            view = parse_workload(raw)
            if not view.finished:
                (pending if view.admission is None else admitted)[view.queue] += 1
        wrong = []
        for name in self._queues():
            counts = {"pendingWorkloads": pending[name], "admittedWorkloads": admitted[name]}
            for plural, key in (("clusterqueues", ("", name)), ("localqueues", (TEAM, name))):
                status = self.server.objects[plural][key].get("status") or {}
                if {field: status.get(field) for field in counts} != counts:
                    wrong.append(f"{plural} {name}")
            if _told_use(self.server.objects["clusterqueues"]["", name]) != self.used(name):
                wrong.append(f"use of {name}")
        cohort = _told_use(self.server.objects["cohorts"]["", "all"])
        return wrong + ["use of the Cohort"] * (cohort != sum(map(self.used, self._queues())))

    async def settled(self, condition: Callable[[], bool] = lambda: True) -> None:
        """Wait until something is so, and the statuses say it."""
        await self.server.until(lambda: condition() and not self.untold())


def _cpu(pod: Json) -> int:
    return sum(to_amount("cpu", each["resources"]["requests"]["cpu"]) for each in pod["containers"])


def _told_use(raw: Json) -> int:
    flavors = (raw.get("status") or {}).get("flavors") or ()
    resources = (resource for flavor in flavors for resource in flavor["resources"])
    return sum(to_amount("cpu", resource["used"]) for resource in resources)

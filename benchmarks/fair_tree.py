"""A cluster with a future that is dear to play: many queues, five Cohorts, one root, and preemption.

Every end of a Job concerns all queues, so each class of waiting Jobs is tried again, with a search for
victims in all of the tree. What is decided at once is decided already, as in a cluster with a controller.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from admitter.cache.views import parse_job
from admitter.cache.world import World
from admitter.convert.settings import Settings
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.names import EXPECTED_RUNTIME_ANNOTATION, QUEUE_LABEL
from admitter.policy.lifecycle import Phase
from admitter.policy.snapshot import Snapshot, plural_of
from admitter.quantities.amounts import to_quantity
from admitter.simulate.items import Item
from admitter.simulate.manifests import Timeline
from admitter.simulate.simulator import Simulator

Json = dict[str, Any]

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
FLAVORS: Final = ("on-demand", "spot")
CPUS, GIBIBYTES = 12, 48
"""What each queue has of its own of each flavor."""
PRIORITIES: Final = (0, 0, 10, 100)
SAID: Final = 0.7
"""The part of Jobs with a stated runtime."""


@dataclass(frozen=True)
class Shape:
    """What such a cluster is like.

    Attributes:
        queues: how many.
        cohorts: so many below one root.
        waiting: so many Jobs wait.
        fair: whether what is borrowed is shared by weight.
        seed: of what is drawn.
    """

    queues: int = 30
    cohorts: int = 5
    waiting: int = 171
    fair: bool = True
    seed: int = 0


def fair_tree(shape: Shape) -> SnapshotFile:
    """A snapshot of such a cluster, at rest."""
    making = _Making(shape)
    making.define()
    making.finish(40)
    making.fill()
    making.wait()
    snapshot = SnapshotFile(NOW.timestamp(), Settings(), making.objects)
    known = facts(snapshot)
    simulator = Simulator(Timeline(known.taken, [], []), Snapshot(known))
    for _ in simulator.run(until=known.taken):
        pass
    jobs = {job["metadata"]["uid"]: job for job in making.objects["jobs"]}
    for workload in making.objects["workloads"]:
        item = simulator.items[workload["metadata"]["uid"]]
        if item.phase is not Phase.FINISHED:
            (owner,) = workload["metadata"]["ownerReferences"]
            jobs[owner["uid"]]["spec"]["suspend"] = not item.phase.runs
            _settle(workload, item)
    waiting = {Phase.PENDING, Phase.EVICTED}
    making.leave([uid for uid, item in simulator.items.items() if item.phase in waiting])
    return snapshot


class _Making:
    """Collects objects."""

    def __init__(self, shape: Shape) -> None:
        self.objects: dict[str, list[Json]] = {plural_of(each.path): [] for each in World().sources}
        self._shape = shape
        self._random = Random(shape.seed)  # noqa: S311  # nothing secret is drawn
        self._serial = 0

    def define(self) -> None:
        """Flavors, Cohorts, queues and namespaces."""
        shape, random = self._shape, self._random
        for flavor in FLAVORS:
            self._put("resourceflavors", flavor)
        self._put("cohorts", "root", spec={"fairSharing": {"enabled": shape.fair}})
        for number in range(shape.cohorts):
            weight = {"weight": str(random.choice((1, 1, 2)))}
            self._put("cohorts", f"department-{number}", spec={"parent": "root", "fairSharing": weight})
        for number in range(shape.queues):
            name, namespace = f"queue-{number:02}", f"team-{number:02}"
            self._put("clusterqueues", name, spec=self._queue(number))
            self._put("namespaces", namespace)
            self._put("localqueues", "main", namespace, spec={"clusterQueue": name})

    def _queue(self, number: int) -> Json:
        quota = {"cpu": str(CPUS), "memory": f"{GIBIBYTES}Gi"}
        return {
            "cohort": f"department-{number % self._shape.cohorts}",
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "fairSharing": {"weight": str(self._random.choice((1, 1, 2, 3)))},
            "resources": [
                {"name": name, "flavors": [{"name": each, "quota": {"min": least}} for each in FLAVORS]}
                for name, least in quota.items()
            ],
        }

    def finish(self, count: int) -> None:
        """Jobs that have finished, by which something is known of the runtime of others."""
        for number in range(count):
            began = -self._random.randrange(3000, 7000)
            job = self._job(f"past-{number:03}", self._random.randrange(self._shape.queues), began - 60)
            stamp = _stamp(began + self._random.randrange(100, 2900))
            over = {"type": "Finished", "status": "True", "reason": "Done", "lastTransitionTime": stamp}
            _admit(job, FLAVORS[0], began)
            job["status"]["state"] = "Finished"
            job["status"]["conditions"].append(over)

    def fill(self) -> None:
        """Jobs that run, most in every third queue, until a flavor has nothing left for the next one."""
        random, queues = self._random, self._shape.queues
        free = {flavor: [CPUS * queues, GIBIBYTES * queues] for flavor in FLAVORS}
        number = 0
        while True:
            flavor = random.choice(FLAVORS)
            queue = random.randrange(queues) if random.random() < 1 / 2 else random.randrange(0, queues, 3)
            began = -random.randrange(10, 5000)
            job = self._job(f"run-{number:03}", queue, began - random.randrange(1, 600))
            (pod_set,) = job["spec"]["podSets"]
            for place, each in enumerate(pod_set["requests"].values()):
                free[flavor][place] -= int(each.removesuffix("Gi")) * pod_set["count"]
            if min(free[flavor]) < 0:
                return  # the one that found no room waits
            _admit(job, flavor, began)
            number += 1

    def wait(self) -> None:
        """Jobs that have come beside them: more than are to wait, as some are admitted at once."""
        for number in range(2 * self._shape.waiting):
            queue, came = self._random.randrange(self._shape.queues), -self._random.randrange(1, 4000)
            self._job(f"wait-{number:03}", queue, came)

    def leave(self, waiting: Sequence[str]) -> None:
        """Of those that wait, by UID, only so many as are to."""
        gone = set(waiting[self._shape.waiting :])
        for workload in [each for each in self.objects["workloads"] if each["metadata"]["uid"] in gone]:
            (owner,) = workload["metadata"]["ownerReferences"]
            self.objects["workloads"].remove(workload)
            self.objects["jobs"] = [j for j in self.objects["jobs"] if j["metadata"]["uid"] != owner["uid"]]

    def _job(self, name: str, queue: int, created: int) -> Json:
        """A Job that waits; returns its Workload."""
        random = self._random
        runs = f"{random.randrange(300, 9000)}s" if random.random() < SAID else ""
        requests = {"cpu": str(random.choice((1, 2, 4))), "memory": f"{random.choice((1, 2, 4, 8, 16))}Gi"}
        pods, namespace = random.choice((1, 1, 2, 4)), f"team-{queue:02}"
        about: Json = {
            "labels": {QUEUE_LABEL: "main"},
            "annotations": {EXPECTED_RUNTIME_ANNOTATION: runs} if runs else {},
            "creationTimestamp": _stamp(created),
        }
        template = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
        spec = {"suspend": True, "parallelism": pods, "template": template}
        job = self._put("jobs", name, namespace, about, spec=spec, status={})
        owner = {"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}
        about = {"ownerReferences": [owner], "creationTimestamp": _stamp(created)}
        asked = {
            "queueName": "main",
            "priority": random.choice(PRIORITIES),
            "podSets": [{"name": "main", "count": pods, "requests": requests}],
        }
        return self._put("workloads", parse_job(job).workload, namespace, about, spec=asked, status={})

    def _put(
        self, plural: str, name: str, namespace: str = "", about: Json | None = None, **body: Json
    ) -> Json:
        self._serial += 1
        metadata = {
            "name": name,
            "uid": f"{plural}-{self._serial:05}",
            "resourceVersion": str(self._serial),
            "creationTimestamp": _stamp(-7200),
            **({"namespace": namespace} if namespace else {}),
            **(about or {}),
        }
        made: Json = {"metadata": metadata, "spec": {}, **body}
        self.objects[plural].append(made)
        return made


def _stamp(second: float) -> str:
    """So many seconds from now."""
    return (NOW + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _admit(workload: Json, flavor: str, began: float) -> None:
    """Have a Workload run in one flavor, since so many seconds from now."""
    (pod_set,) = workload["spec"]["podSets"]
    count, requests = pod_set["count"], pod_set["requests"]
    usage = {
        name: re.sub(r"\d+", lambda found: str(int(found[0]) * count), each)
        for name, each in requests.items()
    }
    held = {"name": "main", "count": count, "flavors": dict.fromkeys(requests, flavor), "usage": usage}
    queue = workload["metadata"]["namespace"].replace("team", "queue")
    workload["status"] = _holding({"clusterQueue": queue, "podSets": [held]}, began)


def _holding(admission: Json, began: float) -> Json:
    """The status of a Workload that holds quota."""
    since = {"status": "True", "reason": "Admitted", "lastTransitionTime": _stamp(began)}
    conditions = [{"type": kind, **since} for kind in ("QuotaReserved", "Admitted")]
    return {"state": "Admitted", "admission": admission, "conditions": conditions}


def _settle(workload: Json, item: Item) -> None:
    """Write down what has become of a Workload at once."""
    if not item.phase.runs:
        assert item.waiting is not None, "it would have been admitted"
        workload["status"] = {
            "state": "Pending",
            "reason": item.waiting.reason,
            "message": item.waiting.message,
        }
    elif len(item.runs) > 1 or not workload["status"]:  # it was preempted before, or waited
        assert item.admission is not None
        pod_sets = [
            {
                "name": each.name,
                "count": each.count,
                "flavors": dict(each.flavors),
                "usage": {resource: to_quantity(resource, amount) for resource, amount in each.usage},
            }
            for each in item.admission.pod_sets
        ]
        workload["status"] = _holding({"clusterQueue": item.admission.queue, "podSets": pod_sets}, -1)

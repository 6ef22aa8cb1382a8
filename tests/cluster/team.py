"""A team with a namespace and queues of its own: what a test of the controller works on."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.controller import Controller
from tests.cluster.objects import (
    ADMITTER,
    DELETE_IN_USE,
    ON_DEMAND,
    SPOT,
    Json,
    cluster_queue,
    local_queue,
    resource_flavor,
)
from tests.cluster.waiting import eventually

_SPECS = {"spot": SPOT, "on-demand": ON_DEMAND}


@dataclass
class Team:
    """A namespace, and cluster-scoped objects with names that start with its name.

    Attributes:
        cluster: where it is.
        namespace: its name, also the value of its label `team`.
        controller: what works there.
        made: cluster-scoped objects to delete in the end, as `kind/name`.
    """

    cluster: Cluster
    namespace: str
    controller: Controller
    made: list[str] = field(default_factory=list)

    @property
    def cluster_queue(self) -> str:
        """The name of its ClusterQueue."""
        return f"{self.namespace}-queue"

    def flavor(self, kind: str) -> str:
        """The name of its own flavor for `spot` or `on-demand` nodes."""
        return f"{self.namespace}-{kind}"

    def offers(
        self,
        quotas: dict[str, dict[str, str]],
        *,
        name: str = "queue",
        flavors: bool = True,
        tolerations: list[Json] | None = None,
        **spec: Any,
    ) -> str:
        """Make a ClusterQueue from resource → kind of node → min, with flavors and a LocalQueue `main`.

        Args:
            quotas: the quotas.
            name: what the ClusterQueue's name ends on.
            flavors: whether to make the flavors and the LocalQueue too.
            tolerations: what the flavors bring along.
            spec: further fields of the ClusterQueue.
        """
        kinds = sorted({kind for by_kind in quotas.values() for kind in by_kind})
        named = {r: {self.flavor(kind): m for kind, m in by_kind.items()} for r, by_kind in quotas.items()}
        queue = f"{self.namespace}-{name}"
        manifests = [cluster_queue(queue, named, self.namespace, **spec)]
        if flavors:
            extra = {"tolerations": tolerations} if tolerations else {}
            manifests += [resource_flavor(self.flavor(kind), _SPECS[kind] | extra) for kind in kinds]
            manifests.append(local_queue(self.namespace, queue))
        self.apply(*manifests)
        return queue

    def shares(self, *queues: tuple[str, str], cohort: str = "all", **spec: Any) -> None:
        """Make ClusterQueues of a cohort, each with on-demand CPUs and a LocalQueue of the same short name.

        Args:
            queues: short name and min of each.
            cohort: what the cohort's name ends on.
            spec: further fields of every ClusterQueue.
        """
        self.apply(resource_flavor(self.flavor("on-demand"), ON_DEMAND))
        for name, minimum in queues:
            quotas = {"cpu": {self.flavor("on-demand"): minimum}}
            full = f"{self.namespace}-{name}"
            named = {"cohort": f"{self.namespace}-{cohort}", **spec}
            self.apply(
                cluster_queue(full, quotas, self.namespace, **named),
                local_queue(self.namespace, full, name),
            )

    def cohort(self, name: str, parent: str = "", cpu: str = "0", **more: Any) -> None:
        """Make a Cohort with on-demand CPUs of its own, and further fields."""
        flavor = {"name": self.flavor("on-demand"), "quota": {"min": cpu}}
        spec: Json = {"resources": [{"name": "cpu", "flavors": [flavor]}], **more}
        if parent:
            spec["parent"] = f"{self.namespace}-{parent}"
        metadata = {"name": f"{self.namespace}-{name}", "annotations": {**DELETE_IN_USE}}
        self.apply({"apiVersion": ADMITTER, "kind": "Cohort", "metadata": metadata, "spec": spec})

    def apply(self, *manifests: Json) -> None:
        """Apply manifests."""
        for manifest in manifests:
            if "namespace" not in manifest["metadata"]:
                self.made.append(f"{manifest['kind']}/{manifest['metadata']['name']}")
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        self.cluster.run_kubectl("apply", "--filename=-", content=content)

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace, as the administrator; deletions do not wait."""
        wait = ["--wait=false"] if arguments[0] == "delete" else []
        return self.cluster.run_kubectl(*arguments, *wait, f"--namespace={self.namespace}")

    def patch(self, kind: str, name: str, patch: Json) -> None:
        """Merge a patch into an object."""
        self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(patch)}")

    def read(self, *arguments: str) -> dict[str, Any]:
        """Get objects of the namespace, or cluster-scoped ones."""
        return self.cluster.read(*arguments, f"--namespace={self.namespace}")

    def active(self, kind: str, name: str) -> dict[str, Any]:
        """The Active condition of a queue or Cohort; empty until there is one."""
        found = self.read(kind, f"--field-selector=metadata.name={name}")["items"]
        conditions = found[0].get("status", {}).get("conditions", []) if found else []
        return next((c for c in conditions if c["type"] == "Active"), {})

    def priority_class(self, name: str, value: int) -> str:
        """Make a PriorityClass; returns its full name."""
        full = f"{self.namespace}-{name}"
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        self.apply({**kind, "metadata": {"name": full}, "value": value})
        eventually(lambda: self._knows_class(full), what="the API server to know a PriorityClass")
        return full

    def _knows_class(self, name: str) -> bool:
        """Whether a pod of a PriorityClass can be made: the API server's admission reads classes late."""
        spec = {"priorityClassName": name, "containers": [{"name": "main", "image": "work"}]}
        tried = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "tried-"}, "spec": spec}
        try:
            self.cluster.run_kubectl(
                *("create", "--filename=-", "--dry-run=server", f"--namespace={self.namespace}"),
                content=json.dumps(tried),
            )
        except KubectlError:
            return False
        return True

    def workloads(self) -> dict[str, dict[str, Any]]:
        """Its Workloads by the name of their Job, or by their own."""
        items = self.read("workloads.admitter.dev")["items"]
        return {(w["metadata"].get("ownerReferences") or [w["metadata"]])[0]["name"]: w for w in items}

    def workload(self, job: str) -> dict[str, Any]:
        """The Workload of a Job; empty if there is none."""
        return self.workloads().get(job, {})

    def states(self) -> Counter[str]:
        """How many Workloads are in each state."""
        return Counter(w.get("status", {}).get("state", "") for w in self.workloads().values())

    def state(self, job: str) -> str:
        """The state of a Job's Workload."""
        return str(self.workload(job).get("status", {}).get("state", ""))

    def reason(self, job: str) -> str:
        """Why a Job's Workload waits."""
        return str(self.workload(job).get("status", {}).get("reason", ""))

    def condition(self, job: str, kind: str) -> dict[str, Any]:
        """A condition of a Job's Workload; empty if it has none of that type."""
        conditions = self.workload(job).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def pods(self, job: str) -> list[dict[str, Any]]:
        """The pods of a Job."""
        return list(self.read("pods", f"--selector=batch.kubernetes.io/job-name={job}")["items"])

    def runs(self, job: str, *, pods: int = 1) -> None:
        """Wait until that many pods of a Job run."""
        expected = ["Running"] * pods
        eventually(
            lambda: [pod["status"].get("phase") for pod in self.pods(job)] == expected,
            what=f"{pods} running pods of {job}",
        )

    def node_types(self, job: str) -> list[str]:
        """For each pod of a Job, the type of the node that it ran on."""
        nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in self.read("nodes")["items"]}
        return [nodes[pod["spec"]["nodeName"]]["instance-type"] for pod in self.pods(job)]

    def events(self, job: str) -> dict[str, str]:
        """The messages of the controller's events on a Job, by reason."""
        found = self.read("events", f"--field-selector=involvedObject.name={job}")["items"]
        return {
            e["reason"]: e["message"] for e in found if e["source"].get("component") == "admitter-controller"
        }

    def hears(self, told: Callable[[], object], kills: int, what: str) -> None:
        """Wait for events: those that a killed controller has not written yet are lost.

        Args:
            told: whether the events are there.
            kills: how many controllers tests had killed before anything happened that they tell of.
            what: the events in words.
        """
        eventually(lambda: told() or self.controller.kills > kills, what=what)

    def close(self) -> None:
        """Delete all that it made; nothing waits for the end of it."""
        for name in dict.fromkeys(self.made):
            self.cluster.run_kubectl("delete", name, "--wait=false", "--ignore-not-found")

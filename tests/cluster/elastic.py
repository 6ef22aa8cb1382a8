"""Namespaces with elastic quotas, read with kubectl alone: what the tests of elastic quota work on.

All elastic quotas of a cluster share one pool by resource, so tests that use the same resource take turns.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from admitter.sandbox.cluster import Cluster
from tests.cluster.controller import Controller
from tests.cluster.emptied import delete_all, leave
from tests.cluster.objects import Json, elastic_quota, job
from tests.cluster.waiting import eventually, later_than

CAPACITY = "admitter.dev/capacity"
OVER_QUOTA = f"{CAPACITY}=over-quota"
RUNNING = "--field-selector=status.phase=Running"


@dataclass
class Tenants:
    """Namespaces that share what there is.

    Attributes:
        cluster: where they are.
        controller: what works there.
        prefix: what the names of all that they make start with.
        made: what to delete in the end, as arguments of kubectl.
    """

    cluster: Cluster
    controller: Controller
    prefix: str
    made: list[tuple[str, ...]] = field(default_factory=list)

    def name(self, short: str) -> str:
        """The full name of a namespace, or of anything else that is the tests' own."""
        return f"{self.prefix}-{short}"

    def apply(self, *manifests: Json) -> None:
        """Apply manifests."""
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        self.cluster.run_kubectl("apply", "--filename=-", content=content)

    def namespace(self, short: str) -> str:
        """Make a namespace; returns its full name."""
        full = self.name(short)
        self.cluster.run_kubectl("create", "namespace", full)
        self.made.append(("namespace", full))
        return full

    def quota(self, short: str, **spec: Any) -> str:
        """Make a namespace with an ElasticQuota of the name `quota`; returns the namespace's full name."""
        full = self.namespace(short)
        self.apply(elastic_quota(full, **spec))
        self.in_force("elasticquota", full)
        return full

    def priority_class(self, short: str, value: int) -> str:
        """Make a PriorityClass; returns its full name."""
        full = self.name(short)
        self.made.append(("priorityclass", full))
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        self.apply({**kind, "metadata": {"name": full}, "value": value})
        return full

    def in_force(self, kind: str, namespace: str, name: str = "quota") -> None:
        """Wait until a quota is."""
        eventually(
            lambda: self.shows(kind, name, namespace, "{.status.conditions[0].status}") == "True",
            what=f"{kind} {namespace}/{name} to be in force",
        )

    def node(self, short: str, capacity: dict[str, str], **labels: str) -> None:
        """Make a simulated node with some devices, on which no other pods land."""
        full = self.name(short)
        self.made.append(("node", full))
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": full, "labels": {"tenants": self.prefix, **labels}},
                "status": {"capacity": {"cpu": "64", "memory": "256Gi", "pods": "110", **capacity}},
            }
        )

    def submit(
        self,
        namespace: str,
        name: str,
        requests: dict[str, str],
        priority: str = "",
        queue: str | None = "elastic-quota",
    ) -> None:
        """Submit a Job of one pod that runs for ever; one that is not queued is not suspended either."""
        devices = {r: n for r, n in requests.items() if r not in {"cpu", "memory"}}
        made = job(namespace, name, requests=requests, seconds=None, queue=queue)
        made["spec"]["suspend"] = queue is not None
        spec = made["spec"]["template"]["spec"]
        spec["containers"][0]["resources"]["limits"] = devices
        spec |= {"priorityClassName": priority} if priority else {}
        self.apply(made)

    def runs(self, namespace: str, name: str, requests: dict[str, str], priority: str = "") -> None:
        """Submit a Job, and wait until its pod runs."""
        self.submit(namespace, name, requests, priority)
        self.running(namespace, name)

    def runs_newest(self, namespace: str, name: str, requests: dict[str, str], priority: str = "") -> None:
        """The same of a Job that is admitted in a later second than each before it in its namespace."""
        time = '{.status.conditions[?(@.type=="Admitted")].lastTransitionTime}'
        path = f"{{range .items[*]}}{time} {{end}}"
        before = self._get("workloads.admitter.dev", f"--namespace={namespace}", path=path).split()
        if before:
            later_than(self.cluster, max(before))
        self.runs(namespace, name, requests, priority)

    def running(self, namespace: str, name: str) -> None:
        """Wait until the pod of a Job runs."""
        eventually(
            lambda: name in self.pods(namespace, RUNNING),
            what=f"the pod of {namespace}/{name} to run",
        )

    def pods(self, namespace: str, *selectors: str) -> list[str]:
        """The Jobs of the pods that a selector finds, by name."""
        path = "{range .items[*]}{.metadata.labels.job-name}{' '}{end}"
        return sorted(self._get("pods", f"--namespace={namespace}", *selectors, path=path).split())

    def shows(self, kind: str, name: str, namespace: str, path: str) -> str:
        """A field of an object."""
        return self._get(kind, name, f"--namespace={namespace}", path=path)

    def workload(self, namespace: str, job_name: str, path: str) -> str:
        """A field of a Job's Workload; empty if there is none yet."""
        uid = self.shows("job", job_name, namespace, "{.metadata.uid}")
        selector = f"--selector=admitter.dev/job-uid={uid}"
        found = f"{{range .items[*]}}{path}{{end}}"
        return self._get("workloads.admitter.dev", f"--namespace={namespace}", selector, path=found)

    def state(self, namespace: str, job_name: str) -> str:
        """The state of a Job's Workload."""
        return self.workload(namespace, job_name, "{.status.state}")

    def used(self, resource: str, *namespaces: str) -> list[str]:
        """What the quotas of some namespaces use."""
        escaped = resource.replace(".", "\\.")
        return [self.shows("eq", "quota", name, f"{{.status.used.{escaped}}}") for name in namespaces]

    def delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete an object, and wait until it is gone."""
        self.cluster.run_kubectl("delete", kind, name, f"--namespace={namespace}")

    def patch(self, kind: str, name: str, namespace: str, patch: Json) -> None:
        """Merge a patch into an object."""
        text = json.dumps(patch)
        self.cluster.run_kubectl(
            "patch", kind, name, f"--namespace={namespace}", "--type=merge", f"--patch={text}"
        )

    def close(self) -> None:
        """Delete all that was made, what runs first, so that the next test finds the pool empty."""
        names = [name for kind, name, *_ in self.made if kind == "namespace"]
        for full in names:
            delete_all(self.cluster, "jobs", full)
        eventually(lambda: not any(self.pods(full) for full in names), what="the pods to go")
        for full in names:
            for quotas in ("elasticquotas", "compositeelasticquotas"):
                delete_all(self.cluster, quotas, full)
            leave(self.cluster, full)
        for kind, *arguments in self.made:
            if kind != "namespace":
                self.cluster.run_kubectl("delete", kind, *arguments, "--wait=false", "--ignore-not-found")

    def _get(self, *arguments: str, path: str) -> str:
        return self.cluster.run_kubectl("get", *arguments, f"--output=jsonpath={path}").strip()

"""What operators of other kinds do without Admitter; everything else relies on it."""

import json
from collections import Counter
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.described import job_set, leader_worker_set, ray_cluster, train_job
from tests.cluster.objects import TOLERATES_SPOT, Json
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


class Site:
    """A namespace of a cluster with operators, in which no object is queued."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace

    def create(self, manifest: Json) -> None:
        del manifest["metadata"]["labels"]
        self.cluster.run_kubectl("apply", "--filename=-", content=json.dumps(manifest))

    def read(self, *arguments: str) -> dict[str, Any]:
        return self.cluster.read(*arguments, f"--namespace={self.namespace}")

    def change(self, kind: str, name: str, changes: list[Json]) -> None:
        """Apply a JSON patch."""
        patch = f"--patch={json.dumps(changes)}"
        self.cluster.run_kubectl("patch", kind, name, f"--namespace={self.namespace}", "--type=json", patch)

    def suspended(self, kind: str, name: str, value: bool) -> None:
        self.change(kind, name, [{"op": "add", "path": "/spec/suspend", "value": value}])

    def condition(self, kind: str, name: str, word: str) -> bool:
        conditions = self.read(kind, name).get("status", {}).get("conditions", [])
        return any(each["type"] == word and each["status"] == "True" for each in conditions)

    def phases(self) -> Counter[str]:
        return Counter(pod["status"]["phase"] for pod in self.read("pods")["items"])

    def runs(self, pods: int) -> None:
        eventually(lambda: self.phases() == {"Running": pods}, what=f"{pods} running pods")

    def empty(self) -> None:
        eventually(lambda: not self.phases(), what="no pod")


@pytest.fixture
def site(operators: Cluster, namespace: str) -> Site:
    return Site(operators, namespace)


def test_a_job_set_is_suspended_and_resumed_and_keeps_old_selectors_in_its_jobs(site: Site) -> None:
    site.create(job_set(site.namespace, "train", suspend=True))
    eventually(lambda: len(site.read("jobs")["items"]) == 3, what="its Jobs")
    eventually(lambda: site.condition("jobset", "train", "Suspended"), what="it is suspended")
    path = "/spec/replicatedJobs/1/template/spec/template/spec/nodeSelector"
    first = {"op": "add", "path": path, "value": {"instance-type": "spot"}}
    site.change("jobset", "train", [first, {"op": "replace", "path": "/spec/suspend", "value": False}])
    site.runs(5)

    site.suspended("jobset", "train", True)
    site.empty()
    eventually(lambda: site.condition("jobset", "train", "Suspended"), what="it is suspended")
    second = {"op": "replace", "path": path, "value": {"accelerator": "vendor1"}}
    site.change("jobset", "train", [second, {"op": "replace", "path": "/spec/suspend", "value": False}])
    site.runs(5)
    job = site.read("job", "train-workers-0")["spec"]["template"]["spec"]
    # This is what an eviction has to undo: the first flavor is still there.
    assert job["nodeSelector"] == {"instance-type": "spot", "accelerator": "vendor1"}
    assert job["tolerations"] == TOLERATES_SPOT


def test_a_job_set_completes(site: Site) -> None:
    site.create(job_set(site.namespace, "short", seconds=1))
    eventually(lambda: site.condition("jobset", "short", "Completed"), what="it is complete")
    site.cluster.run_kubectl("delete", "jobset/short", f"--namespace={site.namespace}", "--wait=false")
    eventually(lambda: not site.read("jobs")["items"], what="its Jobs are gone")


def test_a_ray_cluster_is_ready_with_all_its_pods_and_suspended_without_any(site: Site) -> None:
    site.create(ray_cluster(site.namespace, "tune"))
    site.runs(3)
    eventually(lambda: site.read("raycluster", "tune")["status"].get("state") == "ready", what="it is ready")
    worker = next(pod for pod in site.read("pods")["items"] if "-worker-" in pod["metadata"]["name"])
    waiting = worker["spec"]["initContainers"][0]
    assert waiting["name"] == "wait-gcs-ready"
    assert waiting["resources"]["requests"] == {"cpu": "200m", "memory": "256Mi"}

    site.suspended("raycluster", "tune", True)
    site.empty()
    eventually(lambda: site.condition("raycluster", "tune", "RayClusterSuspended"), what="it is suspended")
    found = site.read("raycluster", "tune")
    assert found["status"]["state"] == "suspended"
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    site.suspended("raycluster", "tune", False)
    site.runs(3)


def test_a_train_job_makes_a_job_set_of_its_runtime_with_its_patches(site: Site) -> None:
    site.create(train_job(site.namespace, "fit", suspend=True))
    eventually(lambda: site.read("jobsets")["items"], what="its JobSet")
    assert site.read("jobset", "fit")["spec"]["suspend"]
    template = {"spec": {"nodeSelector": {"instance-type": "on-demand"}}}
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    patch = {
        "manager": "tests.example.com/flavors",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
    patches = {"op": "add", "path": "/spec/runtimePatches", "value": [patch]}
    site.change("trainjob", "fit", [patches, {"op": "replace", "path": "/spec/suspend", "value": False}])
    site.runs(2)
    pods = site.read("pods")["items"]
    assert all(pod["spec"]["nodeSelector"] == {"instance-type": "on-demand"} for pod in pods)
    site.suspended("trainjob", "fit", True)
    site.empty()
    assert site.read("jobset", "fit")["spec"]["suspend"]


@pytest.fixture
def serving(leader_worker_sets: Cluster, namespace: str) -> Site:
    return Site(leader_worker_sets, namespace)


def groups(site: Site) -> dict[str, set[str]]:
    """The names of pods by the group that their labels tell."""
    found: dict[str, set[str]] = {}
    for pod in site.read("pods")["items"]:
        label = pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"]
        found.setdefault(label, set()).add(pod["metadata"]["name"])
    return found


def owners(site: Site, kind: str) -> dict[str, str]:
    """What controls each object of a kind, as `kind/name`."""
    found = {
        each["metadata"]["name"]: each["metadata"]["ownerReferences"] for each in site.read(kind)["items"]
    }
    return {name: f"{owner['kind']}/{owner['name']}" for name, (owner,) in found.items()}


def test_a_group_of_a_leader_worker_set_has_its_pods_of_two_stateful_sets(serving: Site) -> None:
    serving.create(leader_worker_set(serving.namespace, "serve"))
    serving.runs(6)
    assert groups(serving) == {
        "0": {"serve-0", "serve-0-1", "serve-0-2"},
        "1": {"serve-1", "serve-1-1", "serve-1-2"},
    }
    # The leaders are of one set; the workers of each have a set that the leader itself owns.
    assert owners(serving, "statefulsets") == {
        "serve": "LeaderWorkerSet/serve",
        "serve-0": "Pod/serve-0",
        "serve-1": "Pod/serve-1",
    }
    assert owners(serving, "pods") == {
        **dict.fromkeys(("serve-0", "serve-1"), "StatefulSet/serve"),
        **dict.fromkeys(("serve-0-1", "serve-0-2"), "StatefulSet/serve-0"),
        **dict.fromkeys(("serve-1-1", "serve-1-2"), "StatefulSet/serve-1"),
    }


def test_a_group_of_a_leader_worker_set_is_made_anew_when_one_of_its_pods_is_deleted(serving: Site) -> None:
    def uids() -> dict[str, str]:
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in serving.read("pods")["items"]}

    serving.create(leader_worker_set(serving.namespace, "serve"))
    serving.runs(6)
    before = uids()
    serving.cluster.run_kubectl("delete", "pod/serve-0-1", f"--namespace={serving.namespace}", "--wait=false")
    others = {name for name in before if name.startswith("serve-1")}

    def anew() -> bool:
        now = uids()
        return now.keys() == before.keys() and {n for n in now if now[n] == before[n]} == others

    eventually(anew, what="new pods in the first group alone")
    serving.runs(6)

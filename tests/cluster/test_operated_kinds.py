"""JobSets, RayClusters and TrainJobs on their real operators: queued, admitted, evicted and deleted."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.auditor import Auditor, whole
from tests.cluster.controller import Controller
from tests.cluster.described import job_set, ray_cluster, train_job, training_runtime
from tests.cluster.objects import ON_DEMAND, SPOT, Json, cluster_queue, local_queue, resource_flavor
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

VENDOR: Json = {"nodeLabels": {"accelerator": "vendor1"}, "nodeTaints": SPOT["nodeTaints"]}
"""A flavor with another label than that of on-demand nodes: if both stay, no node fits."""
FLAVOR_KEYS = {"accelerator", "instance-type"}


class Kind(NamedTuple):
    """A kind in tests.

    Attributes:
        resource: as kubectl takes it.
        mark: the label of its pods with its name.
        sets: how many pods each of its pod sets has.
    """

    resource: str
    mark: str
    sets: tuple[int, int]

    @property
    def pods(self) -> int:
        return sum(self.sets)


JOB_SET = Kind("jobset", "jobset.sigs.k8s.io/jobset-name", (1, 4))
RAY_CLUSTER = Kind("raycluster", "ray.io/cluster", (1, 2))
TRAIN_JOB = Kind("trainjob", "jobset.sigs.k8s.io/jobset-name", (1, 2))


class Users(Team):
    """A team that works with objects of one kind."""

    kind: Kind

    def quota(self, flavors: dict[str, tuple[Json, int]], **spec: Any) -> dict[tuple[str, str], float]:
        """Offer CPUs of flavors, by their short names, with as much memory as may be; returns the limits."""
        for short, (labels, _) in flavors.items():
            self.apply(resource_flavor(self.flavor(short), labels))
        cpu = {self.flavor(short): str(amount) for short, (_, amount) in flavors.items()}
        memory = dict.fromkeys(cpu, "64Gi")
        quotas = {"cpu": cpu, "memory": memory}
        self.apply(cluster_queue(self.cluster_queue, quotas, self.namespace, **spec))
        self.apply(local_queue(self.namespace, self.cluster_queue))
        limits = {(flavor, "cpu"): float(amount) for flavor, amount in cpu.items()}
        return limits | {(flavor, "memory"): whole(amount) for flavor, amount in memory.items()}

    def submit(self, name: str, **pod: Any) -> None:
        """A user makes an object, with further fields of its pods."""
        if self.kind is TRAIN_JOB:
            self.apply(training_runtime(self.namespace, name, pod=pod))
            self.apply(train_job(self.namespace, name, runtime=name))
        else:
            make: Callable[..., Json] = job_set if self.kind is JOB_SET else ray_cluster
            self.apply(make(self.namespace, name, pod=pod))

    def pods(self, job: str) -> list[dict[str, Any]]:
        return list(self.read("pods", f"--selector={self.kind.mark}={job}")["items"])

    def waits(self, name: str) -> None:
        eventually(lambda: self.reason(name) == "InsufficientQuota", what=f"{name} to wait")
        assert self.pods(name) == []

    def delete(self, name: str) -> None:
        self.kubectl("delete", self.kind.resource, name)

    def nothing_left(self) -> None:
        eventually(lambda: not self.workloads() and not self.read("pods")["items"], what="nothing left")


@pytest.fixture(params=[JOB_SET, RAY_CLUSTER, TRAIN_JOB], ids=lambda kind: kind.resource)
def users(
    described: Cluster, controller: Controller, namespace: str, request: pytest.FixtureRequest
) -> Iterator[Users]:
    made = Users(described, namespace, controller)
    made.kind = request.param
    yield made
    made.close()


def test_two_pod_sets_run_on_two_flavors_and_the_next_waits_for_them(users: Users) -> None:
    # The first pod set finds its place in the first flavor, the second only in the other one.
    amounts = (users.kind.sets[0], users.kind.sets[1])
    limits = users.quota({"spot": (SPOT, amounts[0]), "on-demand": (ON_DEMAND, amounts[1])})
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        users.submit("first")
        users.runs("first", pods=users.kind.pods)
        expected = ["on-demand"] * amounts[1] + ["spot"] * amounts[0]
        assert sorted(users.node_types("first")) == expected
        users.submit("second")
        users.waits("second")
        users.delete("first")
        users.runs("second", pods=users.kind.pods)
    assert auditor.excesses == []


def test_a_victim_runs_again_elsewhere_with_nothing_of_the_first_flavor(users: Users) -> None:
    size = users.kind.pods
    flavors = {"vendor": (VENDOR, size), "on-demand": (ON_DEMAND, size)}
    limits = users.quota(flavors, preemption={"withinClusterQueue": "LowerPriority"})
    high = users.priority_class("high", 10)
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        users.submit("victim")
        users.runs("victim", pods=size)
        assert all("accelerator" in pod["spec"]["nodeSelector"] for pod in users.pods("victim"))
        users.submit("preemptor", nodeSelector={"instance-type": "spot"}, priorityClassName=high)
        users.runs("preemptor", pods=size)
        users.runs("victim", pods=size)
        assert users.condition("victim", "Preempted")
        for pod in users.pods("victim"):
            kept = {key: value for key, value in pod["spec"]["nodeSelector"].items() if key in FLAVOR_KEYS}
            assert kept == {"instance-type": "on-demand"}
    assert auditor.excesses == []


def test_it_is_deleted_while_it_waits_runs_or_is_evicted(users: Users) -> None:
    limits = users.quota(
        {"on-demand": (ON_DEMAND, users.kind.pods)}, preemption={"withinClusterQueue": "LowerPriority"}
    )
    high = users.priority_class("high", 10)
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        users.submit("runs")
        users.runs("runs", pods=users.kind.pods)
        users.submit("waits")
        users.waits("waits")
        users.delete("waits")
        users.delete("runs")
        users.nothing_left()
        users.submit("evicted")
        users.runs("evicted", pods=users.kind.pods)
        users.submit("last", priorityClassName=high)
        eventually(lambda: users.read(users.kind.resource, "evicted")["spec"]["suspend"], what="its stop")
        users.delete("evicted")
        users.runs("last", pods=users.kind.pods)
    assert auditor.excesses == []

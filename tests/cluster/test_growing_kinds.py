"""A RayCluster grows into idle quota by its autoscaler, and gives it back first, on the real KubeRay.

No Ray runs in the pods of the sandbox, so the test writes what the autoscaler of Ray writes: `replicas`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.auditor import Auditor, InOrder
from tests.cluster.controller import Controller
from tests.cluster.described import job_set, ray_cluster
from tests.cluster.objects import ON_DEMAND, Json, job
from tests.cluster.operated import JOB_SET, RAY_CLUSTER
from tests.cluster.people import Person
from tests.cluster.test_operated_kinds import Users
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

GROUP = "ray.io/group"
BOUNDS = "admitter.dev/original-bounds"
REPLICA = "ray.io/worker-group-replica-name"
NO_CPU: Json = {
    "resources": {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "1", "memory": "1Gi"}}
}


@pytest.fixture
def users(described: Cluster, controller: Controller, namespace: str) -> Iterator[Users]:
    made = Users(described, namespace, controller, kind=RAY_CLUSTER)
    yield made
    made.close()


def able(users: Users, name: str, *, autoscales: bool = True, **group: Any) -> Json:
    """A RayCluster with two workers that can have more; the autoscaler needs nothing."""
    made = ray_cluster(users.namespace, name, enableInTreeAutoscaling=autoscales, autoscalerOptions=NO_CPU)
    made["spec"]["workerGroupSpecs"][0] |= group
    return made


class PartGrants(InOrder):
    """Compares the pods of each pod set with its grant, change by change, in the order of the store."""

    def passed(self) -> tuple[list[str], int]:
        """Every moment at which more pods of a pod set lived than were granted; the most of one at once."""
        alive: dict[tuple[str, str], set[str]] = {}
        grants: dict[tuple[str, str], int] = {}
        found, most = list[str](), 0
        for version, plural, kind, seen in self.changes():
            metadata = seen["metadata"]
            if plural == "workloads":
                name, status = metadata["name"], seen.get("status", {})
                grants = {part: most for part, most in grants.items() if part[0] != name}
                grants |= {(name, part): pods for part, pods in granted(status).items()}
                continue
            labels = metadata["labels"]
            if GROUP not in labels:
                continue  # of a Job
            part = (labels["admitter.dev/workload"], labels[GROUP].replace("headgroup", "head"))
            over = kind == "DELETED" or seen["status"].get("phase") in {"Succeeded", "Failed"}
            pods = alive.setdefault(part, set())
            (pods.discard if over else pods.add)(metadata["uid"])
            most = max(most, len(pods))
            if len(pods) > grants.get(part, 0):
                found.append(f"{len(pods)} pods of {part}, {grants.get(part)} granted, at {version}")
        return found, most


def granted(status: Json) -> dict[str, int]:
    """How many pods of each pod set may live."""
    admitted = (status.get("admission") or {}).get("podSets", ())
    counts = {each["name"]: int(each["count"]) for each in admitted}
    for each in (status.get("resize") or {}).get("podSets", ()):
        counts[each["name"]] = max(counts.get(each["name"], 0), int(each["granted"]))
    return counts


def group_of(users: Users, name: str) -> Json:
    found: Json = users.read("raycluster", name)["spec"]["workerGroupSpecs"][0]
    return found


def sizes(users: Users, name: str) -> tuple[int, int]:
    """How many replicas are asked for, and the bound."""
    group = group_of(users, name)
    return group["replicas"], group["maxReplicas"]


def ask(users: Users, name: str, replicas: int) -> None:
    """As the autoscaler of Ray asks for replicas of a group."""
    change = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": replicas}]
    users.kubectl("patch", "raycluster", name, "--type=json", f"--patch={json.dumps(change)}")


def said(users: Users, name: str) -> tuple[int, int]:
    """The workers that are granted, and that it is to have."""
    parts = users.workload(name)["status"].get("resize", {}).get("podSets", ())
    return next(((each["granted"], each["wanted"]) for each in parts if each["name"] == "small"), (0, 0))


def test_an_autoscaler_gets_idle_quota_and_gives_it_back_for_the_next_job_also_after_a_restart(
    users: Users,
) -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    limits, kills = users.quota({"on-demand": (ON_DEMAND, 7)}, preemption=preemption), users.controller.kills
    high = users.priority_class("high", 100)
    of = (users.cluster, users.namespace)
    with Auditor(*of, limits) as auditor, PartGrants(*of) as grants:
        users.apply(able(users, "tune"))
        users.runs("tune", pods=3)
        eventually(lambda: said(users, "tune") == (4, 4), what="room for more, as it has reached its bound")
        eventually(lambda: sizes(users, "tune") == (2, 4), what="the bound to be raised")
        ask(users, "tune", 4)
        users.runs("tune", pods=5)
        users.controller.kill()
        eventually(lambda: sizes(users, "tune") == (4, 6), what="the bound to be raised again")
        ask(users, "tune", 6)
        users.runs("tune", pods=7)
        users.hears(lambda: "Resized" in users.events("tune"), kills, "an event of the change")
        wide = users.kubectl("get", "workloads.admitter.dev", "--output=wide")
        assert "runs with 7 pods, 4 of them extra: these go first" in wide
        users.apply(job(users.namespace, "next", pods=3, seconds=None, pod={"priorityClassName": high}))
        eventually(lambda: users.reason("next") == "Preempting" or users.state("next") == "Admitted")
        users.controller.kill()
        eventually(lambda: users.state("next") == "Admitted", what="the next Job to be admitted")
        users.runs("tune", pods=4)
        assert sizes(users, "tune") == (3, 3)
        assert users.condition("tune", "Evicted") == {}
        users.apply(job(users.namespace, "all", pods=4, seconds=None, pod={"priorityClassName": high}))
        eventually(lambda: users.state("all") == "Admitted", what="a Job that evicts it")
        group = group_of(users, "tune")
        assert (group["replicas"], group["maxReplicas"]) == (2, 8)
        assert "workersToDelete" not in group.get("scaleStrategy", {})
        assert BOUNDS not in users.read("raycluster", "tune")["metadata"].get("annotations", {})
        assert "resize" not in users.workload("tune")["status"]
    assert auditor.excesses == []
    assert grants.passed() == ([], 6)


def test_replicas_that_a_user_asks_for_wait_for_idle_quota(users: Users) -> None:
    limits = users.quota({"on-demand": (ON_DEMAND, 5)})
    of = (users.cluster, users.namespace)
    with Auditor(*of, limits) as auditor, PartGrants(*of) as grants:
        users.apply(able(users, "tune", autoscales=False))
        users.runs("tune", pods=3)
        users.apply(job(users.namespace, "other", pods=1, seconds=None))
        eventually(lambda: users.state("other") == "Admitted")
        ask(users, "tune", 4)
        eventually(lambda: said(users, "tune") == (3, 4), what="one more, and one that waits")
        users.runs("tune", pods=4)
        assert sizes(users, "tune") == (4, 3)
        users.kubectl("delete", "job", "other")
        users.runs("tune", pods=5)
        ask(users, "tune", 2)
        users.runs("tune", pods=3)
        eventually(lambda: said(users, "tune") == (2, 2), what="the rest to be given back")
    assert auditor.excesses == []
    assert grants.passed() == ([], 4)


def test_replicas_of_several_hosts_come_and_go_as_a_whole(users: Users) -> None:
    limits = users.quota({"on-demand": (ON_DEMAND, 9)})
    of = (users.cluster, users.namespace)
    with Auditor(*of, limits) as auditor, PartGrants(*of) as grants:
        users.apply(able(users, "wide", numOfHosts=2))
        users.runs("wide", pods=5)
        eventually(lambda: sizes(users, "wide") == (2, 4), what="room for two more replicas")
        ask(users, "wide", 4)
        users.runs("wide", pods=9)
        users.apply(job(users.namespace, "next", pods=1, seconds=None))
        eventually(lambda: users.state("next") == "Admitted", what="the next Job to be admitted")
        users.runs("wide", pods=7)
        assert sizes(users, "wide") == (3, 3)
        eventually(lambda: said(users, "wide") == (6, 12), what="more to be wanted again")
        hosts = Counter(filter(None, replicas_of(users, "wide")))
        assert sorted(hosts.values()) == [2, 2, 2]
        assert users.condition("wide", "Evicted") == {}
    assert auditor.excesses == []
    assert grants.passed() == ([], 8)


def replicas_of(users: Users, name: str) -> list[str]:
    """The replica that each pod of a RayCluster is of; empty of its head."""
    found = users.kubectl("get", "pods", f"--selector=ray.io/cluster={name}", "--output=json")
    return [each["metadata"]["labels"].get(REPLICA, "") for each in json.loads(found)["items"]]


def test_jobset_takes_no_other_number_of_replicas_while_it_runs(users: Users) -> None:
    """So its JobKind says nothing of growth: its webhook alone refuses it, whatever Admitter allows."""
    free = Users(users.cluster, users.namespace, users.controller, kind=JOB_SET)
    made = job_set(users.namespace, "free")
    del made["metadata"]["labels"]
    users.apply(made | {"spec": {**made["spec"], "suspend": False}})
    admin = Person(users.cluster, users.namespace, "root").may(
        {"apiGroups": [JOB_SET.group], "resources": ["jobsets"], "verbs": ["*"]}
    )
    for path in ("replicas", "template/spec/parallelism"):
        change = [{"op": "replace", "path": f"/spec/replicatedJobs/1/{path}", "value": 3}]
        with pytest.raises(KubectlError, match=r"spec\.replicatedJobs: .*field is immutable"):
            admin.kubectl("patch", "jobset", "free", "--type=json", f"--patch={json.dumps(change)}")
    free.kubectl("delete", "jobset", "free")

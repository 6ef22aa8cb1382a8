"""Kinds on their real operators, with tenants and a dying controller."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.auditor import WORKLOAD, Auditor, whole
from tests.cluster.controller import Controller
from tests.cluster.described import job_set
from tests.cluster.kills import end_under_kills, none_lost_none_twice
from tests.cluster.objects import ON_DEMAND, SPOT, Json, cluster_queue, job, local_queue, resource_flavor
from tests.cluster.operated import APP_WRAPPER, KINDS, RAY_CLUSTER, Kind
from tests.cluster.people import Person
from tests.cluster.team import Team
from tests.cluster.test_abuse_managed import manage
from tests.cluster.waiting import eventually
from tests.quantities import pod_requests, thousandths

pytestmark = pytest.mark.cluster

VENDOR: Json = {"nodeLabels": {"accelerator": "vendor1"}, "nodeTaints": SPOT["nodeTaints"]}
"""A flavor with another label than that of on-demand nodes: if both stay, no node fits."""
FLAVOR_KEYS = {"accelerator", "instance-type"}


OBJECTS = int(os.environ.get("ADMITTER_TEST_OBJECTS", "4"))
"""How many of each kind there are while the controller is killed."""
CPUS = 12
"""Of each flavor, while the controller is killed; each pod requests one."""


@dataclass
class Users(Team):
    """A team that works with objects of one kind."""

    kind: Kind = field(kw_only=True)

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

    def submit(self, name: str, *, seconds: int | None = None, **pod: Any) -> None:
        """A user makes an object, with further fields of its pods, that run for some seconds or for ever."""
        assert seconds is None or self.kind.ends, "an operator makes its pods again"
        length = {} if seconds is None else {"seconds": seconds}
        for manifest in self.kind.made(self.namespace, name, pod=pod, **length):
            eventually(partial(self._takes, manifest), what=f"{name} to be taken")

    def _takes(self, manifest: Json) -> bool:
        """Whether an object is made: the webhook of TrainJobs hears late of TrainingRuntimes."""
        try:
            self.apply(manifest)
        except KubectlError as error:
            if "must be created before" not in str(error):
                raise
            return False
        return True

    def pods(self, job: str) -> list[dict[str, Any]]:
        return list(self.read("pods", f"--selector={self.kind.mark}={job}")["items"])

    def waits(self, name: str) -> None:
        eventually(lambda: self.reason(name) == "InsufficientQuota", what=f"{name} to wait")
        assert self.pods(name) == []

    def delete(self, name: str) -> None:
        self.kubectl("delete", self.kind.resource, name)

    def pause(self, name: str, *, paused: bool) -> None:
        workload = self.workloads()[name]["metadata"]["name"]
        active = json.dumps({"spec": {"active": not paused}})
        self.kubectl("patch", "workload.admitter.dev", workload, "--type=merge", f"--patch={active}")

    def nothing_left(self) -> None:
        eventually(lambda: not self.workloads() and not self.read("pods")["items"], what="nothing left")


@pytest.fixture
def each(described: Cluster, controller: Controller, namespace: str) -> Iterator[dict[Kind, Users]]:
    """The users of a namespace, by the kind that they work with."""
    made = {kind: Users(described, namespace, controller, kind=kind) for kind in KINDS}
    yield made
    for users in made.values():
        users.close()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.label)
def users(each: dict[Kind, Users], request: pytest.FixtureRequest) -> Users:
    return each[request.param]


def test_two_pod_sets_run_on_two_flavors_and_the_next_waits_for_them(users: Users) -> None:
    # The first pod set finds its place in the first flavor, the second only in the other one.
    amounts = (users.kind.sets[0], users.kind.sets[1])
    limits = users.quota({"spot": (SPOT, amounts[0]), "on-demand": (ON_DEMAND, amounts[1])})
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        users.submit("first")
        users.runs("first", pods=users.kind.pods)
        parts = (pod["metadata"]["labels"][users.kind.part] for pod in users.pods("first"))
        first, second = users.kind.parts
        expected = {(first, "spot"): amounts[0], (second, "on-demand"): amounts[1]}
        assert Counter(zip(parts, users.node_types("first"), strict=True)) == expected
        users.submit("second")
        users.waits("second")
        users.delete("first")
        users.runs("second", pods=users.kind.pods)
    assert auditor.excesses == []


def test_its_pods_request_what_was_counted(users: Users) -> None:
    users.quota({"on-demand": (ON_DEMAND, users.kind.pods)})
    users.submit("runs")
    users.runs("runs", pods=users.kind.pods)
    asked = sum((pod_requests(pod["spec"]) for pod in users.pods("runs")), Counter[str]())
    counted: Counter[str] = Counter()
    for pod_set in users.workload("runs")["status"]["admission"]["podSets"]:
        counted.update({resource: thousandths(amount) for resource, amount in pod_set["usage"].items()})
    # An operator's own containers may request what no queue here lists.
    assert counted == {resource: asked[resource] for resource in counted}
    assert set(asked) <= {*counted, "ephemeral-storage"}


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
        eventually(lambda: users.kind.stopped(users.read(users.kind.resource, "evicted")), what="its stop")
        users.delete("evicted")
        users.runs("last", pods=users.kind.pods)
    assert auditor.excesses == []


class Ending:
    """Counts what has ended; a RayCluster that runs is deleted, because it has no end of its own."""

    def __init__(self, users: Users, auditor: Auditor) -> None:
        self._users, self._auditor, self._deleted = users, auditor, set[str]()

    def __call__(self) -> int:
        pods = self._users.read("pods", f"--selector={RAY_CLUSTER.mark}")["items"]
        running = [pod["metadata"]["labels"] for pod in pods if pod["status"].get("phase") == "Running"]
        whole = Counter(labels[RAY_CLUSTER.mark] for labels in running)
        for name in {name for name, count in whole.items() if count == RAY_CLUSTER.pods} - self._deleted:
            self._users.delete(name)
            self._deleted.add(name)
        return len(self._auditor.finished) + len(self._deleted)


@pytest.mark.timeout(900)
def test_each_of_many_runs_once_though_the_controller_is_killed(each: dict[Kind, Users]) -> None:
    random, users = Random(9), each[RAY_CLUSTER]
    flavors = {"spot": (SPOT, CPUS), "on-demand": (ON_DEMAND, CPUS)}
    limits = users.quota(flavors, preemption={"withinClusterQueue": "LowerPriority"})
    high: Json = {"priorityClassName": users.priority_class("high", 10)}
    submissions: list[Callable[[], None]] = []
    for number in range(OBJECTS):
        for kind in KINDS:
            ends = {"seconds": 1} if kind.ends else {}
            pod = high if random.random() < 0.3 else {}
            submissions.append(partial(each[kind].submit, f"{kind.resource[0]}{number}", **ends, **pod))
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        end_under_kills(users.controller, random, submissions, Ending(users, auditor))
    sizes = {f"{users.namespace}/{kind.resource}": kind.pods for kind in KINDS}
    none_lost_none_twice(auditor, len(submissions), lambda name: [sizes[name.rsplit("-", 2)[0]]])
    assert auditor.most_on["spot"] <= CPUS
    assert auditor.most_on["on-demand"] <= CPUS


@pytest.fixture
def tenant(users: Users) -> Person:
    """A user that may do all to objects of these kinds, to Jobs and pods, and submit to the queue."""
    groups = [*(kind.group for kind in KINDS), "batch", ""]
    resources = [*(f"{kind.resource}s" for kind in KINDS), "jobs", "pods"]
    rule: Json = {"apiGroups": groups, "resources": resources, "verbs": ["*"]}
    return Person(users.cluster, users.namespace, "ann").may(rule).submits_to("main")


def test_a_tenant_lets_nothing_grow_while_it_runs(users: Users, tenant: Person) -> None:
    users.quota({"on-demand": (ON_DEMAND, 2 * users.kind.pods)})
    users.submit("runs")
    users.runs("runs", pods=users.kind.pods)
    growth = f"--patch={json.dumps([{'op': 'replace', 'path': users.kind.grows, 'value': 3}])}"
    with pytest.raises(KubectlError, match=users.kind.refused):
        tenant.kubectl("patch", users.kind.resource, "runs", "--type=json", growth)
    assert len(users.pods("runs")) == users.kind.pods


def test_a_raycluster_that_is_paused_grows_and_runs_again(each: dict[Kind, Users]) -> None:
    users = each[RAY_CLUSTER]
    limits = users.quota({"on-demand": (ON_DEMAND, RAY_CLUSTER.pods + 1)})
    with Auditor(users.cluster, users.namespace, limits) as auditor:
        users.submit("grows")
        users.runs("grows", pods=RAY_CLUSTER.pods)
        users.pause("grows", paused=True)
        eventually(lambda: not users.pods("grows"), what="its pods to end")
        more = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]
        users.kubectl("patch", RAY_CLUSTER.resource, "grows", "--type=json", f"--patch={json.dumps(more)}")
        users.pause("grows", paused=False)
        users.runs("grows", pods=RAY_CLUSTER.pods + 1)
    assert auditor.excesses == []


@pytest.mark.skipif(APP_WRAPPER not in KINDS, reason="its operator is not asked for")
def test_an_optional_appwrapper_has_what_it_was_given_beside_templates_that_never_change(
    each: dict[Kind, Users],
) -> None:
    users = each[APP_WRAPPER]
    users.quota({"spot": (SPOT, APP_WRAPPER.pods)})

    def beside() -> list[Any]:
        found = users.read(APP_WRAPPER.resource, "wrapped")["spec"]["components"]
        return [component.get("podSetInfos") for component in found]

    def change(path: str, value: Any) -> None:
        patch = json.dumps([{"op": "add", "path": f"/spec/components/1/{path}", "value": value}])
        users.kubectl("patch", APP_WRAPPER.resource, "wrapped", "--type=json", f"--patch={patch}")

    users.submit("wrapped")
    users.runs("wrapped", pods=APP_WRAPPER.pods)
    assert [[info["nodeSelector"] for info in infos] for infos in beside()] == [[SPOT["nodeLabels"]]] * 2
    with pytest.raises(KubectlError, match=r"so spec\.components can't describe other pods"):
        change("podSetInfos", [{"nodeSelector": {"instance-type": "on-demand"}}])
    users.pause("wrapped", paused=True)
    eventually(lambda: beside() == [None, None] and not users.pods("wrapped"), what="nothing left in it")
    with pytest.raises(KubectlError, match=r"vappwrapper\.kb\.io.*attempt to change immutable field"):
        change("template/spec/parallelism", 3)
    with pytest.raises(KubectlError, match="put into pod templates by Admitter's controller alone"):
        change("podSetInfos", [{"labels": {WORKLOAD: "of-another"}}])
    users.pause("wrapped", paused=False)
    users.runs("wrapped", pods=APP_WRAPPER.pods)


def forged(users: Users, name: str, marks: Json) -> Iterator[Json]:
    """Jobs, JobSets and pods that a tenant makes in the name of an object's operator, to run at once."""
    owner = users.read(users.kind.resource, name)
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
    for how, queue, labels in (("marked", "main", marks), ("queued", "main", {}), ("loose", None, {})):
        plain = job(users.namespace, "job", seconds=None, queue=queue, suspend=False)
        template = plain["spec"]["template"]
        template["metadata"]["labels"] = labels
        of_it = [{"name": "a", "replicas": 1, "template": {"spec": {"template": template}}}]
        sets = job_set(users.namespace, "jobset", replicatedJobs=of_it, suspend=False)
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
        for made in (plain, sets, pod):
            metadata = {"name": f"{made['kind'].lower()}-{how}-{name}", "ownerReferences": [reference]}
            marked = {"labels": labels if made is pod else plain["metadata"]["labels"]}
            yield made | {"metadata": {**metadata, **marked, "namespace": users.namespace}}


def test_what_a_tenant_makes_as_a_child_waits_or_is_refused(users: Users, tenant: Person) -> None:
    users.quota({"on-demand": (ON_DEMAND, users.kind.pods)})
    manage(users)
    users.submit("runs")
    users.runs("runs", pods=users.kind.pods)
    users.submit("waits")
    users.waits("waits")
    marks = {WORKLOAD: users.pods("runs")[0]["metadata"]["labels"][WORKLOAD]}
    children = [child for name in ("runs", "waits") for child in forged(users, name, marks)]
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": children})
    with pytest.raises(KubectlError) as refused:
        tenant.kubectl("create", "--filename=-", content=content)
    waiting = {f"{kind}-queued-{name}" for kind in users.kind.children for name in ("runs", "waits")}
    assert str(refused.value).count("denied request") == len(children) - len(waiting)
    eventually(lambda: users.workloads().keys() == {"runs", "waits", *waiting}, what="Workloads of them")
    for name in waiting:
        users.waits(name)
    assert len(users.read("pods")["items"]) == users.kind.pods

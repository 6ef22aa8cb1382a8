"""The namespaces, quotas, nodes and users that operations of tenants are tried on.

| namespace | managed | its quota |
|---|---|---|
| managed-a | yes | `main` is the queue a of the cohort abuse, `other` its queue b |
| managed-b | yes | `main` is the queue strict, which has no cohort, is StrictFIFO and counts pods |
| open-a, open-b | no | `main` is the queue b, `other` the queue a; open-b has a LimitRange |
| elastic-all | yes | an ElasticQuota that manages all Jobs |
| elastic-open | no | another one |
| elastic-some | no | an ElasticQuota for Jobs that ask for it |
| sound | yes | the queue sound of the cohort abuse; what runs there is in order |
| elastic-sound | no | an ElasticQuota; the same |

Queues of the cohort take back what they have lent, and preempt by priority. Nodes have room for many times
all quota, so whatever the controller starts runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.cluster.objects import (
    ON_DEMAND,
    SPOT,
    cluster_queue,
    elastic_quota,
    local_queue,
    resource_flavor,
)
from tests.faults.api import CORE, OWN, Api

Json = dict[str, Any]

FLAVORS: Final[Mapping[str, Json]] = {"on-demand": ON_DEMAND, "spot": SPOT}
COHORT: Final = "abuse"
ELASTIC: Final = "elastic-quota"
"""The name of a queue by which a Job asks for the elastic quota of its namespace."""
PRIORITIES: Final = {"abuse-low": 10, "abuse-high": 100}
NODES: Final = 3
"""Of each flavor."""
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Ground:
    """A namespace.

    Attributes:
        namespace: its name.
        queues: LocalQueue → ClusterQueue.
        managed: whether nothing may run there that was not admitted.
        elastic: the spec of its ElasticQuota; empty if it has none.
        tenants: how many users try what they can; without any, what runs there is in order.
        defaults: requests by which a LimitRange fills in what pods do not say.
    """

    namespace: str
    queues: Mapping[str, str] = field(default_factory=dict)
    managed: bool = False
    elastic: Mapping[str, Any] = field(default_factory=dict)
    tenants: int = 4
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_count(self) -> bool:
        """Whether each Job of it uses quota, whether or not it names a queue."""
        return bool(self.elastic.get("manageAllJobs"))

    @property
    def own_queue(self) -> str:
        """The queue that a Job in order names."""
        return ELASTIC if self.elastic else "main"

    def queue_of(self, label: str) -> str:
        """The queue, as admissions name it, that a Job with a label uses; empty if there is none."""
        if label == ELASTIC and self.elastic:
            return f"eq_{self.namespace}_quota"
        return self.queues.get(label, "")


def _elastic(least: int, most: int, **more: Any) -> Mapping[str, Any]:
    amounts = {"min": {"cpu": str(least), "memory": "24Gi"}, "max": {"cpu": str(most), "memory": "48Gi"}}
    return {**amounts, **more}


GROUNDS: Final = (
    Ground("managed-a", {"main": "abuse-a", "other": "abuse-b"}, managed=True),
    Ground("managed-b", {"main": "abuse-strict"}, managed=True),
    Ground("open-a", {"main": "abuse-b", "other": "abuse-a"}),
    Ground("open-b", {"main": "abuse-b", "other": "abuse-a"}, defaults={"cpu": "500m"}),
    Ground("elastic-all", managed=True, elastic=_elastic(4, 8, manageAllJobs=True)),
    Ground("elastic-open", elastic=_elastic(4, 8, manageAllJobs=True)),
    Ground("elastic-some", elastic=_elastic(4, 10)),
    Ground("sound", {"main": "abuse-sound"}, managed=True, tenants=0),
    Ground("elastic-sound", elastic=_elastic(6, 8), tenants=0),
)


def queues() -> Iterator[Json]:
    """The ClusterQueues."""
    taking_back = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    shared: Json = {"cohort": COHORT, "preemption": taking_back}
    yield _queue("abuse-a", {"on-demand": ("6", "14"), "spot": ("4", "6")}, **shared)
    yield _queue("abuse-b", {"on-demand": ("4", "16")}, **shared)
    yield _queue("abuse-sound", {"on-demand": ("6", "8")}, **shared)
    strict = _queue("abuse-strict", {"on-demand": ("6", "6")}, queueingStrategy="StrictFIFO")
    pods = {"name": "pods", "flavors": [{"name": "on-demand", "quota": {"min": "5"}}]}
    strict["spec"]["resources"].append(pods)
    strict["spec"]["priorityClasses"] = ["abuse-low"]
    yield strict


def _queue(name: str, cpu: Mapping[str, tuple[str, str]], **spec: Any) -> Json:
    """A ClusterQueue from flavor → `min` and `max` of its CPU."""
    made = cluster_queue(name, {"cpu": {flavor: least for flavor, (least, _) in cpu.items()}}, **spec)
    for flavor in made["spec"]["resources"][0]["flavors"]:
        flavor["quota"]["max"] = cpu[flavor["name"]][1]
    return made


def node(flavor: str, number: int) -> Json:
    """A simulated node."""
    spec = FLAVORS[flavor]
    room = {"cpu": "500", "memory": "4000Gi", "pods": "3000", "nvidia.com/gpu": "64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"abuse-{flavor}-{number}", "labels": spec["nodeLabels"]},
        "spec": {"taints": spec.get("nodeTaints", [])},
        "status": {"capacity": room},
    }


@dataclass(frozen=True)
class Tenant:
    """A user of one namespace, with the role `edit`.

    Attributes:
        name: of the service account.
        ground: its namespace.
    """

    name: str
    ground: Ground


def tenants() -> list[Tenant]:
    """All users that try what they can."""
    return [Tenant(f"tenant-{number}", ground) for ground in GROUNDS for number in range(ground.tenants)]


async def build(api: Api) -> None:
    """Make all of it."""
    for name, value in PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body | {"value": value})
    for flavor, spec in FLAVORS.items():
        await api.create(f"{OWN}/resourceflavors", resource_flavor(flavor, spec))
        for number in range(NODES):
            await api.create(f"{CORE}/nodes", node(flavor, number))
    for queue in queues():
        await api.create(f"{OWN}/clusterqueues", queue)
    for ground in GROUNDS:
        await _ground(api, ground)


async def _ground(api: Api, ground: Ground) -> None:
    namespace = ground.namespace
    labels = {"admitter.dev/managed": "true"} if ground.managed else {}
    await api.create(f"{CORE}/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    for name, queue in ground.queues.items():
        await api.create(f"{OWN}/namespaces/{namespace}/localqueues", local_queue(namespace, queue, name))
    if ground.elastic:
        quota = elastic_quota(namespace, **ground.elastic)
        await api.create(f"{OWN}/namespaces/{namespace}/elasticquotas", quota)
    if ground.defaults:
        limits = [{"type": "Container", "defaultRequest": dict(ground.defaults)}]
        body = {"metadata": {"name": "defaults"}, "spec": {"limits": limits}}
        await api.create(f"{CORE}/namespaces/{namespace}/limitranges", body)
    for number in range(ground.tenants):
        await _user(api, namespace, f"tenant-{number}")


async def _user(api: Api, namespace: str, name: str) -> None:
    """A service account with the role `edit`."""
    await api.create(f"{CORE}/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    body = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    await api.create(f"{RBAC}/namespaces/{namespace}/rolebindings", body)


async def token(api: Api, namespace: str, name: str) -> str:
    """A token of a user, for a day."""
    path = f"{CORE}/namespaces/{namespace}/serviceaccounts/{name}/token"
    made = await api.create(path, {"spec": {"expirationSeconds": 86_400}})
    return str(made["status"]["token"])

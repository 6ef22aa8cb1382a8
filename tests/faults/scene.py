"""The queues that a run of faults is played on.

| queue | what it is there for |
|---|---|
| alpha, beta, gamma | a cohort with borrowing, reclaim and priorities; Jobs without pods |
| strict | StrictFIFO, by itself; Jobs without pods |
| real-a, real-b | a cohort with reclaim; Jobs with pods on simulated nodes |
| elastic-a, elastic-b | namespaces with an ElasticQuota each; Jobs with pods |
| bystander | is deleted, made anew and written over, with its LocalQueue and its flavor |
| burst | thousands of Jobs at once |
| pressed | a long Job that a more important one preempts |
"""

from dataclasses import dataclass
from typing import Any, Final

from tests.cluster.objects import cluster_queue, elastic_quota, local_queue, resource_flavor
from tests.faults.api import CORE, OWN, Api

Json = dict[str, Any]

VIRTUAL: Final = "virtual"
MACHINES: Final = "machines"
SPARE: Final = "spare"
MANAGER: Final = "example.com/crowd"
"""Says of a Job that the crowd stands in for the Job controller."""


@dataclass(frozen=True)
class Place:
    """A queue, and the namespace of the same name.

    Attributes:
        name: of both.
        least: CPU of its own.
        most: CPU that it may use.
        cohort: with which it shares.
        flavor: of its quota.
        share: of all Jobs, in hundredths.
        real: whether its Jobs have pods.
    """

    name: str
    least: int
    most: int
    cohort: str
    flavor: str
    share: int
    real: bool = False


PRESSED: Final = Place("pressed", 4, 4, "alone", VIRTUAL, 0)
PLACES: Final = (
    Place("alpha", 20, 40, "shared", VIRTUAL, 18),
    Place("beta", 20, 40, "shared", VIRTUAL, 18),
    Place("gamma", 10, 30, "shared", VIRTUAL, 14),
    Place("strict", 16, 16, "", VIRTUAL, 20),
    Place("real-a", 6, 12, "real", MACHINES, 6, real=True),
    Place("real-b", 6, 12, "real", MACHINES, 4, real=True),
    Place("bystander", 12, 12, "", SPARE, 12),
    Place("burst", 10, 10, "", VIRTUAL, 0),
    PRESSED,
)
ELASTIC: Final = (
    Place("elastic-a", 6, 12, "", "", 5, real=True),
    Place("elastic-b", 6, 12, "", "", 3, real=True),
)
PRIORITIES: Final = {"low": 10, "high": 100}


def flavors() -> list[Json]:
    """The flavors; only one has nodes of its own."""
    machines = {"nodeLabels": {"instance-type": "on-demand"}}
    return [resource_flavor(VIRTUAL, {}), resource_flavor(SPARE, {}), resource_flavor(MACHINES, machines)]


def queue(place: Place) -> Json:
    """The ClusterQueue of a place."""
    spec: Json = {}
    if place.cohort:
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        spec = {"cohort": place.cohort, "preemption": preemption}
    if place.name == "strict":
        spec["queueingStrategy"] = "StrictFIFO"
    made = cluster_queue(place.name, {"cpu": {place.flavor: str(place.least)}}, **spec)
    if place.cohort:
        made["spec"]["resources"][0]["flavors"][0]["quota"]["max"] = str(place.most)
    return made


def limits(place: Place) -> Json:
    """The spec of the ElasticQuota of a place."""
    return {"min": {"cpu": str(place.least)}, "max": {"cpu": str(place.most)}}


async def build(api: Api) -> None:
    """Make all of it."""
    for name, value in PRIORITIES.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body | {"value": value})
    for flavor in flavors():
        await api.create(f"{OWN}/resourceflavors", flavor)
    for place in (*PLACES, *ELASTIC):
        await api.create(f"{CORE}/namespaces", {"metadata": {"name": place.name}})
    for place in PLACES:
        await api.create(f"{OWN}/clusterqueues", queue(place))
        await api.create(f"{OWN}/namespaces/{place.name}/localqueues", local_queue(place.name, place.name))
    for place in ELASTIC:
        quota = elastic_quota(place.name, **limits(place))
        await api.create(f"{OWN}/namespaces/{place.name}/elasticquotas", quota)

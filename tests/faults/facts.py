"""What the auditor keeps of objects that it sees: read from their JSON alone, with no code of Admitter's."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.quantities import pod_requests, thousandths

Json = dict[str, Any]
Key = tuple[str, str]
"""Flavor and resource."""
Use = Mapping[Key, int]
"""How much of each, in thousandths."""

_LABEL: Final = "admitter.dev/queue-name"


@dataclass(frozen=True, slots=True)
class Admission:
    """What a Workload was given: which quota, how much, in which term; a pod does not tell the last."""

    queue: str
    use: tuple[tuple[Key, int], ...]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadFact:
    """A Workload.

    Attributes:
        uid: its own.
        name: namespace and name.
        job: the UID of its Job; empty if it was made by hand.
        admission: what it holds, or held when it finished.
        finished: whether it is over.
        told: whether the controller has written why it waits.
        asks: resource → how much all of its pods request.
        left: what of its admission it says that it still holds; None: all of it.
    """

    uid: str
    name: str
    job: str
    admission: Admission | None
    finished: bool
    told: bool
    asks: tuple[tuple[str, int], ...]
    left: Admission | None = None


@dataclass(frozen=True, slots=True)
class JobFact:
    """A Job that names a queue.

    Attributes:
        uid: its own.
        name: namespace and name.
        created: when, by the API server's clock in whole seconds.
        suspended: whether it may have no pods.
        finished: whether it is over.
        active: how many pods it says it has, those that end included. None once it says that it is
            suspended: it makes no more, and those that live count by themselves.
        parallelism: how many it may have.
    """

    uid: str
    name: str
    created: str
    suspended: bool
    finished: bool
    active: int
    parallelism: int


@dataclass(frozen=True, slots=True)
class PodFact:
    """A pod that an admission has labelled.

    Attributes:
        uid: its own.
        workload: namespace and name of the Workload with the quota that it uses.
        job: the UID of its Job.
        live: whether it still runs, or may.
        succeeded: whether it has done its work.
        admission: what it uses by itself.
    """

    uid: str
    workload: str
    job: str
    live: bool
    succeeded: bool
    admission: Admission


@dataclass(frozen=True, slots=True)
class QuotaFact:
    """What defines quota: a ClusterQueue or an ElasticQuota.

    Attributes:
        uid: its own.
        name: of the queue, as admissions name it.
        cohort: with which it shares; empty for none.
        strict: whether no Workload may overtake.
        generation: of its spec.
        observed: the generation that the controller has told of.
        least: what it brings.
        most: what it may use; where it is missing there is no limit of its own.
    """

    uid: str
    name: str
    cohort: str
    strict: bool
    generation: int
    observed: int
    least: tuple[tuple[Key, int], ...]
    most: tuple[tuple[Key, int], ...]


Fact = WorkloadFact | JobFact | PodFact | QuotaFact

ELASTIC_POOL: Final = "elastic quotas"
"""All elastic quotas share what any of them leaves."""


def parse(kind: str, raw: Json) -> Fact | None:
    """What counts of an object; None if nothing does.

    Args:
        kind: the plural of its kind.
        raw: the object.
    """
    return _PARSERS[kind](raw)


def quota_name(kind: str, raw: Json) -> str:
    """The queue that an object defines, as admissions name it; empty if its kind defines none."""
    name = raw["metadata"]["name"]
    names = {"clusterqueues": name, "elasticquotas": f"eq_{raw['metadata'].get('namespace')}_{name}"}
    return str(names.get(kind, ""))


def _full(metadata: Json) -> str:
    return f"{metadata['namespace']}/{metadata['name']}"


def _is(status: Json, *kinds: str) -> bool:
    return any(c["type"] in kinds and c["status"] == "True" for c in status.get("conditions") or ())


def _workload(raw: Json) -> WorkloadFact:
    metadata, status = raw["metadata"], raw.get("status") or {}
    made, asks = status.get("admission"), Counter[str]()
    for pod_set in raw["spec"]["podSets"]:
        for resource, quantity in pod_set.get("requests", {}).items():
            asks[resource] += pod_set["count"] * thousandths(quantity)
    return WorkloadFact(
        metadata["uid"],
        _full(metadata),
        next((o["uid"] for o in metadata.get("ownerReferences") or () if o["kind"] == "Job"), ""),
        _admission(made) if made else None,
        _is(status, "Finished"),
        status.get("state") == "Pending" and bool(status.get("reason")),
        tuple(sorted(asks.items())),
        _admission(made, {each["name"]: each["count"] for each in status["held"]})
        if made and status.get("held")
        else None,
    )


def _admission(made: Json, held: Mapping[str, int] | None = None) -> Admission:
    """What was admitted; of pod sets that hold less, as much as these pods use."""
    use: Counter[Key] = Counter()
    pool = bool(made.get("pool"))
    for pod_set in made["podSets"]:
        pods = (held or {}).get(pod_set.get("name", ""), pod_set.get("count", 1))
        for resource, quantity in pod_set["usage"].items():
            flavor = "" if pool else pod_set["flavors"][resource]
            use[flavor, resource] += thousandths(quantity) * pods // max(1, pod_set.get("count", 1))
    return Admission(made["clusterQueue"], tuple(sorted(use.items())), made.get("epoch", 0))


def _job(raw: Json) -> JobFact | None:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    if not (metadata.get("labels") or {}).get(_LABEL):
        return None
    return JobFact(
        metadata["uid"],
        _full(metadata),
        metadata["creationTimestamp"],
        bool(spec.get("suspend")),
        _is(status, "Complete", "Failed"),
        0 if _is(status, "Suspended") else status.get("active", 0) + status.get("terminating", 0),
        spec.get("parallelism", 1),
    )


def _pod(raw: Json) -> PodFact | None:
    metadata, phase = raw["metadata"], (raw.get("status") or {}).get("phase")
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if "admitter.dev/workload" not in labels:
        return None
    flavors = json.loads(annotations.get("admitter.dev/flavors", "{}"))
    pool = "pool" in json.loads(annotations.get("admitter.dev/counted", "{}"))
    use: Counter[Key] = Counter()
    for resource, amount in pod_requests(raw["spec"]).items():
        if resource in flavors:
            use["" if pool else flavors[resource], resource] += amount
    return PodFact(
        metadata["uid"],
        f"{metadata['namespace']}/{labels['admitter.dev/workload']}",
        next((o["uid"] for o in metadata.get("ownerReferences") or () if o["kind"] == "Job"), ""),
        phase not in {"Succeeded", "Failed"},
        phase == "Succeeded",
        Admission(labels.get("admitter.dev/cluster-queue", ""), tuple(sorted(use.items()))),
    )


def _observed(status: Json) -> int:
    found = (c.get("observedGeneration", 0) for c in status.get("conditions") or () if c["type"] == "Active")
    return next(found, 0)


def _cluster_queue(raw: Json) -> QuotaFact:
    metadata, spec = raw["metadata"], raw["spec"]
    least: Counter[Key] = Counter()
    most: dict[Key, int] = {}
    for resource in spec.get("resources") or ():
        for flavor in resource["flavors"]:
            key, quota = (flavor["name"], resource["name"]), flavor["quota"]
            least[key] = thousandths(quota.get("min", "0"))
            if "max" in quota:
                most[key] = thousandths(quota["max"])
            elif not spec.get("cohort"):
                most[key] = least[key]
    return QuotaFact(
        metadata["uid"],
        metadata["name"],
        spec.get("cohort") or "",
        spec.get("queueingStrategy") == "StrictFIFO",
        metadata["generation"],
        _observed(raw.get("status") or {}),
        tuple(sorted(least.items())),
        tuple(sorted(most.items())),
    )


def _elastic_quota(raw: Json) -> QuotaFact:
    metadata, spec = raw["metadata"], raw["spec"]
    return QuotaFact(
        metadata["uid"],
        quota_name("elasticquotas", raw),
        ELASTIC_POOL,
        strict=False,
        generation=metadata["generation"],
        observed=_observed(raw.get("status") or {}),
        least=tuple(sorted((("", r), thousandths(q)) for r, q in (spec.get("min") or {}).items())),
        most=tuple(sorted((("", r), thousandths(q)) for r, q in (spec.get("max") or {}).items())),
    )


_PARSERS: Final = {
    "jobs": _job,
    "workloads": _workload,
    "pods": _pod,
    "clusterqueues": _cluster_queue,
    "elasticquotas": _elastic_quota,
}

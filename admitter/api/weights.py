"""How much the pod sets of a Workload say, so that none takes more than a bounded part of a process.

Every name and value counts its characters, and what the objects of Python that hold it take beside them. The
API server refuses what is too heavy by `RULE`, which is the same sum in CEL.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Json = Mapping[str, Any]

HEAVIEST: Final = 32_768
"""Of all pod sets of a Workload together: some 300 names of nodes, or 200 tolerations."""

VALUE: Final = 64
ENTRY: Final = 128

MESSAGE: Final = (
    f"spec.podSets: their names and values may weigh {HEAVIEST} in all: their characters, {VALUE} for each "
    f"value, and {ENTRY} for each request, label, toleration, term and requirement"
)


def weight(pod_sets: Iterable[Json]) -> int:
    """The sum over pod sets of a Workload's spec."""
    return sum(map(_weight, pod_sets))


def _weight(pod_set: Json) -> int:
    required = ((pod_set.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return (
        sum(ENTRY + len(name) for name in pod_set.get("requests") or ())
        + sum(ENTRY + len(k) + len(v) for k, v in (pod_set.get("nodeSelector") or {}).items())
        + sum(
            ENTRY + len(t.get("key") or "") + len(t.get("value") or "")
            for t in pod_set.get("tolerations") or ()
        )
        + sum(
            ENTRY
            + sum(_of_requirements(term.get(part) or ()) for part in ("matchExpressions", "matchFields"))
            for term in required.get("nodeSelectorTerms") or ()
        )
    )


def _of_requirements(requirements: Iterable[Json]) -> int:
    return sum(
        ENTRY + len(each["key"]) + sum(VALUE + len(value) for value in each.get("values") or ())
        for each in requirements
    )


def _requirements(part: str) -> str:
    values = f"(has(e.values) ? e.values.map(v, {VALUE} + v.size()).sum() : 0)"
    return f"(has(t.{part}) ? t.{part}.map(e, {ENTRY} + e.key.size() + {values}).sum() : 0)"


_REQUIRED: Final = "p.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_TERMS: Final = (
    f"{_REQUIRED}.nodeSelectorTerms.map(t, {ENTRY} + {_requirements('matchExpressions')} "
    f"+ {_requirements('matchFields')}).sum()"
)
RULE: Final = (
    "self.podSets.map(p, "
    f"(has(p.requests) ? p.requests.map(k, {ENTRY} + k.size()).sum() : 0) "
    f"+ (has(p.nodeSelector) ? p.nodeSelector.map(k, {ENTRY} + k.size() + p.nodeSelector[k].size()).sum() "
    ": 0) "
    f"+ (has(p.tolerations) ? p.tolerations.map(t, {ENTRY} + (has(t.key) ? t.key.size() : 0) "
    "+ (has(t.value) ? t.value.size() : 0)).sum() : 0) "
    f"+ (has(p.affinity) && has(p.affinity.nodeAffinity) && has({_REQUIRED}) ? {_TERMS} : 0)"
    f").sum() <= {HEAVIEST}"
)

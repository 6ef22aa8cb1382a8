"""The pods of a Job as an entry of `Workload.spec.podSets`, in JSON; what is kept of a pod's spec for that.

Two derivations from the same Job are equal, so that a difference means that the Job has changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from admitter.convert.pod_requests import pod_requests
from admitter.quantities.amounts import to_quantity

Json = dict[str, Any]

_FIELDS: Final = (
    "resources",
    "overhead",
    "nodeSelector",
    "tolerations",
    "runtimeClassName",
    "priorityClassName",
    "resourceClaims",
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_set(
    name: str,
    template: Mapping[str, Any],
    count: int,
    limit_ranges: Sequence[Mapping[str, Any]],
    runtime_classes: Mapping[str, Mapping[str, Any]],
) -> Json:
    """One pod set with so many pods at a time; what is empty is left out. Arguments as of `pod_requests`.

    Raises:
        InvalidQuantityError: a request can't be counted.
    """
    requests = pod_requests(template, limit_ranges, runtime_classes)
    fields: Json = {
        "requests": {resource: to_quantity(resource, amount) for resource, amount in requests.items()},
        "nodeSelector": dict(sorted((template.get("nodeSelector") or {}).items())),
        "affinity": template.get("affinity"),
        "tolerations": template.get("tolerations"),
    }
    return {"name": name, "count": count} | {key: value for key, value in fields.items() if value}


def job_count(spec: Mapping[str, Any], status: Mapping[str, Any]) -> int:
    """How many pods of a Job run at a time: min(parallelism, completions left), never below 0."""
    parallelism: int = spec["parallelism"]
    completions: int | None = spec["completions"]
    if completions is None:
        return parallelism
    return max(0, min(parallelism, completions - int(status["succeeded"])))


def claims(template: Mapping[str, Any]) -> bool:
    """Whether the pods use resource claims."""
    containers = (*(template.get("containers") or ()), *(template.get("initContainers") or ()))
    return bool(template.get("resourceClaims")) or any(
        (container.get("resources") or {}).get("claims") for container in containers
    )


def _kept_containers(containers: list[Json] | None) -> list[Json]:
    return [
        {k: v for k, v in container.items() if k in {"resources", "restartPolicy"}}
        for container in containers or ()
    ]


def kept_template(spec: Json) -> Json:
    """Of a pod's spec, what it requests and which nodes it accepts."""
    kept = {field: spec[field] for field in _FIELDS if spec.get(field)}
    kept["containers"] = _kept_containers(spec.get("containers"))
    if spec.get("initContainers"):
        kept["initContainers"] = _kept_containers(spec["initContainers"])
    if required := required_affinity(spec):
        kept["affinity"] = {"nodeAffinity": {_REQUIRED: required}}
    return kept


def required_affinity(spec: Json) -> Json:
    """The node selector that a pod's affinity requires; empty if it requires none."""
    return ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}

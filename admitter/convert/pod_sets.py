"""The pods of a Job as an entry of `Workload.spec.podSets`, in JSON.

Two derivations from the same Job are equal, so that a difference means that the Job has changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from admitter.convert.pod_requests import pod_requests
from admitter.quantities.amounts import to_quantity

Json = dict[str, Any]


def pod_set(
    name: str,
    template: Mapping[str, Any],
    count: int,
    limit_ranges: Sequence[Mapping[str, Any]],
    runtime_classes: Mapping[str, Mapping[str, Any]],
) -> Json:
    """One pod set; what is empty is left out.

    Args:
        name: of the pod set.
        template: the spec of the pod template.
        count: how many pods run at a time.
        limit_ranges: specs of the namespace's LimitRanges.
        runtime_classes: by name.

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

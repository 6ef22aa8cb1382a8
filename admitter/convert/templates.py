"""What is kept of a pod's spec: what it requests, and which nodes it accepts."""

from typing import Any, Final

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

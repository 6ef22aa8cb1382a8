"""What one pod requests, as the scheduler will count it.

A pod template is not what gets scheduled: the API server adds requests from limits, LimitRanges and the
RuntimeClass when the pod is made. The steps here are those of the API server, in its order.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from admitter.api.base import in_parts
from admitter.quantities.amounts import Amounts, InvalidQuantityError, parse_quantity, rounded_up

Json = Mapping[str, Any]
Vector = dict[str, Fraction]

HUGE_PAGES: Final = "hugepages-"


def pod_requests(
    spec: Json, limit_ranges: Sequence[Json] = (), runtime_classes: Mapping[str, Json] | None = None
) -> Amounts:
    """The requests of a pod made from the spec of a pod or pod template.

    LimitRanges are given by their specs. Where several have a default for the same resource the API server
    takes any of them; the largest is counted. The RuntimeClass that the pod names adds its overhead.

    Raises:
        InvalidQuantityError: names the field.
    """
    regular = [_container(c, f"containers[{i}]") for i, c in enumerate(spec.get("containers") or ())]
    init = [_container(c, f"initContainers[{i}]") for i, c in enumerate(spec.get("initContainers") or ())]
    sidecars = [c.get("restartPolicy") == "Always" for c in spec.get("initContainers") or ()]
    whole_pod = _pod_level(spec.get("resources") or {}, _aggregated(regular, init, sidecars))
    defaults = _defaults(limit_ranges)
    for container in (*regular, *init):
        for resource, value in defaults.items():
            container.setdefault(resource, value)
    total = _aggregated(regular, init, sidecars) | whole_pod
    _add(total, _overhead(spec, runtime_classes or {}))
    return {resource: rounded_up(resource, total[resource]) for resource in sorted(total)}


def _container(container: Json, path: str) -> Vector:
    """A container's requests; what has only a limit requests that much."""
    resources = container.get("resources") or {}
    limits = _vector(resources.get("limits"), f"{path}.resources.limits")
    return limits | _vector(resources.get("requests"), f"{path}.resources.requests")


def _aggregated(regular: Iterable[Vector], init: Sequence[Vector], sidecars: Sequence[bool]) -> Vector:
    """What all containers need at a time.

    Regular containers and sidecars run together; before that each init container runs beside the
    sidecars listed before it. The pod needs the largest of these, resource by resource.
    """
    together: Vector = {}
    for container in regular:
        _add(together, container)
    started: Vector = {}
    peak: Vector = {}
    for container, is_sidecar in zip(init, sidecars, strict=True):
        stage = dict(started)
        _add(stage, container)
        if is_sidecar:
            _add(together, container)
            started = stage
        peak = _larger(peak, stage)
    return _larger(together, peak)


def _pod_level(resources: Json, containers: Vector) -> Vector:
    """Requests of the pod as a whole; they take the place of its containers' sum."""
    requests = _vector(resources.get("requests"), "resources.requests")
    limits = _vector(resources.get("limits"), "resources.limits")
    if limits:
        from_containers = {r: v for r, v in containers.items() if r in {"cpu", "memory"}}
        requests = limits | from_containers | requests
    return {r: v for r, v in requests.items() if r in {"cpu", "memory"} or r.startswith(HUGE_PAGES)}


def _defaults(limit_ranges: Sequence[Json]) -> Vector:
    """Default requests of containers by LimitRanges: if not said, default limits, maxima, or minima.

    An API server fills these in when the LimitRange is written.
    """
    result: Vector = {}
    for limits in limit_ranges:
        for limit in limits.get("limits") or ():
            if limit.get("type") == "Container":
                defaults: Vector = {}
                for field in ("min", "max", "default", "defaultRequest"):  # the later one counts
                    defaults |= _vector(limit.get(field), f"LimitRange.{field}")
                result = _larger(result, defaults)
    return result


def _overhead(spec: Json, runtime_classes: Mapping[str, Json]) -> Vector:
    """What the pod's runtime takes beside its containers."""
    if spec.get("overhead"):
        return _vector(spec["overhead"], "overhead")
    runtime_class = runtime_classes.get(spec.get("runtimeClassName") or "", {})
    fixed = (runtime_class.get("overhead") or {}).get("podFixed")
    return _vector(fixed, "RuntimeClass.overhead.podFixed")


def _vector(quantities: Mapping[str, str | int] | None, path: str) -> Vector:
    result = {}
    for resource, quantity in (quantities or {}).items():
        try:
            result[resource] = parse_quantity(quantity)
        except InvalidQuantityError as error:
            raise InvalidQuantityError(f"{path}[{resource}]: {error}") from error
        if wrong := in_parts(resource, quantity):
            raise InvalidQuantityError(f"{path}: {wrong}")
    return result


def _add(into: Vector, other: Vector) -> None:
    for resource, value in other.items():
        into[resource] = into.get(resource, Fraction(0)) + value


def _larger(left: Vector, right: Vector) -> Vector:
    nothing = Fraction(0)
    return {r: max(left.get(r, nothing), right.get(r, nothing)) for r in {**left, **right}}

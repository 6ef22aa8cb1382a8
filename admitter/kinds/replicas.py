"""What a JobKind says of how the number of replicas of a pod set changes while its object runs.

Next: `admitter.policy.replicas` says how many an object may have (docs/design/growing.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from admitter.api.job_kind import Growth
from admitter.kinds.paths import MISSING, Segment, get, segments

MOST_REPLICAS: Final = 2**31 - 1
"""The bound of a pod set that names none: no object has more."""
MOST_ENDING: Final = 1000
"""Names of pods that are kept of a list of those that are to end."""
_NUMBERS: Final = ("size", "bound", "pods", "autoscales", "grows")


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas of a pod set that may change while its object runs."""

    size: int  # how many the object asks for
    bound: int | None  # the most that its operator runs; None: nothing is said, so any number
    pods: int  # how many pods each has
    autoscales: bool  # whether an autoscaler asks, which never asks for more than the bound
    size_at: tuple[Segment, ...]  # where the number is in the object
    bound_at: tuple[Segment, ...]  # where the bound is
    ending_at: tuple[Segment, ...] | None = None  # where pods are named that are to end
    ending: tuple[str, ...] = ()  # those that are named now
    label: str = ""  # the label of its pods with the name of the pod set
    replica_label: str = ""  # the label that all pods of a replica have in common; empty: there is none
    grows: bool = True  # whether it may grow as it is

    @property
    def places(self) -> tuple[tuple[Segment, ...], ...]:
        """Where the object has the fields that are written."""
        return (self.size_at, self.bound_at, self.ending_at or ())

    @property
    def limit(self) -> int:
        """The most that its operator runs."""
        return MOST_REPLICAS if self.bound is None else self.bound


def of_element(
    form: Growth, element: object, base: tuple[Segment, ...], pods: int, *, autoscales: bool, grows: bool
) -> Replicas:
    """What an element says, in which the paths of a pod set begin; `base` is where it is in the object."""
    size, bound = (get(element, segments(each)) for each in (form.replicas, form.bound))
    listed = get(element, segments(form.ending)) if form.ending is not None else ()
    return Replicas(
        _number(size) or 0,
        _number(bound),
        max(1, pods),
        autoscales,
        (*base, *segments(form.replicas)),
        (*base, *segments(form.bound)),
        (*base, *segments(form.ending)) if form.ending is not None else None,
        tuple(map(str, listed[:MOST_ENDING])) if isinstance(listed, list) else (),
        form.label,
        form.replica_label or "",
        grows,
    )


def recorded(replicas: Replicas) -> dict[str, Any]:
    """What snapshots keep of them: the numbers, as nothing is written to an object of a snapshot."""
    return {name: getattr(replicas, name) for name in _NUMBERS}


def of_record(raw: Mapping[str, Any]) -> Replicas:
    """Replicas of which a snapshot has kept this."""
    return Replicas(**{name: raw[name] for name in _NUMBERS}, size_at=(), bound_at=())


def _number(value: Any) -> int | None:  # noqa: ANN401  # whatever JSON has
    """A number of replicas; None if nothing, or something else, stands there."""
    written = value is not MISSING and isinstance(value, int) and not isinstance(value, bool)
    return min(max(0, value), MOST_REPLICAS) if written else None

"""How many pods an admitted Workload may run, as its status says (docs/design/growing.md)."""

from dataclasses import dataclass

from admitter.cache.timestamps import seconds
from admitter.cache.views import Json, WorkloadView


@dataclass(frozen=True, slots=True)
class PartStatus:
    """What it says of one pod set."""

    wanted: int  # as below, of this pod set
    granted: int

    @property
    def target(self) -> int:
        """How many pods its operator may run."""
        return min(self.wanted, self.granted)

    @property
    def shrinks(self) -> bool:
        """Whether pods are to end."""
        return self.wanted < self.granted


@dataclass(frozen=True, slots=True)
class ResizeStatus:
    """What `status.resize` says."""

    wanted: int  # how many pods it is to have; fewer than granted: the others are to end
    granted: int  # how many may live
    changed: float  # when either was decided, in seconds since the epoch
    # of an object of a described kind: the same for each pod set that has grown, or could
    parts: tuple[tuple[str, PartStatus], ...] = ()

    @property
    def target(self) -> int:
        """How many pods its Job, or its operator, may run."""
        if self.parts:
            return self.granted - sum(part.granted - part.target for _, part in self.parts)
        return min(self.wanted, self.granted)

    @property
    def shrinks(self) -> bool:
        """Whether pods are to end."""
        return self.target < self.granted

    def part(self, name: str) -> PartStatus | None:
        """What it says of a pod set; None if nothing."""
        return next((part for known, part in self.parts if known == name), None)


def resize_of(workload: WorkloadView) -> ResizeStatus | None:
    """What a Workload that holds quota may run; None if it has never grown."""
    raw: Json | None = workload.status.get("resize")
    if not raw or workload.admission is None:
        return None
    listed = raw.get("podSets") or ()
    parts = tuple((each["name"], PartStatus(each["wanted"], each["granted"])) for each in listed)
    return ResizeStatus(raw["wanted"], raw["granted"], seconds(raw["changedAt"]), parts)

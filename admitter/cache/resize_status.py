"""How many pods an admitted Workload may run, as its status says (docs/design/growing.md)."""

from dataclasses import dataclass

from admitter.cache.timestamps import seconds
from admitter.cache.views import Json, WorkloadView


@dataclass(frozen=True, slots=True)
class ResizeStatus:
    """What `status.resize` says."""

    wanted: int  # how many pods it is to have; fewer than granted: the others are to end
    granted: int  # how many may live
    changed: float  # when either was decided, in seconds since the epoch

    @property
    def target(self) -> int:
        """The parallelism that its Job is to have."""
        return min(self.wanted, self.granted)

    @property
    def shrinks(self) -> bool:
        """Whether pods are to end."""
        return self.wanted < self.granted


def resize_of(workload: WorkloadView) -> ResizeStatus | None:
    """What a Workload that holds quota may run; None if it has never grown."""
    raw: Json | None = workload.status.get("resize")
    if not raw or workload.admission is None:
        return None
    return ResizeStatus(raw["wanted"], raw["granted"], seconds(raw["changedAt"]))

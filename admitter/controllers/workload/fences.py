"""No patch of a grant comes to a job object any more once that grant is lowered.

A grant is raised first, and its object patched next. That patch may still be on its way when pods have to
end again: it was sent by an earlier leader, or its answer is lost. It names a version of the object, so the
object is given another one before its grant is lowered.
"""

from dataclasses import dataclass, field

from admitter.cache.resize_status import ResizeStatus
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World
from admitter.client.transport import Transport
from admitter.controllers.workload.writes import bar
from admitter.policy.status import Clock

_Targets = frozenset[tuple[str, int]]  # of pod sets that shrink, how many pods each is to have


@dataclass(eq=False)
class Fences:
    """Remembers which objects were written since their pods have to end; after a restart it writes again."""

    world: World
    transport: Transport
    clock: Clock
    # by UID of a Workload: when it was decided, for which pod sets, and when its object was written
    _since: dict[str, tuple[float, _Targets, float]] = field(default_factory=dict)

    def written(self, workload: WorkloadView, resize: ResizeStatus) -> None:
        """An object was patched for what its Workload says now."""
        if self.since(workload, resize) is None:
            self._since[workload.uid] = (resize.changed, _targets(resize), self.clock().timestamp())

    def since(self, workload: WorkloadView, resize: ResizeStatus) -> float | None:
        """Since when nothing else is on its way, in seconds since the epoch; None if that is not known."""
        changed, targets, since = self._since.get(workload.uid, (0.0, frozenset(), 0.0))
        return since if changed == resize.changed and _targets(resize) <= targets else None

    async def close(self, job: JobView, workload: WorkloadView, resize: ResizeStatus) -> None:
        """Write an object once, if its pods have to end and it is as it is to be."""
        if resize.shrinks and self.since(workload, resize) is None:
            await bar(job, str(job.version), self.world, self.transport)
            self.written(workload, resize)

    def forget(self, uid: str) -> None:
        """No pods of a Workload have to end any more."""
        self._since.pop(uid, None)


def _targets(resize: ResizeStatus) -> _Targets:
    parts = resize.parts or (("", resize),)
    return frozenset((name, part.target) for name, part in parts if part.shrinks)

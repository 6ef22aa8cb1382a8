"""How much of every queue's quota is in use."""

from collections import defaultdict
from collections.abc import Mapping

from admitter.engine.model import Admission, FlavorResource

_NOTHING: Mapping[FlavorResource, int] = {}


class Ledger:
    """Reservations by holder, and their sums by queue, flavor and resource.

    It counts for queues that are not defined too: what is reserved stays counted while its queue
    is edited or away.
    """

    def __init__(self) -> None:
        self._held: dict[str, Admission] = {}
        self._used: defaultdict[str, defaultdict[FlavorResource, int]] = defaultdict(lambda: defaultdict(int))

    def held(self, holder: str) -> Admission | None:
        """What a holder has reserved."""
        return self._held.get(holder)

    def used(self, queue: str) -> Mapping[FlavorResource, int]:
        """The use of a queue by flavor and resource; what is missing is 0."""
        return self._used.get(queue, _NOTHING)

    def reserve(self, holder: str, admission: Admission) -> None:
        """Set what a holder has reserved, in place of what it had."""
        self.release(holder)
        self._held[holder] = admission
        used = self._used[admission.queue]
        for flavor_resource, amount in admission.usage():
            used[flavor_resource] += amount

    def release(self, holder: str) -> Admission | None:
        """Free what a holder has reserved; returns it."""
        admission = self._held.pop(holder, None)
        if admission is not None:
            used = self._used[admission.queue]
            for flavor_resource, amount in admission.usage():
                used[flavor_resource] -= amount
                if not used[flavor_resource]:
                    del used[flavor_resource]
            if not used:
                del self._used[admission.queue]
        return admission

"""The preemptor of each victim, known until the victim is admitted again.

As long as the preemptor has the place, or a workload that evicted the preemptor in turn, the victim is
*displaced*, and may not evict workloads that could come back for it (docs/design/preemption.md).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator


class Displacements:
    """Victims and preemptors, by UID; a victim has one preemptor, the last one."""

    def __init__(self) -> None:
        self._preemptors: dict[str, str] = {}
        self._victims: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Each victim and its preemptor."""
        return iter(self._preemptors.items())

    def __bool__(self) -> bool:
        return bool(self._preemptors)

    def make(self, victim: str, preemptor: str) -> None:
        """A victim is evicted for a preemptor, in place of an earlier one."""
        self.end(victim)
        self._preemptors[victim] = preemptor
        self._victims[preemptor][victim] = None

    def end(self, victim: str) -> None:
        """A victim is evicted no longer, or admitted again; one that was not is no error."""
        preemptor = self._preemptors.pop(victim, None)
        if preemptor is not None:
            del self._victims[preemptor][victim]
            if not self._victims[preemptor]:
                del self._victims[preemptor]

    def displaced_by(self, preemptor: str, has_place: Callable[[str], bool]) -> list[str]:
        """The victims of a workload, and the victims of those that have no reservation since, and so on.

        `has_place` says by its UID whether a workload has a pending reservation.
        """
        if preemptor not in self._victims:
            return []
        found: dict[str, None] = {}
        preemptors = [preemptor]
        while preemptors:
            victims = [each for each in self.victims(preemptors.pop()) if each not in found]
            found.update(dict.fromkeys(victims))
            preemptors += [each for each in victims if each in self._victims and not has_place(each)]
        return list(found)

    def preemptor(self, victim: str) -> str | None:
        return self._preemptors.get(victim)

    def victims(self, preemptor: str) -> list[str]:
        return list(self._victims.get(preemptor, ()))

"""For which workload another one was evicted: known until the evicted one is admitted again.

What an eviction promises outlives it: as long as the place is kept, or held, by what it was made for, or by
what took that over in turn, the evicted workload is *displaced*, and may not evict what could come back
for it (docs/design/preemption.md).
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
        """A victim is evicted for a preemptor, for whichever it was before."""
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
        """What was evicted for a workload, or for what was evicted for it and has no place since, and so on.

        Args:
            preemptor: UID of the workload.
            has_place: says by its UID whether a place is kept for a workload.
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
        """For which workload a victim was evicted."""
        return self._preemptors.get(victim)

    def victims(self, preemptor: str) -> list[str]:
        """What was evicted for a workload."""
        return list(self._victims.get(preemptor, ()))

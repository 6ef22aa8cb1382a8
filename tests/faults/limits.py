"""Limits as administrators change them: which of them an admission has to keep to.

An edit binds a controller that has seen it, and not what was decided before and is on its way. That it has
been seen is told by the API itself: the queue's status names the generation. So a limit binds

- every Workload that came into being after that status (its decision was made with the edit), and
- every admission `GRACE_SECONDS` after that status, or `UNSEEN_SECONDS` after the edit if no status tells.

Of several limits that may have been meant the largest counts. So what is found is a fault beyond doubt.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.faults.facts import Key, QuotaFact

GRACE_SECONDS: Final = 60.0
"""A decision may be on its way for so long: calls are held back, repeated, and may take half a minute."""
UNSEEN_SECONDS: Final = 240.0
"""A watch may be silent for so long, and then the process stand still, before a controller sees an edit."""


@dataclass(slots=True)
class Version:
    """The limits from one edit to the next.

    Attributes:
        amounts: of each flavor and resource; where one is missing there is no limit.
        made: when the auditor heard of it, in seconds.
        awaits: the UID and generation that a status has to name; None if no status can.
        seen: the resource version at which one did, and when that was.
    """

    amounts: Mapping[Key, int]
    made: float
    awaits: tuple[str, int] | None
    seen: tuple[int, float] | None = None


@dataclass(slots=True)
class History:
    """The limits of one queue or cohort, the oldest first.

    Attributes:
        missing: what counts where a version names no amount; None for no limit.
        versions: all of them.
    """

    missing: int | None = None
    versions: list[Version] = field(default_factory=list)

    def change(self, version: Version) -> None:
        """Add limits if they differ from the newest ones."""
        if not self.versions or self.versions[-1].amounts != version.amounts:
            self.versions.append(version)

    def observe(self, uid: str, generation: int, seen: tuple[int, float]) -> None:
        """A status names a generation."""
        for version in self.versions:
            if version.seen is None and version.awaits is not None:
                awaited_uid, awaited = version.awaits
                if awaited_uid == uid and awaited <= generation:
                    version.seen = seen

    def allowed(self, key: Key, born: int, now: float) -> int | None:
        """The most that may be used of a flavor and resource; None for no limit.

        Args:
            key: flavor and resource.
            born: the resource version of the first sight of the Workload that is admitted.
            now: when it is, in seconds.
        """
        first = 0
        for number, version in enumerate(self.versions):
            causal = version.seen is not None and version.seen[0] <= born
            late = version.seen is not None and version.seen[1] + GRACE_SECONDS <= now
            if causal or late or version.made + UNSEEN_SECONDS <= now:
                first = number
        amounts = [version.amounts.get(key, self.missing) for version in self.versions[first:]]
        return None if None in amounts or not amounts else max(a for a in amounts if a is not None)


class Limits:
    """The limits of all queues, and of the cohorts that they share in."""

    def __init__(self) -> None:
        self.queues: dict[str, QuotaFact] = {}
        self._of_queue: dict[str, History] = defaultdict(History)
        self._of_cohort: dict[str, History] = defaultdict(lambda: History(missing=0))

    def members(self, cohort: str) -> list[str]:
        """The queues of a cohort."""
        return [name for name, queue in self.queues.items() if queue.cohort == cohort]

    def take(self, name: str, queue: QuotaFact | None, version: int, now: float) -> None:
        """A queue came, changed or went (None).

        Args:
            name: of the queue.
            queue: as it is now.
            version: the resource version at which it was so.
            now: when it was heard of, in seconds.
        """
        before = self.queues.pop(name, None)
        if queue is not None:
            self.queues[name] = queue
        awaits = (queue.uid, queue.generation) if queue is not None else None
        amounts = dict(queue.most) if queue is not None else {}
        self._of_queue[name].change(Version(amounts, now, awaits))
        for cohort in {q.cohort for q in (before, queue) if q is not None and q.cohort}:
            total: Counter[Key] = Counter()
            for member in self.members(cohort):
                total.update(dict(self.queues[member].least))
            self._of_cohort[cohort].change(Version(dict(total), now, awaits))
        if queue is not None and queue.observed:
            for history in (self._of_queue[name], self._of_cohort[queue.cohort]):
                history.observe(queue.uid, queue.observed, (version, now))

    def of_queue(self, name: str, key: Key, born: int, now: float) -> int | None:
        """What a queue may use of a flavor and resource; arguments as of `History.allowed`."""
        return self._of_queue[name].allowed(key, born, now)

    def of_cohort(self, name: str, key: Key, born: int, now: float) -> int | None:
        """What the queues of a cohort may use together; arguments as of `History.allowed`."""
        return self._of_cohort[name].allowed(key, born, now)

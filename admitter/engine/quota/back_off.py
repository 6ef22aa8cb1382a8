"""Places that evictions have made and that are given back unused: their queue evicts nothing for a while.

A workload that is deleted, paused or changed before it has used such a place has cost its victims their work
for nothing. Workloads that are made and deleted again and again would evict without end; so each time counts
against the queue and namespace, and the pause until these may evict again doubles
(docs/design/preemption.md, *Places that are given back*).
"""

from dataclasses import dataclass
from typing import Final

from admitter.engine.quota.ledger import Ledger

FIRST_SECONDS: Final = 10  # for how long nothing is evicted after the first place
LONGEST_SECONDS: Final = 600
"""For how long at most. A workload that has held its quota as long has used it; after as long a quiet time
one counts less."""
MOST: Final = 7  # as many count at most: with them the pause has its longest

Pair = tuple[str, str]  # a queue, and a namespace with workloads in it


@dataclass(frozen=True, slots=True)
class BackOff:
    """A time in which the workloads of a queue and namespace evict nothing."""

    count: int  # how often a place was given back lately, this time included
    until: float  # when it is over, in seconds since the epoch


def seconds(count: int) -> int:
    """How long the back-off is after so many."""
    return int(min(FIRST_SECONDS * 2 ** (count - 1), LONGEST_SECONDS))


class ReturnedReservations:
    """Follows the places that evictions have made, and what becomes of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.lasting: dict[Pair, BackOff] = {}  # the back-offs that are not over, as of the last turn
        # UIDs of workloads with places that evictions have made, and that they have not used
        self.gained: set[str] = set()
        self._known: dict[Pair, BackOff] = {}
        self._news: list[tuple[Pair, float | None]] = []
        self._taken_up: dict[Pair, BackOff] = {}

    @property
    def changed(self) -> bool:
        """Whether a turn is due, whatever the time."""
        return bool(self._news or self._taken_up)

    @property
    def ends(self) -> list[float]:
        """When each lasting back-off ends, in seconds since the epoch."""
        return [each.until for each in self.lasting.values()]

    @property
    def known(self) -> list[tuple[Pair, BackOff]]:
        """All back-offs that count still, those included that are over."""
        return [*self._known.items()]

    def of(self, queue: str, namespace: str) -> BackOff | None:
        """The back-off of a queue and namespace; None if it has none now."""
        return self.lasting.get((queue, namespace)) if self.lasting else None

    def note(self, uid: str) -> None:
        """The user of a workload gives its place back; whether that counts is found at the next turn."""
        reserved = self._ledger.pending_reservations.get(uid) or self._ledger.held(uid)
        if uid in self.gained and reserved is not None and not self._ledger.evicting(uid):
            held = self._ledger.held(uid)
            self._news.append(
                ((reserved.queue, reserved.namespace), held.since if held is not None else None)
            )
        self.gained.discard(uid)

    def use(self, uid: str) -> bool:
        """A workload uses its place: to give it back counts no longer; returns whether it did before."""
        counted = uid in self.gained
        self.gained.discard(uid)
        return counted

    def passed(self, former: str, uid: str) -> None:
        """Another workload took over the reservation of this one: that gives nothing back."""
        if former in self.gained:
            self.gained.remove(former)
            self.gained.add(uid)

    def take_up(self, queue: str, namespace: str, back_off: BackOff) -> None:
        """Take up a back-off that began before this engine lived; the later of two counts."""
        known = self._taken_up.get((queue, namespace)) or self._known.get((queue, namespace))
        if known is None or known.until < back_off.until:
            self._taken_up[queue, namespace] = back_off

    def turn(self, now: float) -> set[Pair]:
        """Begin and end back-offs, as of now; returns the queues and namespaces of those that have changed.

        What is given back while one lasts is part of it: no eviction was decided since it began.
        """
        changed = {pair for pair, each in self.lasting.items() if each.until <= now}
        for pair in changed:
            del self.lasting[pair]
        taken_up, self._taken_up = self._taken_up, {}
        for pair, each in taken_up.items():
            self._known[pair] = each
            if each.until > now:
                self.lasting[pair] = each
                changed.add(pair)
        news, self._news = self._news, []
        for pair, since in news:
            used = since is not None and now - since >= LONGEST_SECONDS
            if pair in self.lasting or used:
                continue
            count = min(self._left(pair, now) + 1, MOST)
            self.lasting[pair] = self._known[pair] = BackOff(count, now + seconds(count))
            changed.add(pair)
        for pair in [pair for pair in self._known if not self._left(pair, now)] if changed else ():
            del self._known[pair]
        return changed

    def _left(self, pair: Pair, now: float) -> int:
        """How many count still: of those there were, one less for each quiet time since."""
        known = self._known.get(pair)
        if known is None:
            return 0
        return max(0, known.count - int(max(0.0, now - known.until) // LONGEST_SECONDS))

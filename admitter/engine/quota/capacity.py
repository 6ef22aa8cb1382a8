"""Which pods of an elastic quota are over it (docs/design/elastic-quota.md).

The places of a queue's pods are sorted: older first, then smaller requests, then by name. Places that have no
pod yet come last, by admission; places of pods that have ended for good are as old as the admission. From the
first one with which the sum of any resource exceeds the queue's `min`, all are over quota. So the newest go
over first, and what happens to a newer pod never changes what an older one is.

Extra pods (`extras`) have no place among these: the newest pods of a workload, beyond its admission. They are
over quota always, and by the plan they do not exist.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from admitter.engine.model import FlavorResource
from admitter.engine.policy import Queue
from admitter.engine.quota.ledger import Ledger, Pods, Reservation
from admitter.engine.quota.tree import Tree

Size = tuple[tuple[FlavorResource, int], ...]
Age = tuple[float, float, Size, str, str]
"""Creation of the pod, admission of its workload, what it uses, its name, its holder; smaller is older."""


@dataclass(frozen=True, slots=True)
class Places:
    """Pods of one workload that are alike, or one pod."""

    age: Age  # their place in the order
    holder: str  # the UID of their workload
    size: Size  # what one of them uses
    count: int
    pod: str = ""  # the name of the pod; empty for those that are not there yet


@dataclass(frozen=True, slots=True)
class OverQuotaUse:
    """What a workload has over its quota."""

    reservation: Reservation
    newest: Age  # the age of its newest place that is over
    pods: frozenset[str]  # those of its pods that are over
    coming: bool  # whether the next pod that takes a place of it will be over


@dataclass(slots=True)
class Standing:
    """A queue's workloads that are over quota, newest first, and what they hold together."""

    excesses: list[OverQuotaUse] = field(default_factory=list)
    held: dict[FlavorResource, int] = field(default_factory=dict)
    largest: dict[FlavorResource, int] = field(default_factory=dict)

    def holders(self) -> list[str]:
        """The UIDs of their workloads."""
        return [excess.reservation.holder for excess in self.excesses]


class Capacity:
    """Which workloads are over quota; computed when asked for, and kept until the queue changes."""

    def __init__(self, tree: Tree, ledger: Ledger) -> None:
        self._tree = tree
        self._ledger = ledger
        self._kept: dict[tuple[str, bool], tuple[int, Queue | None, Standing]] = {}
        self._places: dict[str, tuple[Reservation, Pods, tuple[Places, ...]]] = {}

    def planned(self, queue: str) -> Standing:
        """The workloads over quota once all victims have gone."""
        return self._standing(queue, planned=True)

    def real(self, queue: str) -> Standing:
        """The workloads over quota now."""
        return self._standing(queue, planned=False)

    def _standing(self, queue: str, *, planned: bool) -> Standing:
        revision, definition = self._ledger.revisions[queue], self._tree.queues.get(queue)
        kept = self._kept.get((queue, planned))
        if kept is not None and kept[0] == revision and kept[1] is definition:
            return kept[2]
        found = [
            reservation
            for reservation in self._ledger.reservations(queue)
            if not (planned and self._ledger.evicting(reservation.holder))
        ]
        made = self._work_out(queue, found)
        if not planned and self._ledger.extras:
            self._mark_extra(found, made)
        self._kept[queue, planned] = (revision, definition, made)
        return made

    def _work_out(self, queue: str, found: Iterable[Reservation]) -> Standing:
        reservations = {reservation.holder: reservation for reservation in found}
        places = [place for r in reservations.values() for place in self._places_of(r)]
        places.sort(key=lambda place: place.age)
        definition = self._tree.queues.get(queue)
        quotas = definition.quotas if definition is not None else {}
        newest: dict[str, Age] = {}
        pods: dict[str, set[str]] = {}
        coming: set[str] = set()
        for place, within in _over(places, {key: quota.minimum for key, quota in quotas.items()}):
            newest[place.holder] = place.age  # in order of age: the last one stays
            if place.pod:
                pods.setdefault(place.holder, set()).add(place.pod)
            elif place.age[0] == inf and not within:
                coming.add(place.holder)
        standing = Standing()
        for holder, age in sorted(newest.items(), key=lambda entry: entry[1], reverse=True):
            reservation = reservations[holder]
            excess = OverQuotaUse(reservation, age, frozenset(pods.get(holder, ())), holder in coming)
            standing.excesses.append(excess)
            for key, amount in reservation.usage:
                standing.held[key] = standing.held.get(key, 0) + amount
                standing.largest[key] = max(standing.largest.get(key, 0), amount)
        return standing

    def _mark_extra(self, found: Iterable[Reservation], standing: Standing) -> None:
        """Say of extra pods, those that are there and those that come, that they are over quota."""
        known = {excess.reservation.holder: excess for excess in standing.excesses}
        for reservation in found:
            if not self._ledger.extras.has(reservation.holder):
                continue
            alive = self._ledger.pods(reservation.holder).alive
            places = _count(reservation)
            names, before = frozenset(name for _, name in alive[places:]), known.get(reservation.holder)
            pods, coming = (before.pods, before.coming) if before is not None else (frozenset(), False)
            newest = (inf, reservation.since, (), "", reservation.holder)
            known[reservation.holder] = OverQuotaUse(
                reservation, newest, pods | names, coming or len(alive) >= places
            )
        by_age = sorted(known.values(), key=lambda excess: excess.newest, reverse=True)
        standing.excesses[:] = by_age

    def _places_of(self, reservation: Reservation) -> tuple[Places, ...]:
        """The places of a reservation, worked out when it or its pods have changed."""
        pods = self._ledger.pods(reservation.holder)
        kept = self._places.get(reservation.holder)
        if kept is not None and kept[0] is reservation and kept[1] is pods:
            return kept[2]
        # It is worked out anew when it comes to have extra pods: `set_extra` forgets it.
        own = (
            Pods(pods.alive[: _count(reservation)], pods.left_over)
            if self._ledger.extras.has(reservation.holder)
            else pods
        )
        made = tuple(_places(reservation, own))
        self._places[reservation.holder] = (reservation, pods, made)
        return made

    def forget(self, holder: str) -> None:
        """A holder holds nothing any more."""
        self._places.pop(holder, None)


def _count(reservation: Reservation) -> int:
    return sum(each.count for each in reservation.admission.pod_sets)


def _places(reservation: Reservation, known: Pods) -> Iterator[Places]:
    """The places of a reservation; its pods have the first ones, in the order of its pod sets."""
    pods, left_over = list(known.alive), known.left_over
    size: Size = ()
    for assignment in reservation.admission.pod_sets:
        if not assignment.count:
            continue
        flavors, pool = dict(assignment.flavors), reservation.admission.pool
        size = tuple(
            sorted(((pool or flavors[r], r), amount // assignment.count) for r, amount in assignment.usage)
        )
        taken, pods = pods[: assignment.count], pods[assignment.count :]
        yield from (_place(reservation, size, pod) for pod in taken)
        ended = min(left_over, assignment.count - len(taken))
        left_over -= ended
        coming = assignment.count - len(taken) - ended
        later = inf if reservation.workload is not None else reservation.since
        for created, count in ((reservation.since, ended), (later, coming)):
            if count:
                age = (created, reservation.since, size, assignment.name, reservation.holder)
                yield Places(age, reservation.holder, size, count)
    for pod in pods:  # more than it was admitted for: old ones that take their time to end
        yield _place(reservation, size, pod)


def _place(reservation: Reservation, size: Size, pod: tuple[float, str]) -> Places:
    created, name = pod
    return Places((created, 0.0, size, name, reservation.holder), reservation.holder, size, 1, name)


def _over(places: Iterable[Places], minimum: Mapping[FlavorResource, int]) -> Iterator[tuple[Places, int]]:
    """Those that are over quota, in order of age, and how many of each are not."""
    sums: Counter[FlavorResource] = Counter()
    exceeded = False
    for place in places:
        within = 0
        if not exceeded:
            within = min(
                (max(0, minimum.get(key, 0) - sums[key]) // n for key, n in place.size if n),
                default=place.count,
            )
            within = min(within, place.count)
            for key, amount in place.size:
                sums[key] += amount * within
            exceeded = within < place.count
        if exceeded:
            yield place, within

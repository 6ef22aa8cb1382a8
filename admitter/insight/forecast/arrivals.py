"""Who may still come to a tree: more of the kinds that have kept coming, for nobody knows how long.

A kind is what asks for the same with the same priority, whoever submits it. It keeps coming as long as it has
not been silent for much longer than it ever was before. How long people go on is not known: that they go on
for as long again as they have is taken to be as likely as that they stop before that, on any scale; the share
of futures in which they go on for more than x times as long is 1 / (1 + x). So the ends of these futures are
far apart: good for the bounds of what may happen, not for its middle.

Until then what came comes again, at the same distances: large Jobs that come together leave no gaps for small
ones, and as many that come one by one do.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import count, islice, pairwise, takewhile
from random import Random
from typing import Any, Final

import orjson

from admitter.cache.views import WorkloadView
from admitter.insight.forecast.durations import Durations, Runtimes
from admitter.names import API_VERSION, SIMULATED_RUNTIME_ANNOTATION
from admitter.simulate.manifests import Change

PAUSES: Final = 2
"""A kind has stopped that has been silent for more than so many times its longest pause."""
MOST: Final = 1_000
"""So many come in a future at most, of each kind an equal part: after that it does not come any more."""

Coming = tuple[float, WorkloadView, Runtimes]


@dataclass(frozen=True, slots=True)
class Kind:
    """Workloads that ask for the same with the same priority, and keep coming.

    Attributes:
        members: those that have come, with their runtimes.
        since: when the first came, in seconds since the epoch.
        so_far: how long it has come, in seconds.
    """

    members: tuple[tuple[WorkloadView, Runtimes], ...]
    since: float
    so_far: float

    def again(self, begins: float, times: float, most: int) -> Iterator[Coming]:
        """Who comes again, as pairs of seconds from now and a member.

        Args:
            begins: at which part of the time so far it begins.
            times: for how many times as long as so far it goes on.
            most: no more than so many.
        """
        skipped = begins * self.so_far
        lap = sorted(
            (
                ((member.created - self.since - skipped) % self.so_far, member, runtimes)
                for member, runtimes in self.members
            ),
            key=lambda each: (each[0], each[1].uid),
        )
        all_laps = (
            (number * self.so_far + after, member, runtimes)
            for number in count()
            for after, member, runtimes in lap
        )
        return takewhile(lambda each: each[0] < times * self.so_far, islice(all_laps, most))


class Arrivals:
    """What may come to one tree, as seen at one moment."""

    def __init__(self, workloads: Iterable[WorkloadView], durations: Durations, now: float) -> None:
        """Prepare.

        Args:
            workloads: all of the tree, those that have finished included.
            durations: what is known of runtimes; of whose nothing is known is left out.
            now: that moment, in seconds since the epoch.
        """
        self._now = now
        alike: defaultdict[Hashable, list[tuple[WorkloadView, Runtimes]]] = defaultdict(list)
        for each in workloads:
            runtimes = durations.of(each)
            if runtimes is not None:
                asked = orjson.dumps(each.spec["podSets"], option=orjson.OPT_SORT_KEYS)
                alike[each.spec.get("priority"), asked].append((each, runtimes))
        self._kinds = [kind for members in alike.values() if (kind := self._keeps_coming(members))]

    def __bool__(self) -> bool:
        """Whether anything keeps coming."""
        return bool(self._kinds)

    def draw(self, random: Random, believed: bool = True) -> list[Change]:
        """One future, in the order of time: what came comes again, from some moment of the past on.

        Args:
            random: draws it.
            believed: whether unproven words are.
        """
        # The same for all kinds: those that came in step go on in step, and people stop together.
        begins, times = random.random(), 1 / (1 - random.random()) - 1
        most = MOST // max(1, len(self._kinds))
        each_kind = (kind.again(begins, times, most) for kind in self._kinds)
        changes = []
        for serial, (after, member, runtimes) in enumerate(merge(*each_kind, key=lambda each: each[0])):
            name = f"to come: {serial}"  # no Workload of a cluster can have this name
            manifest = arrival(member, name, runtimes.draw(random, 0.0, believed=believed))
            changes.append(Change(self._now + after, serial, manifest))
        return changes

    def _keeps_coming(self, members: list[tuple[WorkloadView, Runtimes]]) -> Kind | None:
        """The kind of these, if they keep coming; those of one second are a batch, as stamps tell no more."""
        moments = sorted({member.created for member, _ in members})
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        if not pauses or self._now - moments[-1] > PAUSES * max(pauses):
            return None
        return Kind(tuple(members), moments[0], max(1.0, self._now - moments[0]))


def arrival(like: WorkloadView, name: str, runs: float) -> dict[str, Any]:
    """The manifest of one that comes.

    Args:
        like: what it is like.
        name: of its own.
        runs: for how many seconds.
    """
    annotations = {SIMULATED_RUNTIME_ANNOTATION: f"{runs:.3f}s"}
    metadata = {"name": name, "namespace": like.namespace, "annotations": annotations}
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": like.spec}

"""Workloads that may still come to a tree: more of the kinds that keep coming, for an unknown time.

A kind has equal requests and equal priority, from any user. It keeps coming until it has been silent for much
longer than ever before. How long users go on is unknown. On any scale, going on for as long again as so far
counts as likely as stopping earlier: the share of playouts in which they go on for more than x times as long
is 1 / (1 + x). So the ends differ widely between playouts: this suits the bounds of a range, not its median.

Until then all of a kind come again, at the same distances: large Jobs that come together leave no gaps for
small ones; as many that come one by one do.
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
"""A kind has stopped if it has been silent for more than so many times its longest pause."""
MOST: Final = 1_000
"""The most that come in one playout, shared equally by the kinds."""

Coming = tuple[float, WorkloadView, Runtimes]


@dataclass(frozen=True, slots=True)
class Kind:
    """Workloads of equal requests and priority that keep coming."""

    members: tuple[tuple[WorkloadView, Runtimes], ...]  # those that have come, with their runtimes
    since: float  # when the first came, in seconds since the epoch
    so_far: float  # how long the kind has come, in seconds

    def again(self, begins: float, times: float, most: int) -> Iterator[Coming]:
        """The members that come again, each with the seconds from now, and no more than `most`.

        They begin at the part `begins` of the time so far, and go on for so many `times` that time.
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
        """Find the kinds that keep coming among all workloads of the tree, finished ones included.

        Workloads without a known runtime are left out. The moment is in seconds since the epoch.
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
        """The arrivals of one playout, in order of time: the past again, from some moment on.

        Unproven stated runtimes count if they are `believed`.
        """
        # The same for all kinds: kinds that came in step go on in step, and users stop together.
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
        """The kind of these, if they keep coming; one second makes a batch: timestamps are no finer."""
        moments = sorted({member.created for member, _ in members})
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        if not pauses or self._now - moments[-1] > PAUSES * max(pauses):
            return None
        return Kind(tuple(members), moments[0], max(1.0, self._now - moments[0]))


def arrival(like: WorkloadView, name: str, runs: float) -> dict[str, Any]:
    """The manifest of an arriving Workload that resembles another, and runs for so many seconds."""
    annotations = {SIMULATED_RUNTIME_ANNOTATION: f"{runs:.3f}s"}
    metadata = {"name": name, "namespace": like.namespace, "annotations": annotations}
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": like.spec}

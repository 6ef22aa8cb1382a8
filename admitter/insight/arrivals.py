"""Who may still come to a tree: more of the kinds that have kept coming, for nobody knows how long.

A kind is what asks for the same with the same priority, whoever submits it. It keeps coming as long as it has
not been silent for much longer than it ever was before. How long people go on is not known: that they go on
for as long again as they have is taken to be as likely as that they stop before that, on any scale; the share
of futures in which they go on for more than x times as long is 1 / (1 + x). So the ends of these futures are
far apart: good for the bounds of what may happen, not for its middle.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, Final

import orjson

from admitter.controllers.views import WorkloadView
from admitter.insight.durations import Durations
from admitter.names import API_VERSION, SIMULATED_RUNTIME_ANNOTATION
from admitter.simulate.manifests import Change

PAUSES: Final = 2
"""A kind has stopped that has been silent for more than so many times its longest pause."""
MOST: Final = 1_000
"""So many come in a future at most; after that nobody does."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Workloads that keep coming.

    Attributes:
        members: those that have come.
        since: when the first came, in seconds since the epoch.
        per_second: how many come in a second.
    """

    members: tuple[WorkloadView, ...]
    since: float
    per_second: float


class Arrivals:
    """What may come to one tree, as seen at one moment."""

    def __init__(self, workloads: Iterable[WorkloadView], durations: Durations, now: float) -> None:
        """Prepare.

        Args:
            workloads: all of the tree, those that have finished included.
            durations: what is known of runtimes; who may come and of whose kind nothing is known is left out.
            now: that moment, in seconds since the epoch.
        """
        self._now = now
        self._durations = durations
        kinds: defaultdict[Hashable, list[WorkloadView]] = defaultdict(list)
        for each in workloads:
            asked = orjson.dumps(each.spec["podSets"], option=orjson.OPT_SORT_KEYS)
            kinds[each.spec.get("priority"), asked].append(each)
        self._kinds = [kind for members in kinds.values() if (kind := self._keeps_coming(members))]

    def __bool__(self) -> bool:
        """Whether anything keeps coming."""
        return bool(self._kinds)

    def draw(self, random: Random) -> list[Change]:
        """One future: who comes, in the order of time."""
        if not self._kinds:
            return []
        so_far = max(1.0, self._now - min(kind.since for kind in self._kinds))
        ahead = so_far * (1 / (1 - random.random()) - 1)
        ahead = min(ahead, MOST / sum(kind.per_second for kind in self._kinds))
        times = sorted(
            (time, place)
            for place, kind in enumerate(self._kinds)
            for time in self._times(kind.per_second, ahead, random)
        )[:MOST]
        changes = []
        for serial, (time, place) in enumerate(times):
            like = random.choice(self._kinds[place].members)
            runtimes = self._durations.of(like)
            assert runtimes is not None, "something is known of its kind"
            name = f"to come: {serial}"  # no Workload of a cluster can have this name
            changes.append(Change(time, serial, arrival(like, name, runtimes.draw(random, 0.0))))
        return changes

    def _keeps_coming(self, members: list[WorkloadView]) -> Kind | None:
        """The kind of these, if they keep coming; those of one second are a batch, as stamps tell no more."""
        batches = Counter(member.created for member in members)
        moments = sorted(batches)
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        if not pauses or self._now - moments[-1] > PAUSES * max(pauses):
            return None
        if self._durations.of(members[-1]) is None:
            return None
        after_the_first = len(members) - batches[moments[0]]
        return Kind(tuple(members), moments[0], after_the_first / (moments[-1] - moments[0]))

    def _times(self, per_second: float, ahead: float, random: Random) -> Iterator[float]:
        after = 0.0
        while (after := after + random.expovariate(per_second)) < ahead:
            yield self._now + after


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

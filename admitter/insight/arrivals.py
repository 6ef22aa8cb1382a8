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
from collections.abc import Hashable, Iterable
from itertools import count, islice, pairwise, takewhile
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
        self._kinds = [kind for kind in kinds.values() if self._keeps_coming(kind)]

    def __bool__(self) -> bool:
        """Whether anything keeps coming."""
        return bool(self._kinds)

    def draw(self, random: Random) -> list[Change]:
        """One future, in the order of time: what came comes again, from some moment of the past on."""
        if not self._kinds:
            return []
        members = [member for kind in self._kinds for member in kind]
        since = min(member.created for member in members)
        so_far = max(1.0, self._now - since)
        begins = random.uniform(0.0, so_far)
        ahead = so_far * (1 / (1 - random.random()) - 1)
        lap = sorted(((member.created - since - begins) % so_far, member.uid, member) for member in members)
        again = ((number * so_far + after, member) for number in count() for after, _, member in lap)
        coming = takewhile(lambda each: each[0] < ahead, islice(again, MOST))
        return [self._change(serial, *each, random) for serial, each in enumerate(coming)]

    def _change(self, serial: int, after: float, like: WorkloadView, random: Random) -> Change:
        runtimes = self._durations.of(like)
        assert runtimes is not None, "something is known of its kind"
        name = f"to come: {serial}"  # no Workload of a cluster can have this name
        return Change(self._now + after, serial, arrival(like, name, runtimes.draw(random, 0.0)))

    def _keeps_coming(self, kind: list[WorkloadView]) -> bool:
        """Whether these keep coming; those of one second came together, as stamps tell no more."""
        moments = sorted({member.created for member in kind})
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        silent = self._now - moments[-1]
        return bool(pauses) and silent <= PAUSES * max(pauses) and self._durations.of(kind[-1]) is not None


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

"""Who is still to come: as many of each kind as came lately, at random times.

Nobody knows what people will submit. That they go on as they did is a better guess than that nobody comes:
Jobs that come later and go first decide when others start.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import orjson

from admitter.controllers.views import WorkloadView
from admitter.insight.durations import Durations, Runtimes
from admitter.names import API_VERSION, SIMULATED_RUNTIME_ANNOTATION
from admitter.simulate.manifests import Change

LOOKED_BACK_SECONDS: Final = 600.0
"""What has come in that time goes on to come, for as long again."""
ENOUGH: Final = 3
"""So many of a kind make a habit."""
MOST: Final = 2_000
"""So many are drawn at most: if more came lately, they are drawn for a shorter time."""


@dataclass(frozen=True, slots=True)
class Habit:
    """Workloads of one kind that keep coming.

    Attributes:
        like: one of them.
        per_second: how many come in a second.
        runtimes: for how long they run.
    """

    like: WorkloadView
    per_second: float
    runtimes: Runtimes

    def manifest(self, name: str, random: Random) -> dict[str, Any]:
        """One that comes."""
        annotations = {SIMULATED_RUNTIME_ANNOTATION: f"{self.runtimes.draw(random, 0.0):.3f}s"}
        metadata = {"name": name, "namespace": self.like.namespace, "annotations": annotations}
        return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": self.like.spec}


class Arrivals:
    """Those of one tree, as seen at one moment."""

    def __init__(self, workloads: Iterable[WorkloadView], durations: Durations, now: float) -> None:
        """Prepare.

        Args:
            workloads: all of the tree, those that have finished included.
            durations: what is known of runtimes; who comes and of whose kind nothing is known is left out.
            now: that moment, in seconds since the epoch.
        """
        lately = [each for each in workloads if now - LOOKED_BACK_SECONDS <= each.created <= now]
        since = min((each.created for each in lately), default=now)
        self._now = now
        self._ahead = max(1.0, now - since)
        kinds: dict[Hashable, list[WorkloadView]] = {}
        for each in lately:
            asked = orjson.dumps(each.spec, option=orjson.OPT_SORT_KEYS)
            kinds.setdefault((each.namespace, asked), []).append(each)
        self._habits = [
            Habit(found[-1], len(found) / self._ahead, runtimes)
            for found in kinds.values()
            if len(found) >= ENOUGH and (runtimes := durations.of(found[-1])) is not None
        ]
        together = sum(habit.per_second for habit in self._habits) * self._ahead
        if together > MOST:
            self._ahead *= MOST / together

    def draw(self, random: Random) -> list[Change]:
        """One future: who comes, in the order of time."""
        times = sorted(
            ((time, place) for place, habit in enumerate(self._habits) for time in self._times(habit, random))
        )
        return [
            Change(time, serial, self._habits[place].manifest(f"to-come-{serial}", random))
            for serial, (time, place) in enumerate(times)
        ]

    def _times(self, habit: Habit, random: Random) -> Iterator[float]:
        time = self._now
        while (time := time + random.expovariate(habit.per_second)) < self._now + self._ahead:
            yield time

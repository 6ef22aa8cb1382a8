"""The Jobs that the made-up cluster's teams submit, without end: all follows from a seed and the start."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from admitter.names import (
    EXPECTED_RUNTIME_ANNOTATION,
    PLACED_ANNOTATION,
    QUEUE_LABEL,
    SIMULATED_READY_AFTER_ANNOTATION,
    SIMULATED_RUNTIME_ANNOTATION,
    USER_ANNOTATION,
)
from admitter.quantities.durations import written_duration
from admitter.simulate.items import Key
from admitter.simulate.manifests import Change
from admitter.simulate.objects import timestamp
from admitter.web.demo.hardware import ACCELERATOR, GPU
from admitter.web.demo.teams import (
    STUDENT_GPUS,
    STUDENT_USERS,
    STUDENT_WORK,
    STUDENTS,
    TEAMS,
    WORDS,
    Team,
    Work,
)

Json = dict[str, Any]

CYCLE_SECONDS: Final = 4 * 3600.0
"""How long it takes from one time of many submissions to the next."""
SWING: Final = 0.6
"""By such a part a team submits more or less than usual in the course of that."""
PAST_GRID_SECONDS: Final = 120.0
GRID_SECONDS: Final = 20.0
"""Jobs come and end at multiples of this; long ago of a longer time, so that it is soon worked out."""
RECENT_SECONDS: Final = 600.0
"""What is not longer ago is as fine as what is to come."""
AT_START_SECONDS: Final = 3 * 3600.0
"""For so long at most the first Jobs have been there at the start."""
FAILS: Final = 0.04
"""The part of the Jobs that fail."""
CHOOSES: Final = 0.6
"""The part of the Jobs with GPUs that insist on one kind, where any would do."""
MOST_EAGER, LEAST_EAGER = 1.8, 0.1
"""By how much at most more Jobs are submitted while few wait, and fewer while many do."""
LONGEST_START_SECONDS: Final = 150
FIVE_MINUTES: Final = 300.0


class Stream(NamedTuple):
    """The Jobs of one kind of work."""

    team: Team
    namespace: str
    work: Work
    hourly: float  # how many are submitted in an hour as a rule
    busy: float  # how many run at a time then
    waiting: float  # how many wait as a rule


class Submissions:
    """Makes Jobs."""

    def __init__(self, seed: int, start: float, now: float) -> None:
        """The first Jobs are there at the `start`; what is before `now` is past; both since the epoch."""
        self._random = Random(seed)  # noqa: S311  # a made-up cluster is no secret
        self._start = self._until = start
        self._now = now
        self._serial = 0
        self._streams = list(_streams())
        self._stream_of: dict[Key, int] = {}
        self.failing: set[Key] = set()  # Jobs that will fail

    def first(self) -> list[Change]:
        """The Jobs at the start: as many as run and wait as a rule. Some of them have run for a while."""
        made = []
        for place, stream in enumerate(self._streams):
            for number in range(round(stream.busy + stream.waiting)):
                left = self._random.uniform(0.05, 1.0) if number < stream.busy else 1.0
                ago = self._random.uniform(0.0, AT_START_SECONDS)
                made.append(self._change(place, self._start, self._start - ago, left))
        return sorted(made)

    def until(self, time: float, waiting: Iterable[Key]) -> list[Change]:
        """The Jobs of the time since the last call, which are fewer the more wait.

        `waiting` has namespace and name of those that wait.
        """
        since, self._until = self._until, time
        lines = Counter(self._stream_of.get(key) for key in waiting)
        made = []
        for place, stream in enumerate(self._streams):
            turn = math.sin(2 * math.pi * ((since - self._start) / CYCLE_SECONDS + stream.team.phase))
            mood = min(MOST_EAGER, max(LEAST_EAGER, 2.0 - lines[place] / max(1.0, stream.waiting)))
            mean = stream.hourly * (time - since) / 3600.0 * (1 + SWING * turn) * mood
            for _ in range(_poisson(self._random, mean)):
                grid = self._grid(since)
                steps = math.ceil((self._random.uniform(since, time) - self._start) / grid)
                at = self._start + steps * grid
                made.append(self._change(place, at, at, 1.0))
        return sorted(made)

    def forget(self, key: Key) -> None:
        """A Job is over."""
        self._stream_of.pop(key, None)
        self.failing.discard(key)

    def _grid(self, time: float) -> float:
        return PAST_GRID_SECONDS if time < self._now - RECENT_SECONDS else GRID_SECONDS

    def _change(self, place: int, time: float, created: float, left: float) -> Change:
        self._serial += 1
        manifest = self._job(self._streams[place], created, left)
        self._stream_of[manifest["metadata"]["namespace"], manifest["metadata"]["name"]] = place
        return Change(time, self._serial, manifest)

    def _job(self, stream: Stream, created: float, left: float) -> Json:
        """A Job; `left` is the part of its runtime that it still has to run."""
        random, team, namespace, work = self._random, stream.team, stream.namespace, stream.work
        pods, each = random.choice(work.sizes)
        runtime = max(60.0, work.minutes * 60.0 * math.exp(random.gauss(0.0, work.spread)))
        grid = self._grid(created)
        lasts = max(1, round(runtime * left / grid)) * grid
        annotations = {
            SIMULATED_RUNTIME_ANNOTATION: written_duration(lasts),
            SIMULATED_READY_AFTER_ANNOTATION: f"{random.randint(8, LONGEST_START_SECONDS)}s",
            USER_ANNOTATION: random.choice(team.users),
            PLACED_ANNOTATION: "main",
        }
        if work.expected:
            said = lasts * random.uniform(0.85, 1.5)
            rounded = max(1, round(said / FIVE_MINUTES)) * FIVE_MINUTES
            annotations[EXPECTED_RUNTIME_ANNOTATION] = written_duration(rounded)
        name = work.name.format(n=self._serial, w=random.choice(WORDS))
        if random.random() < FAILS:
            self.failing.add((namespace, name))
        selector = self._selector(team, work)
        queue = "elastic-quota" if namespace == STUDENTS else "main"
        if queue != "main":
            del annotations[PLACED_ANNOTATION], annotations[USER_ANNOTATION]
        made = job(namespace, name, (pods, each), work, annotations, selector)
        made["metadata"]["labels"] = {QUEUE_LABEL: queue}
        made["metadata"]["creationTimestamp"] = timestamp(float(int(created)))
        return made

    def _selector(self, team: Team, work: Work) -> dict[str, str]:
        if not work.gpu or not team.gpus:
            return {}
        if work.flavor:
            return {ACCELERATOR: work.flavor}
        chosen = self._random.choices(list(team.gpus), [least for least, _ in team.gpus.values()])[0]
        return {ACCELERATOR: chosen} if self._random.random() < CHOOSES else {}


def job(
    namespace: str,
    name: str,
    size: tuple[int, int],
    work: Work,
    annotations: Mapping[str, str],
    selector: Mapping[str, str],
) -> Json:
    """The manifest of a Job with so many pods, of so many GPUs or cores each."""
    pods, each = size
    requests = {GPU: str(each)} if work.gpu else {"cpu": str(each), "memory": f"{each * work.memory}Gi"}
    template: Json = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if selector:
        template["nodeSelector"] = dict(selector)
    if work.priority:
        template["priorityClassName"] = work.priority
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "labels": {QUEUE_LABEL: "main"},
            "annotations": dict(annotations),
        },
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": template}},
    }


def _streams() -> Iterator[Stream]:
    for team in TEAMS:
        work = [(f"{team.name}-{part}", each) for part, several in team.work.items() for each in several]
        gpus = sum(least for least, _ in team.gpus.values())
        often = sum(each.often for _, each in work)
        for on_gpus, amount in ((True, gpus), (False, team.cores)):
            alike = [(namespace, each) for namespace, each in work if each.gpu is on_gpus]
            yield from _of_one_kind(team, alike, amount * team.demand, team.waiting / often)
    students = Team(STUDENTS, "", {}, 0, STUDENT_USERS, {}, waiting=12)
    yield from _of_one_kind(students, [(STUDENTS, STUDENT_WORK)], STUDENT_GPUS[0] * 1.05, students.waiting)


def _of_one_kind(
    team: Team, alike: list[tuple[str, Work]], amount: float, waiting: float
) -> Iterator[Stream]:
    """How often work is submitted that uses so much together, in comparison with how often its team says."""
    hours = sum(each.often * _hours(each) * _size(each) for _, each in alike)
    for namespace, each in alike:
        hourly = amount * each.often / hours
        yield Stream(team, namespace, each, hourly, hourly * _hours(each), waiting * each.often)


def _hours(work: Work) -> float:
    """The mean of its runtimes."""
    return work.minutes / 60.0 * math.exp(work.spread**2 / 2)


def _size(work: Work) -> float:
    """The mean of how many GPUs or cores it uses."""
    return sum(pods * each for pods, each in work.sizes) / len(work.sizes)


def _poisson(random: Random, mean: float) -> int:
    """How many of many independent events happen (Knuth)."""
    limit, product, found = math.exp(-mean), random.random(), 0
    while product > limit:
        product *= random.random()
        found += 1
    return found

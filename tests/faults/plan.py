"""What will go wrong, and what people will ask for: a pure function of a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.faults.pods import PodTask, planned_pods
from tests.faults.scene import ELASTIC, PLACES, PRESSED, Place

LOAD: Final = 0.6
"""The part of all quota that would be in use if nothing went wrong."""
LONGEST_SECONDS: Final = 20.0
"""A Job runs no longer, but for the chance in it."""
PRESSES: Final = 3
"""So often a Job comes for all of a queue's quota while a less important one holds it."""
QUIET_SECONDS: Final = 4.0
"""At the start and at the end nothing goes wrong."""


@dataclass(frozen=True)
class Task:
    """A Job that a user will create.

    Attributes:
        at: when, in seconds since the start.
        place: the queue, and the namespace.
        name: its name.
        cpu: of each pod.
        pods: how many.
        runs: for how long, in seconds.
        priority: the PriorityClass.
        real: whether it has pods.
    """

    at: float
    place: str
    name: str
    cpu: int
    pods: int
    runs: float
    priority: str
    real: bool


@dataclass(frozen=True)
class Fault:
    """Something that will go wrong.

    Attributes:
        at: when, in seconds since the start.
        kind: what.
        seconds: for how long, where that means something.
        seed: of what is left to chance in it.
    """

    at: float
    kind: str
    seconds: float
    seed: int


@dataclass(frozen=True)
class Kind:
    """Faults that are alike: how often, relative to others, and for how long, in seconds."""

    weight: int
    shortest: float
    longest: float


KINDS: Final = {
    "leader killed": Kind(4, 0, 0),
    "leader paused": Kind(5, 2, 12),
    "clock jumped": Kind(6, 3, 20),
    "API server killed": Kind(2, 0, 2),
    "etcd stalled": Kind(3, 1, 5),
    "watches cut": Kind(10, 0, 0),
    "watches silent": Kind(5, 3, 15),
    "watches gone": Kind(5, 1, 3),
    "bookmarks missing": Kind(5, 5, 30),
    "conflicts": Kind(8, 2, 6),
    "throttled": Kind(7, 2, 6),
    "server errors": Kind(7, 2, 6),
    "slow": Kind(7, 3, 8),
    "truncated": Kind(7, 2, 6),
    "answers lost": Kind(7, 2, 6),
    "calls lost": Kind(5, 2, 6),
    "queue edited": Kind(6, 5, 20),
    "queue recreated": Kind(2, 1, 4),
    "bystander queue recreated": Kind(3, 1, 5),
    "bystander queue written over": Kind(3, 1, 5),
    "LocalQueue recreated": Kind(3, 1, 5),
    "flavor recreated": Kind(3, 1, 5),
    "namespace deleted": Kind(2, 2, 4),
    "Workload deleted": Kind(5, 0, 0),
    "status written over": Kind(6, 0, 0),
    "evicted by hand": Kind(4, 0, 0),
}
OF_FOLLOWERS: Final = {"follower killed": Kind(3, 0, 0), "follower paused": Kind(3, 2, 12)}
RARE: Final = {"calls late": Kind(1, 34, 40)}
"""Only in long runs: they take longer than a short one lasts."""
LONG_SECONDS: Final = 300
OPERATIONS_A_SECOND: Final = 6.0


@dataclass(frozen=True)
class Plan:
    """A whole run.

    Attributes:
        seed: what it was made of.
        seconds: how long people and faults come.
        jobs: how many were asked for.
        tasks: the Jobs, by their times.
        faults: what goes wrong, by its time.
        burst: how many Jobs are created at once, and deleted at once.
        burst_at: when.
        operations: how many operations are carried out by tenants that try what they can.
        pods: what users want done by queued pods.
        direct: whether controllers reach the API server directly, since only processes fail.
    """

    seed: int
    seconds: float
    jobs: int
    tasks: tuple[Task, ...]
    faults: tuple[Fault, ...]
    burst: int = 0
    burst_at: float = 0.0
    operations: int = 0
    pods: tuple[PodTask, ...] = ()
    direct: bool = False


def plan(seed: int, seconds: float, jobs: int, faults: int, replicas: int) -> Plan:
    """What a seed means.

    Args:
        seed: of chance.
        seconds: how long people and faults come.
        jobs: how many Jobs come in this time, besides those that are sure to preempt one another; half as
            many more come, and go, in the burst.
        faults: how many things go wrong; each kind at least once if there are enough.
        replicas: how many controllers there are.
    """
    random = Random(seed)
    kinds = KINDS | (OF_FOLLOWERS if replicas > 1 else {}) | (RARE if seconds >= LONG_SECONDS else {})
    tasks = sorted(_tasks(random, seconds, jobs), key=lambda task: (task.at, task.place, task.name))
    return Plan(
        seed,
        seconds,
        jobs,
        tuple(tasks),
        tuple(_faults(random, seconds, faults, kinds)),
        jobs // 2,
        seconds * random.uniform(0.3, 0.5),
        round(seconds * OPERATIONS_A_SECOND),
        planned_pods(seed, seconds),
    )


def failover(seed: int, seconds: float, jobs: int, kills: int) -> Plan:
    """Many Jobs without pods while the leader is killed again and again, and nothing else goes wrong.

    Args:
        seed: of chance.
        seconds: how long Jobs come, evenly.
        jobs: how many.
        kills: how often the leader is killed.
    """
    random = Random(seed)
    places = [place for place in PLACES if place.share and not place.real]
    tasks = []
    for number in range(jobs):
        place = random.choice(places)
        at, runs = seconds * number / jobs, random.uniform(0.1, 0.5)
        name = f"{place.name}-{number:05}"
        tasks.append(Task(round(at, 3), place.name, name, 1, 1, round(runs, 2), "low", real=False))
    step = seconds / (kills + 1)
    faults = [
        Fault(round(step * (index + random.uniform(0.6, 1.4)), 2), "leader killed", 0.0, index)
        for index in range(kills)
    ]
    return Plan(seed, seconds, jobs, tuple(tasks), tuple(faults), direct=True)


def _faults(random: Random, seconds: float, number: int, kinds: dict[str, Kind]) -> Iterator[Fault]:
    """Each kind once, then by weight; spread over the time, in an order of chance."""
    weights = [kind.weight for kind in kinds.values()]
    names = random.sample(sorted(kinds), k=len(kinds))[:number]
    names += random.choices(list(kinds), weights, k=number - len(names))
    random.shuffle(names)
    step = (seconds - 2 * QUIET_SECONDS) / max(number, 1)
    for index, name in enumerate(names):
        at = QUIET_SECONDS + step * (index + random.random())
        kind = kinds[name]
        lasts = random.uniform(kind.shortest, kind.longest)
        yield Fault(round(at, 2), name, round(lasts, 1), random.randrange(2**31))


def _tasks(random: Random, seconds: float, jobs: int) -> Iterator[Task]:
    """Jobs in waves: more at some times than quota is there for, so that they wait, borrow and preempt."""
    for place in (*PLACES, *ELASTIC):
        number = round(jobs * place.share / 100)
        sizes = [random.choice((1, 1, 2, 2, 3, 6)) for _ in range(number)]
        mean = LOAD * place.least * seconds / max(sum(sizes), 1)
        for index, size in enumerate(sizes):
            at = seconds * (index + random.random()) / max(number, 1)
            wave = seconds / 6
            at = min(seconds, at - (at % wave) * random.uniform(0.2, 0.8))
            yield _task(random, place, f"{place.name}-{index:05}", size, (at, mean))
    for index in range(PRESSES):  # so that preemption is no matter of chance
        at, all_of_it = seconds * index / PRESSES, PRESSED.least
        for priority, after, runs in (("low", 0.0, seconds / 4), ("high", seconds / 8, 1.0)):
            name = f"{PRESSED.name}-{priority}-{index}"
            when, lasts = round(at + after, 3), round(min(runs, LONGEST_SECONDS), 2)
            yield Task(when, PRESSED.name, name, all_of_it, 1, lasts, priority, real=False)


def _task(random: Random, place: Place, name: str, size: int, when: tuple[float, float]) -> Task:
    at, mean = when
    pods = random.choice((1, size)) if place.real else 1
    runs = random.uniform(0.3, 1.7) * min(mean, LONGEST_SECONDS)
    priority = "high" if place.cohort and random.random() < 0.2 else "low"
    cpu = size // pods
    return Task(round(at, 3), place.name, name, cpu, pods, round(runs, 2), priority, place.real)

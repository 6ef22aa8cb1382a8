"""Scenarios from seeds: few queues, few workloads, small numbers; the same seed gives the same scenario."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Final, TypeVar

from admitter.engine.model import Flavor, FlavorResource, PodSet, Taint, Toleration, Workload
from admitter.engine.policy import (
    BorrowWithin,
    Cohort,
    Fungibility,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    VictimTerms,
    WithinQueue,
)
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario, Step
from tests.engine.scenarios.growing import with_growth
from tests.engine.scenarios.limiting import with_common_limits, with_limits

PARTS: Final = ("trees", "flavors", "fair", "namespaces", "elastic")
"""What there is most of in a scenario: that of a seed is the one at its remainder."""

POOL: Final = "elastic_quota"
PODS: Final = "pods"
NAMESPACES: Final = ("n0", "n1", "n2")
WEIGHTS: Final = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(1), Fraction(2))
ELASTIC_RULES: Final = PreemptionPolicy(
    WithinQueue.LOWER_PRIORITY, Reclaim.ANY, BorrowWithin.GUARANTEED_SHARE
)
SIZES: Final = (0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 6)
"""Of one resource for one pod: half ask for none of it, so that few ask for the same."""

T = TypeVar("T")


class Draw(Random):
    """Randomness with short names."""

    def chance(self, part: float) -> bool:
        """True in so many of 1."""
        return self.random() < part

    def one(self, among: Sequence[T]) -> T:
        """One of some values, each as likely."""
        return self.choice(among)


@dataclass(frozen=True, slots=True)
class Frame:
    """What all definitions of a scenario have in common.

    Attributes:
        part: what there is most of.
        resources: that quotas count.
        groups: resources and flavors that go together.
        parents: the parent of each cohort, from the top down; the empty name is none.
        fair: the cohorts at a top that share what is borrowed by weight.
        patient: whether queues grant time.
        calm: whether nothing happens but that plain workloads arrive, so that evictions have nothing to
            blame but the rules.
        room: by queue and resource, about how much a workload can get, so that most of them can start at all.
    """

    part: str
    resources: tuple[str, ...]
    groups: tuple[Group, ...]
    parents: dict[str, str]
    fair: frozenset[str]
    patient: bool
    calm: bool
    room: dict[str, dict[str, int]] = field(default_factory=dict)

    def root(self, cohort: str) -> str:
        """The cohort at the top of one."""
        while self.parents.get(cohort):
            cohort = self.parents[cohort]
        return cohort


def scenario(seed: int) -> Scenario:
    """The scenario of a seed, perhaps with limits on evictions, and with workloads that grow."""
    return with_growth(with_common_limits(with_limits(without_limits(seed))))


def without_limits(seed: int) -> Scenario:
    """The same without such limits, and without checkpoints."""
    draw = Draw(seed)
    part = PARTS[seed % len(PARTS)]
    frame, flavors = _frame(draw, part)
    cohorts = tuple(
        _cohort(draw, frame, name)
        for name, above in frame.parents.items()
        if above or name in frame.fair or draw.chance(0.6)
    )
    names = [f"q{number}" for number in range(draw.one((2, 2, 2, 3, 3, 4)))]
    queues = tuple(_queue(draw, frame, name) for name in names)
    frame.room.update({queue.name: _room(frame, queue, queues, cohorts) for queue in queues})
    weights = {name: draw.randint(2, 3) for name in NAMESPACES if draw.chance(0.3)}
    return Scenario(
        seed,
        part,
        flavors,
        cohorts,
        queues,
        weights,
        tuple(draw.one((0, 0, 0, 1, 3)) for _ in range(3)),
        draw.one((0, 1)),
        tuple(_resizing(Draw(f"{seed} resized"), frame, _steps(draw, frame, flavors, names))),
    )


def _resizing(draw: Draw, frame: Frame, steps: list[Step]) -> Iterator[Step]:
    """The same steps, and in between pods of what runs end, or are needed again."""
    resizes = not frame.calm and draw.chance(0.6)
    for place, step in enumerate(steps):
        yield step
        if resizes and place > 2 and draw.chance(0.3):
            yield Step(draw.one((0, 0, 1)), cases.Resize(draw.randrange(8), draw.randrange(4)))


def _frame(draw: Draw, part: str) -> tuple[Frame, tuple[Flavor, ...]]:
    resources = tuple(["cpu", "memory", "gpu"][: draw.one((1, 1, 2, 2, 2, 3))])
    if draw.chance(0.25):
        resources = (*resources[: draw.randint(0, 2)], PODS)
    names = ["a", "b", "c"][: draw.one((1, 1, 2) if part != "flavors" else (2, 2, 3))]
    groups: tuple[Group, ...] = (Group(resources, tuple(names)),)
    if len(resources) > 1 and len(names) > 1 and draw.chance(0.25):
        cut, place = draw.randint(1, len(resources) - 1), draw.randint(1, len(names) - 1)
        groups = (
            Group(resources[:cut], tuple(names[:place])),
            Group(resources[cut:], tuple(names[place:])),
        )
    zones = draw.chance(0.15)
    flavors = tuple(_flavor(draw, name, groups, zones=zones) for name in names)
    calm = draw.chance(0.5)
    patient = not calm and draw.chance(0.5)
    return Frame(part, resources, groups, *_parents(draw, part), patient, calm), flavors


def _parents(draw: Draw, part: str) -> tuple[dict[str, str], frozenset[str]]:
    """Cohorts with the one above each, and which of them share by weight."""
    if part == "elastic":
        return {}, frozenset()
    names = ["r", "c", "d"][: draw.one((1, 1, 2, 2, 3))]
    parents = {name: "" if place == 0 else draw.one(names[:place]) for place, name in enumerate(names)}
    if len(names) == 3 and draw.chance(0.4):
        parents["d"] = "c"
    shared = draw.chance(0.9 if part == "fair" else 0.1)
    return parents, frozenset({"r"} if shared else ())


def _flavor(draw: Draw, name: str, groups: Sequence[Group], *, zones: bool) -> Flavor:
    place = next(place for place, group in enumerate(groups) if name in group.flavors)
    labels = [(("kind", "link")[place], name)]
    if zones:
        labels.append(("zone", draw.one("xy")))
    taints = (Taint("spot", "", "NoSchedule"),) if name != "a" and draw.chance(0.15) else ()
    return Flavor(name, tuple(labels), taints)


def _quota(draw: Draw, most: int = 8) -> Quota:
    minimum = draw.one((0, 0, *(draw.randint(low, most) for low in (1, 2, 3, 4))))
    maximum = minimum + draw.randint(1, 4) if draw.chance(0.12) else None
    lending = draw.randint(0, minimum) if draw.chance(0.15) else None
    return Quota(minimum, maximum, lending)


def _cohort(draw: Draw, frame: Frame, name: str) -> Cohort:
    keys = [(flavor, r) for group in frame.groups for flavor in group.flavors for r in group.resources]
    quotas = {key: _quota(draw, 6) for key in keys if draw.chance(0.5)}
    return Cohort(name, frame.parents[name], quotas, draw.one(WEIGHTS), fair=name in frame.fair)


def _preemption(draw: Draw, *, shared: bool) -> PreemptionPolicy:
    if draw.chance(0.15):
        return PreemptionPolicy()
    borrowing = [BorrowWithin.NEVER, BorrowWithin.LOWER_PRIORITY]
    borrowing += [] if shared else [BorrowWithin.GUARANTEED_SHARE]
    borrow = draw.one(borrowing)
    limited = borrow is BorrowWithin.LOWER_PRIORITY and draw.chance(0.3)
    threshold = draw.randint(0, 1) if limited else None
    within = WithinQueue.NEVER if draw.chance(0.2) else draw.one(list(WithinQueue)[1:])
    reclaim = Reclaim.NEVER if draw.chance(0.15) else draw.one(list(Reclaim)[1:])
    return PreemptionPolicy(within, reclaim, borrow, threshold)


def _patience(draw: Draw, frame: Frame) -> VictimTerms:
    if not frame.patient or draw.chance(0.3):
        return VictimTerms()
    return VictimTerms(draw.one((0.0, 3.0, 15.0)), draw.one((0.0, 0.0, 6.0)))


def _queue(draw: Draw, frame: Frame, name: str) -> Queue:
    if frame.part == "elastic":
        return _elastic(draw, frame, name)
    cohort = draw.one([*frame.parents, *frame.parents, ""] if draw.chance(0.2) else list(frame.parents))
    groups = tuple(_group(draw, group) for group in frame.groups)
    quotas: dict[FlavorResource, Quota] = {
        (flavor, r): _quota(draw) for group in groups for flavor in group.flavors for r in group.resources
    }
    limits = {draw.one(frame.resources): draw.randint(2, 8)} if draw.chance(0.08) else {}
    return Queue(
        name,
        Strategy.STRICT_FIFO if draw.chance(0.25) else Strategy.BEST_EFFORT_FIFO,
        groups,
        quotas,
        cohort,
        Fungibility(borrow=draw.chance(0.7), preempt=draw.chance(0.3)),
        _preemption(draw, shared=frame.root(cohort) in frame.fair),
        admits=not draw.chance(0.02),
        weight=draw.one(WEIGHTS),
        victim_terms=_patience(draw, frame),
        limits=limits,
        by_namespace=draw.chance(0.8 if frame.part == "namespaces" else 0.05),
    )


def _group(draw: Draw, group: Group) -> Group:
    """The flavors of a group as one queue lists them: perhaps in another order, or not all."""
    flavors = list(group.flavors)
    if draw.chance(0.2):
        draw.shuffle(flavors)
    if draw.chance(0.1):
        flavors = flavors[:1]
    return Group(group.resources, tuple(flavors))


def _elastic(draw: Draw, frame: Frame, name: str) -> Queue:
    """The queue of an elastic quota, which has all flavors and counts them together."""
    flavors = tuple(flavor for group in frame.groups for flavor in group.flavors)
    resources = [r for r in frame.resources if draw.chance(0.9)]
    quotas = {}
    for resource in resources:
        minimum = draw.one((0, draw.randint(1, 6), draw.randint(2, 8), draw.randint(4, 8)))
        quotas[POOL, resource] = Quota(minimum, minimum + draw.randint(0, 5) if draw.chance(0.25) else None)
    return Queue(
        name,
        Strategy.BEST_EFFORT_FIFO,
        (Group(tuple(resources), flavors),) if resources else (),
        quotas,
        "elastic-quota",
        preemption=ELASTIC_RULES,
        pool=POOL,
        lenient=True,
        victim_terms=_patience(draw, frame),
    )


def _room(frame: Frame, queue: Queue, queues: Sequence[Queue], cohorts: Sequence[Cohort]) -> dict[str, int]:
    """By resource about the most that a queue could have of it in one flavor."""
    root = frame.root(queue.cohort)
    tree = [each for each in queues if each is queue or (root and frame.root(each.cohort) == root)]
    sums: Counter[FlavorResource] = Counter()
    defined = [each.quotas for each in tree]
    defined += [each.quotas for each in cohorts if frame.root(each.name) == root]
    for quotas in defined:
        sums.update({key: quota.minimum for key, quota in quotas.items()})
    for key, quota in queue.quotas.items():
        sums[key] = min(sums[key], quota.maximum if quota.maximum is not None else sums[key])
    return {r: max((n for key, n in sums.items() if key[1] == r), default=2) for r in frame.resources}


def _workload(
    draw: Draw, frame: Frame, flavors: Sequence[Flavor], names: Sequence[str], number: int, now: int
) -> Workload:
    queue = draw.one(names)
    pod_sets = [_pods(draw, frame, flavors, queue, 1 if frame.calm else draw.one((1, 1, 1, 1, 2, 3)))]
    if draw.chance(0.02 if frame.calm else 0.1):
        pod_sets.append(replace(_pods(draw, frame, flavors, queue, 1), name="second"))
    return Workload(
        f"{draw.one('uvw')}{number}",
        queue,
        draw.one((0, 0, 1) if number < 4 else (0, 1, 1, 2)),
        float(draw.one((now, now, now - now % 4, max(0, now - 5)))),
        tuple(pod_sets),
        draw.one(NAMESPACES) if frame.part == "namespaces" else draw.one(("n0", "n0", "n1")),
        # not drawn, so that what else is drawn stays as it was
        tuple(flavor.name for flavor in flavors[: 1 + number % 2]) if number % 5 == 3 else (),
    )


def _pods(draw: Draw, frame: Frame, flavors: Sequence[Flavor], queue: str, count: int) -> PodSet:
    named = [resource for resource in frame.resources if resource != PODS]
    room = frame.room[queue]
    generous = draw.chance(0.05)
    requests = {
        resource: min(draw.one(SIZES), 9 if generous else room[resource] // count) for resource in named
    }
    if named and not any(requests.values()):
        requests[max(named, key=lambda resource: room[resource])] = 1
    tainted = any(flavor.taints for flavor in flavors)
    selector = draw.one(flavors).labels[:1] if draw.chance(0.08) else ()
    tolerations = (Toleration("spot", "Exists"),) if tainted and draw.chance(0.5) else ()
    least = draw.randint(1, count) if count > 1 and draw.chance(0.4) else None
    written = tuple((resource, amount) for resource, amount in sorted(requests.items()) if amount)
    return PodSet("main", count, written, selector, (), tolerations, least)


def _steps(draw: Draw, frame: Frame, flavors: Sequence[Flavor], names: Sequence[str]) -> list[Step]:
    steps: list[Step] = []
    now = made = 0
    for place in range(draw.randint(5, 12) if frame.calm else draw.randint(8, 22)):
        after = draw.one((0, 0, 1, 2, 4) if place > 2 else (0, 0, 1))
        now += after
        if place < 4 or frame.calm or draw.chance(0.6):
            made += 1
            workload = _workload(draw, frame, flavors, names, made, now)
            runs = None if frame.calm else draw.one((None, None, None, None, 3, 12))
            steps.append(Step(after, cases.Arrive(workload, runs)))
        else:
            steps.append(Step(after, _disturbance(draw, frame, names)))
    return steps


def _disturbance(draw: Draw, frame: Frame, names: Sequence[str]) -> cases.Event:
    """Something other than an arrival."""
    which = draw.randrange(8)
    cohorts = list(frame.parents) if draw.chance(0.3) else []
    definition = _cohort(draw, frame, draw.one(cohorts)) if cohorts else _queue(draw, frame, draw.one(names))
    weighted: list[tuple[cases.Event, int]] = [
        (cases.End(which), 30),
        (cases.Delete(which, draw.one((0, 2, 6))), 8),
        (cases.Withdraw(which), 8),
        (cases.Change(which, draw.randint(0, 2)), 6),
        (cases.Edit(definition), 14),
        (cases.Weigh(draw.one(NAMESPACES), draw.randint(1, 3)), 4),
        (cases.Lose(), 6),
        (cases.Refuse(), 8),
        (cases.Repeat(), 4),
        (cases.Restart(), 12),
    ]
    return draw.choices([event for event, _ in weighted], [weight for _, weight in weighted])[0]

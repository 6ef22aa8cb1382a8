"""Extra pods in scenarios: some workloads could use more, and those that are to end take their time."""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.engine.growth import Resizing
from admitter.engine.model import Admission, Assignment, FlavorResource, Usage
from admitter.engine.quota.extras import GROWTH_SECONDS, Extra
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.world import Running, World

if TYPE_CHECKING:
    from tests.engine.scenarios.driver import Play


def with_growth(case: Scenario) -> Scenario:
    """Every second scenario with workloads that could use more pods; all else stays as it was."""
    random, steps, extra = Random(f"growing {case.seed}"), list[cases.Step](), dict[str, int]()
    if random.random() < 0.5:
        return case
    calm = all(isinstance(step.event, cases.Arrive) for step in case.steps)
    for place, step in enumerate(case.steps):
        event = step.event
        if isinstance(event, cases.Arrive) and random.random() < 0.6:
            extra[event.workload.uid] = random.randint(1, 4)
        steps.append(step)
        if not calm and place > 2 and random.random() < 0.15:
            steps.append(cases.Step(0, cases.Grow(random.randint(0, 9), random.randint(0, 4))))
    spans = tuple(random.choice((0, 0, 1, 3)) for _ in range(3))
    return replace(case, steps=tuple(steps), extra=extra, spans=spans)


def parts_of(admission: Admission) -> dict[str, Assignment]:
    """What grows of a workload by itself: each pod set if it has several."""
    one = len(admission.pod_sets) == 1
    return {"" if one else each.name: each for each in admission.pod_sets}


def each_of(admission: Admission, pod_set: Assignment) -> Usage:
    """What one pod of a pod set uses."""
    sums: Counter[FlavorResource] = Counter()
    for resource, amount in pod_set.usage:
        flavor = admission.pool or dict(pod_set.flavors)[resource]
        sums[flavor, resource] += amount // max(1, pod_set.count)
    return tuple(sums.items())


def used(sums: dict[str, dict[FlavorResource, int]], running: Running, pods: int, part: str = "") -> None:
    """Add what so many extra pods hold to what queues use."""
    queue = sums.setdefault(running.admission.queue, {})
    for key, amount in running.extra[part].use(pods):
        queue[key] = queue.get(key, 0) + amount


def real(world: World) -> dict[str, dict[FlavorResource, int]]:
    """What runs uses, with all extra pods."""
    sums = world.use(world.running)
    for running in world.running.values():
        for part, extra in running.extra.items():
            used(sums, running, extra.granted, part)
    return sums


def begin(play: "Play", uid: str) -> None:
    """A workload is admitted; some could use more pods."""
    most, running = play.scenario.extra.get(uid, 0), play.world.running[uid]
    if most:
        for part, each in parts_of(running.admission).items():
            usage = each_of(running.admission, each)
            running.extra[part] = Extra(usage, each.count, most, since=_since(play, uid))
        tell(play, play.engine, uid)


def _since(play: "Play", uid: str) -> float:
    """Such a time that it may grow soon, though not always at once."""
    spans = play.scenario.spans
    return play.now - GROWTH_SECONDS + spans[sum(map(ord, uid)) % len(spans)]


def tell(play: "Play", engine: Engine, uid: str) -> None:
    """Make an engine know what extra pods a workload has."""
    for part, extra in play.world.running[uid].extra.items():
        engine.apply(commands.SetExtra(uid, extra, part))


def take(play: "Play", resized: list[Resizing], *, lost: bool) -> bool:
    """What the engine has decided of extra pods comes true; but for the first, which may be lost."""
    for each in resized:
        running = play.world.running[each.holder]
        before, after = running.extra[each.part], each.extra
        if lost:
            lost = False
            play.say(f"that {each.holder} is resized is not written")
            tell(play, play.engine, each.holder)
            continue
        if after.granted > before.granted:
            play.say(f"{each.holder} grows by {after.granted - before.granted} pods")
        else:
            play.say(f"{before.kept - after.kept} extra pods of {each.holder} are to end")
            running.shrinks_at = play.now + next(play.departures)
        running.extra[each.part] = replace(after, since=_since(play, each.holder))
        tell(play, play.engine, each.holder)
    return lost


def happen(play: "Play") -> None:
    """Extra pods that were to end have ended."""
    for uid, running in sorted(play.world.running.items()):
        if running.shrinks_at is not None and running.shrinks_at <= play.now:
            running.shrinks_at = None
            for part, extra in running.extra.items():
                play.say(f"{extra.granted - extra.kept} extra pods of {uid} have ended")
                running.extra[part] = replace(extra, granted=extra.kept)
            tell(play, play.engine, uid)


def want(play: "Play", uid: str, pods: int) -> str:
    """A workload that runs could use so many extra pods from now on; those that it has stay."""
    running = play.world.running[uid]
    if uid in play.world.leaving:
        return "is asked for nothing"
    admission = running.whole or running.admission
    parts = parts_of(admission)
    part = sorted(parts)[pods % len(parts)]
    first = Extra(each_of(admission, parts[part]), 1, 0, since=_since(play, uid))
    known = running.extra.get(part, first)
    running.extra[part] = replace(known, most=max(known.granted, pods))
    tell(play, play.engine, uid)
    return f"could use {running.extra[part].most} extra pods"


def orphan(running: Running) -> None:
    """A workload is deleted: none of its pods is more than the others, and it gets no more."""
    for part, extra in running.extra.items():
        running.extra[part] = replace(extra, most=extra.granted, kept=0)
        running.shrinks_at = None

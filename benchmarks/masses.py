"""One cycle that has much to decide: many reclaims at once, many shapes, many flavors."""

import gc
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from admitter.engine.commands import (
    Define,
    Release,
    Reserve,
    SetEvictions,
    SetFlavor,
    StartEviction,
    Submit,
)
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import (
    Cohort,
    EvictionLimit,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    WithinQueue,
)
from admitter.engine.tree_cycle import Plan


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds that some work takes."""
    gc.collect()  # what was left before is no part of it
    began = time.process_time()
    work()
    return time.process_time() - began


def made(name: str, flavors: tuple[str, ...], own: int, preemption: PreemptionPolicy) -> Queue:
    """A queue of one cohort with so much CPU of its own in each of its flavors."""
    quotas = {(flavor, "cpu"): Quota(own) for flavor in flavors}
    groups = (Group(("cpu",), flavors),)
    return Queue(name, Strategy.BEST_EFFORT_FIFO, groups, quotas, "c", preemption=preemption)


def one(units: int, count: int = 1, least: int | None = None) -> tuple[PodSet, ...]:
    """One pod set."""
    return (PodSet("main", count, (("cpu", units),), min_count=least),)


def use(name: str, flavor: str, units: int) -> Admission:
    """What one pod of such a pod set uses."""
    return Admission(name, (Assignment("main", 1, (("cpu", flavor),), (("cpu", units),)),))


def reclaiming(count: int, owners: int = 1, borrowers: int = 1) -> dict[str, float]:
    """One cycle in which many Workloads each take back what two others borrow."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("f")))
    for number in range(owners):
        policy = PreemptionPolicy(reclaim=Reclaim.ANY)
        engine.apply(Define((made(f"o{number:04}", ("f",), 10 * count // owners, policy),)))
    for number in range(borrowers):
        engine.apply(Define((made(f"b{number:04}", ("f",), 0, PreemptionPolicy()),)))
    for number in range(2 * count):
        name = f"b{number % borrowers:04}"
        victim = Workload(f"v{number:06}", name, number % 7, number, one(5))
        engine.apply(Reserve(victim.uid, use(name, "f", 5), victim, number))
    engine.cycle(0)
    for number in range(count):
        engine.apply(Submit(Workload(f"o{number:06}", f"o{number % owners:04}", 0, number, one(10))))
    evictions: list[object] = []
    seconds = cpu(lambda: evictions.extend(engine.cycle(0).evictions))
    return {
        "reclaiming": count,
        "owners": owners,
        "borrowers": borrowers,
        "victims": len(evictions),
        "cpu_seconds": round(seconds, 2),
    }


def distinct(count: int, *, preempting: bool = False) -> dict[str, float]:
    """One cycle with many Workloads that each can do with another number of pods; most start with fewer."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("f")))
    names = tuple(f"q{number:04}" for number in range(count // 10))
    for name in names:
        policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY) if preempting else PreemptionPolicy()
        engine.apply(Define((made(name, ("f",), 3 * count, policy),)))
        if preempting:
            victim = Workload(f"v-{name}", name, -1, 0, one(count))
            engine.apply(Reserve(victim.uid, use(name, "f", count), victim))
    for number in range(count):
        shape = one(1, 2 * count, number + 1)
        engine.apply(Submit(Workload(f"w{number:06}", names[number % len(names)], 0, number, shape)))
    plans: list[Plan] = []
    seconds = cpu(lambda: plans.append(engine.cycle(0)))
    return {
        "distinct": count,
        "admitted": len(plans[0].admissions),
        "evictions": len(plans[0].evictions),
        "cpu_seconds": round(seconds, 2),
    }


def flavored(count: int, flavors: int = 64, running: int = 640, shapes: int = 1) -> dict[str, float]:
    """One cycle of many Jobs, each of another priority, on a queue of many flavors that preempts."""
    engine = Engine()
    names = tuple(f"f{number:02}" for number in range(flavors))
    for name in names:
        engine.apply(SetFlavor(Flavor(name)))
    policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)
    engine.apply(Define((made("q", names, 10, policy),)))
    engine.apply(Define((made("other", names, 0, policy),)))
    for number in range(running):
        victim = Workload(f"r{number:06}", "q", 0, 0, one(1))
        engine.apply(Reserve(victim.uid, use("q", names[number % flavors], 1), victim))
    engine.cycle(0)
    for number in range(count):
        engine.apply(Submit(Workload(f"w{number:06}", "q", 1 + number, number, one(1 + number % shapes))))
    plans: list[Plan] = []
    seconds = cpu(lambda: plans.append(engine.cycle(0)))
    return {
        "jobs": count,
        "flavors": flavors,
        "running": running,
        "shapes": shapes,
        "admitted": len(plans[0].admissions),
        "evictions": len(plans[0].evictions),
        "cpu_seconds": round(seconds, 2),
    }


RESULTS: Final = Path(__file__).parent / "results" / "eviction-limits.json"
LIMITS: Final[Mapping[str, EvictionLimit | None]] = {
    "none": None,
    "far": EvictionLimit(100, 1.0),
    "reached": EvictionLimit(1, 3600.0),
    "small": EvictionLimit(2, 3600.0),
    "zero": EvictionLimit(0, 3600.0),
}
"""Of each queue and each Cohort: none, one that is never reached, one that soon is; `small` is for three."""


def limited(kind: str, candidates: int = 10_000, asking: int = 100, size: int = 1) -> dict[str, float]:
    """Owners that each take back one CPU, one a second, in a tree of three levels with many candidates."""
    limit, engine = LIMITS[kind], Engine()
    engine.apply(SetFlavor(Flavor("f")))
    engine.apply(Define(cohorts=(Cohort("c", max_evictions=limit),)))
    engine.apply(Define(cohorts=tuple(Cohort(f"c{n}", "c", max_evictions=limit) for n in range(10))))
    owns = made("owner", ("f",), candidates, PreemptionPolicy(reclaim=Reclaim.ANY))
    lends = [made(f"b{n:03}", ("f",), 0, PreemptionPolicy()) for n in range(candidates // 50)]
    below = (replace(each, cohort=f"c{n % 10}", max_evictions=limit) for n, each in enumerate(lends))
    engine.apply(Define((owns, *below)))
    for number in range(candidates):
        name = lends[number % len(lends)].name
        victim = Workload(f"v{number:06}", name, number % 7, number, one(1))
        engine.apply(Reserve(victim.uid, use(name, "f", 1), victim, number))
    engine.cycle(0)
    evicted, records = 0, defaultdict[str, list[tuple[float, str]]](list)

    def work() -> None:
        nonlocal evicted
        for number in range(asking):
            now = 10.0 + number
            engine.apply(Submit(Workload(f"o{number:06}", "owner", number, number, one(size))))
            for each in engine.cycle(now).evictions:
                evicted += 1
                records[each.victim.queue].append((now, each.victim.holder))
                if limit is not None:
                    record = tuple(records[each.victim.queue][-100:])
                    engine.apply(SetEvictions(each.victim.queue, record))
                engine.apply(StartEviction(each.victim.holder))
                engine.apply(Release(each.victim.holder))
            engine.cycle(now)

    return {"cpu_seconds": cpu(work), "evictions": evicted}


def limits(rounds: int = 5) -> list[dict[str, float | str]]:
    """What limits on evictions cost: medians of runs in turn, beside those without limits."""
    cases = [*((kind, 1) for kind in LIMITS if kind != "small"), ("none", 3), ("far", 3), ("small", 3)]
    runs = {case: list[dict[str, float]]() for case in cases}
    for _ in range(rounds):
        for (kind, size), found in runs.items():
            found.append(limited(kind, asking=60, size=size))
    seconds = {case: median(each["cpu_seconds"] for each in found) for case, found in runs.items()}
    return [
        {
            "limits": kind,
            "victims_of_each": size,
            "evictions": found[0]["evictions"],
            "cpu_to_that_without_limits": round(seconds[kind, size] / seconds["none", size], 1),
            "ms_per_preemptor": round(seconds[kind, size] / 60 * 1000, 1),
        }
        for (kind, size), found in runs.items()
    ]


def curves(scale: int = 1) -> dict[str, list[dict[str, float]]]:
    """Each at three sizes, each twice the one before; a `scale`-th of them."""
    sizes = [size // scale for size in (500, 1000, 2000)]
    return {
        "reclaiming": [reclaiming(size) for size in sizes],
        "reclaiming_among_many_queues": [reclaiming(size, size, 2 * size) for size in sizes],
        "distinct_min_counts": [distinct(size) for size in sizes],
        "distinct_min_counts_preempting": [distinct(size, preempting=True) for size in sizes],
        "flavors_free": [flavored(size, running=0) for size in sizes],
        "flavors_full": [flavored(size) for size in sizes],
        "flavors_full_of_shapes": [flavored(size, shapes=8) for size in sizes],
    }


if __name__ == "__main__":
    RESULTS.write_text(
        json.dumps({"command": "python -m benchmarks.masses", "limits": limits()}, indent=2) + "\n"
    )
    print(RESULTS.read_text(), end="")

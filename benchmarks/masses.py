"""One cycle that has much to decide: many reclaims at once, many shapes, many flavors."""

import gc
import time
from collections.abc import Callable

from admitter.engine.commands import Define, Reserve, SetFlavor, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import Group, PreemptionPolicy, Queue, Quota, Reclaim, Strategy, WithinQueue
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

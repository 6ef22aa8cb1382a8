"""Speed and memory of the engine: `make bench-engine`, or `python -m benchmarks.engine [--quick]`.

Prints a table and writes `benchmarks/results/engine.json`. Times are CPU seconds of this process,
measured in one run; what counts is how they grow.
"""

import argparse
import heapq
import json
import platform
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from admitter.engine.commands import Define, Release, Reserve, SetFlavor, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import (
    Cohort,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    WithinQueue,
)
from benchmarks.masses import cpu, curves

RESULTS = Path(__file__).parent / "results" / "engine.json"
KEY = ("default", "gpu")


@dataclass(frozen=True)
class Kind:
    """Workloads that are alike: how many a queue, how large, how often, how long, how important."""

    name: str
    count: int
    units: int
    every_ms: int
    lasts_ms: int
    priority: int


KINDS = (
    Kind("small", 35, 1, 60, 150, 50),
    Kind("medium", 11, 5, 300, 350, 100),
    Kind("large", 4, 20, 700, 700, 200),
)


def queue(name: str, quota: Quota, cohort: str = "", preemption: PreemptionPolicy | None = None) -> Queue:
    """A queue with one flavor of GPUs."""
    group = (Group(("gpu",), ("default",)),)
    policy = preemption or PreemptionPolicy()
    return Queue(name, Strategy.BEST_EFFORT_FIFO, group, {KEY: quota}, cohort, preemption=policy)


def pods(units: int) -> tuple[PodSet, ...]:
    """One pod set of one pod."""
    return (PodSet("main", 1, (("gpu", units),)),)


def admission(name: str, units: int) -> Admission:
    """What such a pod set uses."""
    return Admission(name, (Assignment("main", 1, (("gpu", "default"),), (("gpu", units),)),))


@dataclass
class Run:
    """What a simulated run came to.

    Attributes:
        unit_ms: quota in use, summed over time, up to the last arrival.
        preemptions: how many.
        cycles: how many.
        end_ms: when the last one finished.
    """

    unit_ms: float = 0.0
    preemptions: int = 0
    cycles: int = 0
    end_ms: int = 0


def arrivals(cohorts: int, queues: int, apart_ms: int) -> Iterator[tuple[int, Workload, int]]:
    """When which workload comes, and for how long it runs; each queue starts a little after the last."""
    for cohort in range(cohorts):
        for number in range(queues):
            name = f"c{cohort}-q{number:03}"
            for kind in KINDS:
                for index in range(kind.count):
                    at = kind.every_ms * index + number * apart_ms
                    uid = f"{name}-{kind.name}-{index:02}"
                    yield at, Workload(uid, name, kind.priority, at, pods(kind.units)), kind.lasts_ms


def earliest(coming: Sequence[tuple[Any, ...]], ends: Sequence[tuple[Any, ...]]) -> int:
    """The next moment at which something comes (they are in reverse order) or ends."""
    times = [queue[0] for queue in (*coming[-1:], *ends[:1])]
    return int(min(times))


def simulate(cohorts: int, queues: int, apart_ms: int = 0, *, fair: bool = False) -> Run:
    """Run all workloads to their end, preemptions included."""
    engine, run = Engine(), Run()
    engine.apply(SetFlavor(Flavor("default")))
    policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)
    for cohort in range(cohorts):
        engine.apply(Define(cohorts=(Cohort(f"c{cohort}", fair=fair),)))
        for number in range(queues):
            engine.apply(Define((queue(f"c{cohort}-q{number:03}", Quota(20, 120), f"c{cohort}", policy),)))
    coming = sorted(
        arrivals(cohorts, queues, apart_ms), key=lambda arrival: (arrival[0], arrival[1].uid), reverse=True
    )
    lasts = {workload.uid: duration for _, workload, duration in coming}
    units = {workload.uid: workload.pod_sets[0].requests[0][1] for _, workload, _ in coming}
    last_arrival = coming[0][0]
    ends: list[tuple[int, str, int]] = []
    starts: dict[str, int] = {}
    in_use, now = 0, 0
    while coming or ends:
        following = earliest(coming, ends)
        run.unit_ms += in_use * (min(following, last_arrival) - min(now, last_arrival))
        now = following
        while ends and ends[0][0] == now:
            _, uid, start = heapq.heappop(ends)
            if starts.get(uid) == start:
                del starts[uid]
                in_use -= units[uid]
                engine.apply(Release(uid))
        while coming and coming[-1][0] == now:
            engine.apply(Submit(coming.pop()[1]))
        while engine.changed:
            plan = engine.cycle(now)
            run.cycles += 1
            for workload, _ in plan.admissions:
                starts[workload.uid] = run.cycles
                in_use += units[workload.uid]
                heapq.heappush(ends, (now + lasts[workload.uid], workload.uid, run.cycles))
            for eviction in plan.evictions:
                victim = eviction.victim
                assert victim.workload is not None
                run.preemptions += 1
                del starts[victim.holder]
                in_use -= units[victim.holder]
                engine.apply(Release(victim.holder))
                engine.apply(Submit(victim.workload))
        run.end_ms = now
    return run


def oracle(queues: int, apart_ms: int = 0) -> int:
    """When one cohort is done if whatever is free is given away at every moment, large ones first.

    It knows no queues and preempts nothing: the cohort's quota is all that bounds it.
    """
    coming = sorted(
        (kind.every_ms * index + number * apart_ms, -kind.units, kind.lasts_ms)
        for kind in KINDS
        for index in range(kind.count)
        for number in range(queues)
    )
    coming.reverse()
    free = queues * 20
    waiting: dict[tuple[int, int], int] = {}
    ends: list[tuple[int, int]] = []
    now = 0
    while coming or ends:
        now = earliest(coming, ends)
        while ends and ends[0][0] == now:
            free += heapq.heappop(ends)[1]
        while coming and coming[-1][0] == now:
            _, units, lasts = coming.pop()
            waiting[units, lasts] = waiting.get((units, lasts), 0) + 1
        for units, lasts in sorted(waiting):
            while waiting[units, lasts] and -units <= free:
                waiting[units, lasts] -= 1
                free += units
                heapq.heappush(ends, (now + lasts, -units))
    return now


def throughput(cohorts: int, queues: int, apart_ms: int = 0, *, fair: bool = False) -> dict[str, float]:
    """50 workloads a queue, to their end; compared with the oracle."""
    began = time.process_time()
    run = simulate(cohorts, queues, apart_ms, fair=fair)
    seconds = time.process_time() - began
    work = queues * sum(kind.count * kind.units * kind.lasts_ms for kind in KINDS)
    best = oracle(queues, apart_ms)
    capacity = queues * 20
    return {
        "workloads": cohorts * queues * 50,
        "queues": cohorts * queues,
        "cohorts": cohorts,
        "queues_start_apart_ms": apart_ms,
        "fair_sharing": fair,
        "cpu_seconds": round(seconds, 2),
        "cycles": run.cycles,
        "preemptions": run.preemptions,
        "mean_use": round(work / (capacity * run.end_ms), 4),
        "mean_use_of_oracle": round(work / (capacity * best), 4),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def waiting(count: int, rounds: int = 90) -> dict[str, float]:
    """A cycle after one of many finishes, with 10 shapes waiting in one queue."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("default")))
    engine.apply(Define((queue("q", Quota(1000)),)))
    engine.apply(Reserve("fills", admission("q", 900)))
    engine.apply(Reserve("runs-0", admission("q", 100)))
    for number in range(count):
        shape = pods(100 + number % 10)
        engine.apply(Submit(Workload(f"w{number:06}", "q", 0, number, shape)))
    engine.cycle(0)
    running, times = ["runs-0"], []
    for _ in range(rounds):
        began = time.process_time()
        engine.apply(Release(running.pop()))
        plan = engine.cycle(0)
        times.append(time.process_time() - began)
        running += [workload.uid for workload, _ in plan.admissions]
    return {
        "waiting": count,
        "median_ms": round(median(times) * 1000, 3),
        "most_ms": round(max(times) * 1000, 3),
    }


def preempting(candidates: int, queues: int = 100) -> dict[str, float]:
    """One decision in which a queue takes its quota back from thousands that borrow it."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("default")))
    engine.apply(Define((queue("owner", Quota(candidates), "c", PreemptionPolicy(reclaim=Reclaim.ANY)),)))
    for number in range(queues):
        engine.apply(Define((queue(f"q{number:03}", Quota(0), "c"),)))
    for number in range(candidates):
        name = f"q{number % queues:03}"
        workload = Workload(f"w{number:06}", name, number % 7, number, pods(1))
        engine.apply(Reserve(workload.uid, admission(name, 1), workload, number))
    engine.cycle(0)
    engine.apply(Submit(Workload("asks", "owner", 0, 0, pods(candidates // 2))))
    evictions = []
    seconds = cpu(lambda: evictions.extend(engine.cycle(0).evictions))
    return {"candidates": candidates, "victims": len(evictions), "ms": round(seconds * 1000, 1)}


def shared(namespaces: int, preemption: PreemptionPolicy, ends: int = 50) -> dict[str, float]:
    """One full queue that namespaces share, five Jobs each: to fill it, and what each end of a Job costs."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("default")))
    made = queue("q", Quota(namespaces * 5 // 2), preemption=preemption)
    engine.apply(Define((replace(made, by_namespace=True),)))
    for number in range(namespaces * 5):
        name = f"ns{number % namespaces:05}"
        engine.apply(Submit(Workload(f"w{number:06}", "q", 0, number, pods(1), name)))
    running: list[str] = []
    filling = cpu(lambda: running.extend(workload.uid for workload, _ in engine.cycle(0).admissions))

    def work() -> None:
        for uid in running[:ends]:
            engine.apply(Release(uid))
            engine.cycle(0)

    return {
        "namespaces": namespaces,
        "admitted": len(running),
        "us_per_admission": round(filling / len(running) * 1e6, 1),
        "ms_per_end": round(cpu(work) / ends * 1000, 2),
    }


def deep(depth: int, rounds: int = 2000) -> dict[str, float]:
    """Reserve, release and decide under cohorts of some depth."""
    engine = Engine()
    engine.apply(SetFlavor(Flavor("default")))
    for level in range(depth):
        engine.apply(Define(cohorts=(Cohort(f"level-{level}", f"level-{level - 1}" if level else ""),)))
    engine.apply(Define((queue("q", Quota(10), f"level-{depth - 1}"),)))

    def work() -> None:
        for number in range(rounds):
            engine.apply(Submit(Workload(f"w{number}", "q", 0, 0, pods(1))))
            engine.cycle(0)
            engine.apply(Release(f"w{number}"))

    return {"depth": depth, "us_per_workload": round(cpu(work) / rounds * 1e6, 1)}


def defining(queues: int, batch: int = 25, rounds: int = 40) -> dict[str, float]:
    """Definitions of some queues among many below 50 cohorts of one tree: what it costs that they change.

    The queues have what the root has, within limits of their own. First these change while nothing waits,
    then while a workload waits in every queue; then so do the minimums, by which all may have more or less.
    """
    engine = Engine()
    engine.apply(SetFlavor(Flavor("default")))
    cohorts = [Cohort(f"c{number}", "root") for number in range(50)]
    engine.apply(Define(cohorts=(Cohort("root", "", {KEY: Quota(queues)}), *cohorts)))
    plain = replace(queue("", Quota()), quotas={})

    def median_ms(batches: int, limit: int, minimum: int = 0) -> float:
        shape = replace(plain, limits={"gpu": limit}, quotas={KEY: Quota(minimum)} if minimum else {})
        times = []
        for first in range(0, batches * batch, batch):
            numbers = [number % queues for number in range(first, first + batch)]
            changed = [replace(shape, name=f"q{number}", cohort=f"c{number % 50}") for number in numbers]
            began = time.process_time()
            engine.apply(Define(tuple(changed)))
            engine.cycle(0)
            times.append(time.process_time() - began)
        return round(median(times) * 1000, 2)

    result = {
        "queues": queues,
        "changed_together": batch,
        "ms_per_batch_new": median_ms(queues // batch, 1),
        "ms_per_batch_changed": median_ms(rounds, 2),
    }
    for number in range(queues):
        engine.apply(Submit(Workload(f"w{number}", f"q{number}", 0, number, pods(3))))
    engine.cycle(0)
    result["ms_per_batch_while_all_wait"] = median_ms(rounds, 1)
    result["ms_per_batch_that_all_feel"] = median_ms(rounds, 1, 1)
    return result


def main() -> None:
    """Run all, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, and nothing is saved")
    quick = parser.parse_args().quick
    scale = 10 if quick else 1
    result: dict[str, object] = {
        "command": "python -m benchmarks.engine",
        "python": platform.python_version(),
        "throughput": throughput(max(1, 10 // scale), 100),
        "throughput_unaligned": throughput(1, 100 // scale, apart_ms=7),
        "throughput_fair": throughput(1, 100 // scale, fair=True),
        "growth": {
            "queues": [throughput(1, queues) for queues in (50, 100, 200)],
            "workloads": [waiting(count) for count in (1000, 10_000, 100_000 // scale)],
            "candidates": [preempting(count) for count in (1250, 2500, 5000)],
            "depth": [deep(depth) for depth in (1, 2, 4, 8, 16)],
            "definitions": [defining(count // scale) for count in (1250, 2500, 5000)],
            "namespaces": [shared(count, PreemptionPolicy()) for count in (250, 500, 1000)],
            "namespaces_preempting": [
                shared(count, PreemptionPolicy(WithinQueue.LOWER_PRIORITY)) for count in (250, 500, 1000)
            ],
            "one_cycle": curves(scale),
        },
    }
    print(json.dumps(result, indent=2))
    if not quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

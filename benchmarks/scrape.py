"""What it costs to ask for the metrics of many queues: `python -m benchmarks.scrape`.

Each queue has quota in two flavors of two resources, uses some of it, and has admitted, evicted and finished
Workloads. Two times count: for how long nothing else is done, and the CPU that all of it takes.
"""

import argparse
import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final, cast

from prometheus_client import disable_created_metrics

from admitter.api.conditions import EvictedReason, FinishedReason
from admitter.cache.world import World
from admitter.client.pace import Pace
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.controllers.telemetry.metrics import Metrics, StateMetrics
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.commands import Define, Reserve, SetFlavor
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor
from admitter.engine.policy import Group, Queue, Quota, Strategy
from admitter.policy.catalog import Catalog

FLAVORS: Final = ("on-demand", "spot")
RESOURCES: Final = ("cpu", "memory")
NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROUNDS: Final = 10


def filled(queues: int) -> tuple[Metrics, StateMetrics]:
    """Metrics of so many queues, in cohorts of ten."""
    engine, metrics = Engine(), Metrics()
    for flavor in FLAVORS:
        engine.apply(SetFlavor(Flavor(flavor)))
    quotas = {(flavor, resource): Quota(1000, 4000) for flavor in FLAVORS for resource in RESOURCES}
    names = [f"queue-{number:04}" for number in range(queues)]
    group = Group(RESOURCES, FLAVORS)
    engine.apply(
        Define(
            tuple(
                Queue(name, Strategy.BEST_EFFORT_FIFO, (group,), quotas, f"cohort-{number // 10}")
                for number, name in enumerate(names)
            )
        )
    )
    for number, name in enumerate(names):
        flavors = tuple((resource, FLAVORS[number % 2]) for resource in RESOURCES)
        used = Assignment("main", 1, flavors, tuple((resource, 1500) for resource in RESOURCES))
        engine.apply(Reserve(f"uid-{number}", Admission(name, (used,))))
        metrics.admitted(name, float(number))
        for reason in (EvictedReason.PREEMPTED, EvictedReason.DEACTIVATED):
            metrics.evicted(name, reason)
        for finished in FinishedReason:
            metrics.finished(name, finished)
    return metrics, StateMetrics(engine, counting(engine), lambda: ())


def counting(engine: Engine) -> QuotaStatuses:
    """The count of pending Workloads of a cluster without any."""
    world = World()
    catalog = Catalog(world, engine, DEFAULT_GPUS)
    return QuotaStatuses(world, catalog, engine, cast("Any", None), lambda: NOON, Pace(), {})


async def measured(queues: int) -> dict[str, Any]:
    """The figures; the least of some rounds, so that the machine's other work does not count."""
    metrics, state = filled(queues)
    metrics.state = state
    held, cpu, page = [], [], b""
    for _ in range(ROUNDS):
        began = time.perf_counter()
        state.look()
        held.append(time.perf_counter() - began)
        began = time.process_time()
        page = await metrics.page()
        cpu.append(time.process_time() - began)
    return {
        "queues": queues,
        "series": sum(not line.startswith(b"#") for line in page.splitlines()),
        "bytes": len(page),
        "held_ms": round(min(held) * 1000, 1),
        "cpu_ms": round(min(cpu) * 1000, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=1000)
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
    sys.stdout.write(json.dumps(asyncio.run(measured(parser.parse_args().queues))) + "\n")

"""What the controller counts, by Prometheus' conventions; docs/metrics.md has a table of all of it.

Counters and histograms grow as decisions are made. Gauges of the present state, pending workloads and quota
in use, are read at each request, and cost nothing in between: two numbers a queue for pending workloads, and
up to six for each flavor and resource that it counts.
"""

import asyncio
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from platform import python_version
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from admitter import __version__
from admitter.client.metrics import CallMetrics
from admitter.client.store import Key
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource
from admitter.engine.policy import Queue
from admitter.engine.refusal import Reason
from admitter.quantities.amounts import CPU
from admitter.quotas.elastic import kind_of_queue

M = TypeVar("M", bound=MetricWrapperBase)

QUEUE_LABELS: Final = ("cluster_queue", "kind")
"""The name of a queue as `status.admission.clusterQueue` has it, and the kind of the object it stands for."""

WAIT_BUCKETS: Final = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600)
"""Seconds from the moment that something waits to its admission."""
CYCLE_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
"""Seconds that a decision takes."""


_QUOTA: Final = {
    "used": "Quota in use.",
    "borrowed": "Quota in use beyond what the queue has of its own.",
    "free": "The largest request that would fit now, with what can be borrowed.",
    "claimed": "What the next candidate of the queue asks for and owns, and others may not newly borrow.",
    "min": "Quota that the queue has of its own.",
    "max": "The most that may be in use, if there is such a limit.",
}
_UNITS: Final = "In the resource's unit: cores, bytes, devices, GB of GPU memory."


class _Cell(NamedTuple):
    """What is known of one flavor and resource of a queue, in the engine's unit; None: nothing is said."""

    queue: str
    key: FlavorResource
    used: int
    borrowed: int
    free: int
    claimed: int
    min: int | None
    max: int | None


@dataclass(eq=False)
class StateMetrics:
    """Takes down what is so in a turn of the event loop, and shows it as metrics.

    `deciding` gives the LocalQueue of each Workload with an admission that is being written.
    """

    engine: Engine
    queues: QuotaStatuses
    deciding: Callable[[], Iterable[Key]]

    def __post_init__(self) -> None:
        self._cells: list[_Cell] = []
        self._active: dict[str, int] = {}
        self._inadmissible: dict[str, int] = {}
        self._admitted: dict[str, int] = {}
        self._limited: dict[str, int] = {}

    def is_known(self, queue: str) -> bool:
        return queue in self.engine.tree.queues

    def look(self) -> None:
        definitions = self.engine.tree.queues
        self._cells = [cell for queue in definitions.values() for cell in self._cells_of(queue)]
        waiting, self._admitted = self.queues.pending(), self.queues.admitted()
        deciding = Counts(self.queues.queue_of(key) for key in self.deciding())
        names = sorted({*definitions, *waiting})
        active = {name: self.engine.waiting(name) + deciding[name] for name in names}
        self._active = {name: min(active[name], waiting[name]) for name in names}
        self._inadmissible = {name: waiting[name] - self._active[name] for name in names}
        self._limited = {name: self.engine.refused_by(name, Reason.EVICTIONS_LIMITED) for name in names}

    def _cells_of(self, queue: Queue) -> Iterator[_Cell]:
        ledger, claimed = self.engine.ledger, self.engine.claimed(queue.name)
        for key in dict.fromkeys((*queue.keys(), *ledger.used(queue.name))):
            cell, quota = ledger.real.cell(queue.name, key), queue.quotas.get(key)
            limits = (quota.minimum, quota.maximum) if quota is not None else (None, None)
            borrowed, free = max(0, cell.used - cell.subtree_quota), max(0, cell.available())
            yield _Cell(queue.name, key, cell.used, borrowed, free, claimed.get(key, 0), *limits)

    def collect(self) -> Iterator[Metric]:
        pending = GaugeMetricFamily(
            "admitter_pending_workloads",
            "Workloads that wait: active ones compete for quota, inadmissible ones may not.",
            labels=(*QUEUE_LABELS, "status"),
        )
        for status, counts in (("active", self._active), ("inadmissible", self._inadmissible)):
            for queue, count in counts.items():
                pending.add_metric((queue, kind_of_queue(queue), status), count)
        yield pending
        admitted = GaugeMetricFamily(
            "admitter_admitted_workloads", "Workloads that hold quota.", labels=QUEUE_LABELS
        )
        for queue, count in self._admitted.items():
            admitted.add_metric((queue, kind_of_queue(queue)), count)
        yield admitted
        limited = GaugeMetricFamily(
            "admitter_eviction_limited_workloads",
            "Workloads that wait since limits keep others from being evicted for them.",
            labels=QUEUE_LABELS,
        )
        for queue, count in self._limited.items():
            limited.add_metric((queue, kind_of_queue(queue)), count)
        yield limited
        for name, words in _QUOTA.items():
            yield self._quota(name, words)

    def _quota(self, name: str, words: str) -> Metric:
        labels = (*QUEUE_LABELS, "flavor", "resource")
        family = GaugeMetricFamily(f"admitter_quota_{name}", f"{words} {_UNITS}", labels=labels)
        for cell in self._cells:
            amount: int | None = getattr(cell, name)
            if amount is not None:
                flavor, resource = cell.key
                value = amount / 1000 if resource == CPU else amount
                family.add_metric((cell.queue, kind_of_queue(cell.queue), flavor, resource), value)
        return family


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.calls = CallMetrics(registry)
        # what the metrics count of each queue, by metric and the labels besides
        self._by_queue: dict[str, dict[tuple[MetricWrapperBase, tuple[str, ...]], Any]] = {}
        self.state: StateMetrics | None = None
        registry.register(self)
        Info("admitter_build", "What runs here.", registry=registry).info(
            {"version": __version__, "python": python_version()}
        )
        gauge, counter = partial(Gauge, registry=registry), partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self._leader = gauge(
            "admitter_leader", "1 if this process holds the Lease and decides, 0 if it waits.", ("lease",)
        )
        self._lag = gauge("admitter_event_loop_lag_seconds", "By how much the event loop was late last.")
        self._cycles = histogram(
            "admitter_cycle_duration_seconds", "How long a cycle of decisions takes.", buckets=CYCLE_BUCKETS
        )
        self._admissions = counter("admitter_admissions", "Workloads admitted.", QUEUE_LABELS)
        self._waits = histogram(
            "admitter_admission_wait_seconds",
            "From a Workload's creation, or its last eviction, to its admission.",
            QUEUE_LABELS,
            buckets=WAIT_BUCKETS,
        )
        self._ready = histogram(
            "admitter_ready_wait_seconds",
            "From a Workload's admission to the first moment that all of its pods are ready.",
            QUEUE_LABELS,
            buckets=WAIT_BUCKETS,
        )
        with_reason = (*QUEUE_LABELS, "reason")
        self._evictions = counter("admitter_evictions", "Workloads evicted.", with_reason)
        self._finished = counter(
            "admitter_finished_workloads", "Workloads with a Job that is over.", with_reason
        )

    def with_process(self) -> "Metrics":
        """The same with the process's own figures: CPU, memory, open files, Python's garbage collector."""
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        return self

    def admitted(self, queue: str, waited: float) -> None:
        self._of_queue(self._admissions, queue).inc()
        self._of_queue(self._waits, queue).observe(waited)

    def ready(self, queue: str, waited: float) -> None:
        self._of_queue(self._ready, queue).observe(waited)

    def evicted(self, queue: str, reason: str) -> None:
        self._of_queue(self._evictions, queue, reason).inc()

    def finished(self, queue: str, reason: str) -> None:
        """A Workload's Job is over; the queue is empty if it held nothing."""
        self._of_queue(self._finished, queue, reason).inc()

    def decided(self, seconds: float) -> None:
        self._cycles.observe(seconds)

    def lagged(self, seconds: float) -> None:
        self._lag.set(seconds)

    def leads(self, lease: str, *, holds: bool) -> None:
        self._leader.labels(lease).set(holds)

    async def page(self) -> bytes:
        """All of it in Prometheus' text format; what is much text is written in another thread."""
        if self.state is not None:
            self.state.look()
            self._forget(self.state.is_known)
        return await asyncio.to_thread(generate_latest, self.registry)

    def collect(self) -> Iterator[Metric]:
        """What the reader of the state has seen last, for the registry; nothing as long as there is none."""
        if self.state is not None:
            yield from self.state.collect()

    def _of_queue(self, metric: M, queue: str, *more: str) -> M:
        """What a metric counts of a queue; it is remembered, to be forgotten with the queue."""
        known = self._by_queue.setdefault(queue, {})
        found: M | None = known.get((metric, more))
        if found is None:
            found = known[metric, more] = metric.labels(queue, kind_of_queue(queue), *more)
        return found

    def _forget(self, is_known: Callable[[str], bool]) -> None:
        """Show nothing more of queues that are gone, so that those that come and go do not add up."""
        for queue in [queue for queue in self._by_queue if queue and not is_known(queue)]:
            for metric, more in self._by_queue.pop(queue):
                metric.remove(queue, kind_of_queue(queue), *more)

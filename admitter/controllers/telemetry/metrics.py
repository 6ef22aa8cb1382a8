"""What the controller counts, by Prometheus' conventions; docs/metrics.md has a table of all of it.

Counters and histograms grow as decisions are made. What follows from the state of the engine, such as quota
in use, is read at each request (`admitter.controllers.telemetry.state_metrics`).
"""

import asyncio
from collections.abc import Callable, Iterator
from platform import python_version
from typing import Final, Protocol, TypeVar

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
from prometheus_client.metrics_core import Metric

from admitter import __version__
from admitter.client.metrics import CallMetrics
from admitter.quotas.elastic import kind_of_queue

M = TypeVar("M", bound=MetricWrapperBase)

QUEUE_LABELS: Final = ("cluster_queue", "kind")
"""The name of a queue as `status.admission.clusterQueue` has it, and the kind of the object it stands for."""

WAIT_BUCKETS: Final = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600)
"""Seconds from the moment that something waits to its admission."""
CYCLE_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
"""Seconds that a decision takes."""


class StateReader(Protocol):
    """Reads gauges from what is known."""

    def look(self) -> None:
        """Take down what is so now; called in a turn of the event loop, so that nothing changes meanwhile."""

    def collect(self) -> Iterator[Metric]:
        """What was seen; called from another thread."""

    def is_known(self, queue: str) -> bool:
        """Whether there is such a queue."""


class Metrics:
    """All metrics of one process.

    Attributes:
        registry: where they are to be found.
        calls: what is counted of the way to the API server.
        state: reads what is so now; None: there is nothing yet.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.calls = CallMetrics(registry)
        self._by_queue: dict[str, set[tuple[MetricWrapperBase, tuple[str, ...]]]] = {}
        self.state: StateReader | None = None
        registry.register(self)
        Info("admitter_build", "What runs here.", registry=registry).info(
            {"version": __version__, "python": python_version()}
        )
        self._leader = Gauge(
            "admitter_leader",
            "1 if this process holds the Lease and decides, 0 if it waits.",
            ("lease",),
            registry=registry,
        )
        self._lag = Gauge(
            "admitter_event_loop_lag_seconds",
            "By how much the event loop was late last.",
            registry=registry,
        )
        self._cycles = Histogram(
            "admitter_cycle_duration_seconds",
            "How long a cycle of decisions takes.",
            buckets=CYCLE_BUCKETS,
            registry=registry,
        )
        self._admissions = Counter(
            "admitter_admissions", "Workloads admitted.", QUEUE_LABELS, registry=registry
        )
        self._waits = Histogram(
            "admitter_admission_wait_seconds",
            "From a Workload's creation, or its last eviction, to its admission.",
            QUEUE_LABELS,
            buckets=WAIT_BUCKETS,
            registry=registry,
        )
        self._evictions = Counter(
            "admitter_evictions", "Workloads evicted.", (*QUEUE_LABELS, "reason"), registry=registry
        )
        self._finished = Counter(
            "admitter_finished_workloads",
            "Workloads with a Job that is over.",
            (*QUEUE_LABELS, "reason"),
            registry=registry,
        )

    def with_process(self) -> "Metrics":
        """The same with the process's own figures: CPU, memory, open files, Python's garbage collector."""
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        return self

    def admitted(self, queue: str, waited: float) -> None:
        """A Workload was admitted after so many seconds."""
        self._of_queue(self._admissions, queue).inc()
        self._of_queue(self._waits, queue).observe(waited)

    def evicted(self, queue: str, reason: str) -> None:
        """A Workload was evicted."""
        self._of_queue(self._evictions, queue, reason).inc()

    def finished(self, queue: str, reason: str) -> None:
        """A Workload's Job is over; the queue is empty if it held nothing."""
        self._of_queue(self._finished, queue, reason).inc()

    def decided(self, seconds: float) -> None:
        """A cycle took so long."""
        self._cycles.observe(seconds)

    def lagged(self, seconds: float) -> None:
        """The event loop was so late."""
        self._lag.set(seconds)

    def leads(self, lease: str, *, holds: bool) -> None:
        """Say whether this process holds a Lease."""
        self._leader.labels(lease).set(holds)

    def follow(self, state: StateReader) -> None:
        """Show from now on what `state` reads, in place of an earlier reader."""
        self.state = state

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
        labels = (queue, kind_of_queue(queue), *more)
        self._by_queue.setdefault(queue, set()).add((metric, labels))
        return metric.labels(*labels)

    def _forget(self, is_known: Callable[[str], bool]) -> None:
        """Show nothing more of queues that are gone, so that those that come and go do not add up."""
        for queue in [queue for queue in self._by_queue if queue and not is_known(queue)]:
            for metric, labels in self._by_queue.pop(queue):
                metric.remove(*labels)

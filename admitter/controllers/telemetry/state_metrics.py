"""Gauges of the present state: pending workloads, and quota in use.

They are read at each request, and cost nothing in between: two numbers a queue for pending workloads, and up
to six for each flavor and resource that it counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from admitter.client.store import Key
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.controllers.telemetry.metrics import QUEUE_LABELS
from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource
from admitter.engine.policy import Queue
from admitter.quantities.amounts import CPU
from admitter.quotas.elastic import kind_of_queue

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

    Attributes:
        engine: knows quota, and the workloads that compete for it.
        queues: count pending and admitted Workloads.
        deciding: for each Workload with an admission that is being written, its LocalQueue.
    """

    engine: Engine
    queues: QuotaStatuses
    deciding: Callable[[], Iterable[Key]]

    def __post_init__(self) -> None:
        self._cells: list[_Cell] = []
        self._active: dict[str, int] = {}
        self._inadmissible: dict[str, int] = {}
        self._admitted: dict[str, int] = {}

    def is_known(self, queue: str) -> bool:
        """Whether the engine has such a queue."""
        return queue in self.engine.tree.queues

    def look(self) -> None:
        """Take down what is so now."""
        definitions = self.engine.tree.queues
        self._cells = [cell for queue in definitions.values() for cell in self._cells_of(queue)]
        waiting, self._admitted = self.queues.pending(), self.queues.admitted()
        deciding = Counter(self.queues.queue_of(key) for key in self.deciding())
        names = sorted({*definitions, *waiting})
        active = {name: self.engine.waiting(name) + deciding[name] for name in names}
        self._active = {name: min(active[name], waiting[name]) for name in names}
        self._inadmissible = {name: waiting[name] - self._active[name] for name in names}

    def _cells_of(self, queue: Queue) -> Iterator[_Cell]:
        ledger, claimed = self.engine.ledger, self.engine.claimed(queue.name)
        for key in dict.fromkeys((*queue.keys(), *ledger.used(queue.name))):
            cell, quota = ledger.real.cell(queue.name, key), queue.quotas.get(key)
            limits = (quota.minimum, quota.maximum) if quota is not None else (None, None)
            borrowed, free = max(0, cell.used - cell.subtree_quota), max(0, cell.available())
            yield _Cell(queue.name, key, cell.used, borrowed, free, claimed.get(key, 0), *limits)

    def collect(self) -> Iterator[Metric]:
        """The gauges, as they were read last."""
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

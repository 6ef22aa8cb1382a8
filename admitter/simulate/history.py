"""Use of each flavor over the time of a simulation, and how many workloads wait."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Use:
    """One resource in one flavor at one time, in the resource's unit."""

    quota: int  # the `min` of all queues and Cohorts together
    limit: int | None  # the `max` of the queue, if only one has quota here; else None
    # what each queue uses of its own quota, and what it has borrowed; only those that use any
    queues: Mapping[str, tuple[int, int]]

    @property
    def used(self) -> int:
        return sum(map(sum, self.queues.values()))


class History:
    """Records changes at each call of `look`: values with their times, in seconds since the epoch."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # by flavor and resource
        self.use: defaultdict[FlavorResource, list[tuple[float, Use]]] = defaultdict(list)
        # how many workloads wait, by queue; only those in which any do
        self.waiting: list[tuple[float, Mapping[str, int]]] = []
        self.end = 0.0  # the last time

    def look(self, now: float) -> None:
        """Record this moment."""
        self.end = now
        tree, ledger = self._engine.tree, self._engine.ledger
        quotas, holders = Counter[FlavorResource](), defaultdict[FlavorResource, list[int | None]](list)
        used: defaultdict[FlavorResource, dict[str, tuple[int, int]]] = defaultdict(dict)
        for cohort in tree.cohorts.values():
            quotas.update({key: quota.minimum for key, quota in cohort.quotas.items()})
        for name, queue in tree.queues.items():
            for key, quota in queue.quotas.items():
                quotas[key] += quota.minimum
                holders[key].append(quota.maximum)
            for key, amount in ledger.used(name).items():
                own = min(amount, ledger.real.cell(name, key).subtree_quota)
                if amount:
                    used[key][name] = own, amount - own
        for key in {*self.use, *quotas, *used}:
            limits = holders[key]
            limit = limits[0] if len(limits) == 1 else None
            _note(self.use[key], now, Use(quotas[key], limit, used[key]))
        counts = {name: self._engine.waiting(name) for name in tree.queues}
        _note(self.waiting, now, {name: count for name, count in counts.items() if count})


def _note(values: list[tuple[float, T]], now: float, value: T) -> None:
    if not values or values[-1][1] != value:
        values.append((now, value))

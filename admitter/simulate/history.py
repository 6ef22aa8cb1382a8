"""Use of each queue over the time of a simulation."""

from collections import defaultdict
from dataclasses import dataclass, field

from admitter.engine.cycle import Engine


@dataclass(slots=True)
class UseOverTime:
    """One resource in one queue, all flavors together; each list has a value for each of `times`.

    Attributes:
        times: in seconds since the epoch; each value holds until the next one.
        used: amounts in the resource's unit.
        maximum: the most it may use; None if there is no limit in some flavor.
    """

    times: list[float] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    minimum: list[int] = field(default_factory=list)
    maximum: list[int | None] = field(default_factory=list)


@dataclass(slots=True)
class WaitingOverTime:
    """How many workloads wait in one queue, and the time of each change."""

    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)


class History:
    """Records changes at each call of `look`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.use: defaultdict[tuple[str, str], UseOverTime] = defaultdict(UseOverTime)
        self.waiting: defaultdict[str, WaitingOverTime] = defaultdict(WaitingOverTime)
        self.end = 0.0

    def look(self, now: float) -> None:
        """Record this moment, in seconds since the epoch."""
        self.end = now
        for name, queue in self._engine.tree.queues.items():
            used = self._engine.ledger.used(name)
            resources = {resource for _, resource in [*queue.quotas, *used]}
            for resource in resources:
                keys = [key for key in {*queue.quotas, *used} if key[1] == resource]
                quotas = [queue.quotas[key] for key in keys if key in queue.quotas]
                limits = [quota.maximum for quota in quotas if quota.maximum is not None]
                self._note(
                    self.use[name, resource],
                    now,
                    sum(used.get(key, 0) for key in keys),
                    sum(quota.minimum for quota in quotas),
                    sum(limits) if quotas and len(limits) == len(quotas) else None,
                )
            count = self._engine.waiting(name)
            waiting = self.waiting[name]
            if not waiting.counts or waiting.counts[-1] != count:
                waiting.times.append(now)
                waiting.counts.append(count)

    @staticmethod
    def _note(use: UseOverTime, now: float, used: int, minimum: int, maximum: int | None) -> None:
        if use.times and (use.used[-1], use.minimum[-1], use.maximum[-1]) == (used, minimum, maximum):
            return
        use.times.append(now)
        use.used.append(used)
        use.minimum.append(minimum)
        use.maximum.append(maximum)


def shortest_unit(highest: int, resource: str) -> tuple[int, str]:
    """A divisor for amounts up to some height, and what to call a resource then."""
    if resource == "cpu":
        return 1000, "cpu"
    for power, prefix in ((40, "Ti"), (30, "Gi"), (20, "Mi")):
        if highest >= 1 << power:
            return 1 << power, f"{resource} ({prefix})"
    return 1, resource

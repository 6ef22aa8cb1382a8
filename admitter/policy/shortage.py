"""Evictions from trees with less quota than is in use, if the root says `onShrink: Evict`.

The engine selects the victims (`Engine.overflow`); this module says when.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from admitter.engine.cycle import Engine
from admitter.policy.catalog import Catalog
from admitter.quotas.hierarchy import Branch


class Shortages:
    """Follows the trees that are short. What it knows of the past is lost with it: then delays begin anew."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._since: dict[str, tuple[float, Branch]] = {}
        self._victims: dict[str, str] = {}
        self._now = 0.0

    @property
    def due(self) -> float | None:
        """When `look` has to be called though nothing else changes, in seconds since the epoch."""
        ends = (since + (branch.evict_after or 0.0) for since, branch in self._since.values())
        return min((end for end in ends if end > self._now), default=None)

    def victim(self, uid: str) -> str | None:
        """Why a workload has to go; None if it may stay."""
        root = self._victims.get(uid)
        return f"Cohort {root} has less than is in use below it" if root is not None else None

    def look(self, now: float, leaving: Callable[[], AbstractSet[str]]) -> list[str]:
        """See what is short, after every decision, and when it is due; returns the victims' UIDs, in order.

        A delay begins when there is too little, and anew when the Cohort is edited or there was enough.

        The time is in seconds since the epoch; `leaving` gives the UIDs of the workloads that are evicted
        already.
        """
        before, self._since = self._since, {}
        self._victims.clear()
        for root, branch in self._catalog.shrinking.items():
            if branch.evict_after is None or not self._is_short(root):
                continue
            since, known = before.get(root, (now, branch))
            since = since if known is branch else now
            self._since[root] = (since, branch)
            if since + branch.evict_after <= now:
                victims = self._engine.overflow(root, leaving())
                self._victims.update(dict.fromkeys(victims, root))
        self._now = now
        return list(self._victims)

    def _is_short(self, root: str) -> bool:
        cells = self._engine.ledger.planned.cells(("cohort", root)).values()
        return any(cell.limit is not None and cell.total > cell.limit for cell in cells)

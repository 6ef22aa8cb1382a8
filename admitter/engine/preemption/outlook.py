"""What evictions could have done for a workload that got no nomination."""

from dataclasses import dataclass, field
from math import inf

from admitter.engine.model import FlavorResource
from admitter.engine.preemption.glance import InVain
from admitter.engine.preemption.search import SearchResult
from admitter.engine.quota.fair_shares import ENDLESS, Share
from admitter.engine.quota.namespace_shares import ENDLESS as NO_NAMESPACE_GIVES
from admitter.engine.quota.namespace_shares import NamespaceShare


@dataclass(slots=True)
class Outlook:
    """What evictions could have done for a workload that got no nomination.

    It sums up what searches came to: the most that was `evictable`, and all else as in `SearchResult`.
    """

    evictable: dict[FlavorResource, int] = field(default_factory=dict)
    barred: bool = True
    share: Share = ENDLESS
    giving: NamespaceShare = NO_NAMESPACE_GIVES
    due: float = inf
    withheld: dict[tuple[FlavorResource, int], None] = field(default_factory=dict)
    bound: bool = False

    def glanced(self, seen: InVain) -> None:
        """Take in what a glance saw to be in vain."""
        evictable = self.evictable
        for key, amount in seen.evictable.items():
            if amount > evictable.get(key, -1):
                evictable[key] = amount
        self.barred &= seen.barred

    def note(self, result: SearchResult) -> None:
        """Take in what a search has found that came to nothing."""
        for key, amount in result.evictable.items():
            self.evictable[key] = max(self.evictable.get(key, 0), amount)
        self.barred &= result.barred
        self.share = min(self.share, result.share)
        self.giving = min(self.giving, result.giving)
        self.due = min(self.due, result.due)
        self.withheld.update(dict.fromkeys(result.withheld))
        self.bound |= result.bound

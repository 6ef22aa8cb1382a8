"""Limits on evictions with which others wait long for what is theirs."""

from collections.abc import Iterator
from typing import Final, Protocol

from admitter.cache.views import ObjectView
from admitter.engine.policy import Queue
from admitter.engine.quota.book import Book
from admitter.insight.lint_pods import Found
from admitter.quantities.durations import written_duration

LONG_SECONDS: Final = 86_400
"""An owner that waits longer than a day for its own has no guarantee worth the name."""


class Checked(Protocol):
    """What this rule looks at."""

    book: Book

    def queues(self) -> Iterator[tuple[ObjectView, Queue]]:
        """ClusterQueues that work, by name."""


def keeps_what_it_borrows(given: Checked) -> Iterator[Found]:
    """A queue may borrow what others own, and its limit on evictions keeps them from it for long."""
    for _, queue in given.queues():
        limit = queue.eviction_limit
        if limit is None or (limit.count and limit.per <= LONG_SECONDS):
            continue
        keys = queue.keys()
        cells = ((key, given.book.cell(queue.name, key)) for key in keys)
        borrows = sorted(key for key, cell in cells if cell.potential_available() > cell.subtree_quota)
        if borrows:
            what = ", ".join(f"{resource} in {flavor}" for flavor, resource in borrows)
            until = f"up to {written_duration(limit.per)}" if limit.count else "until its Jobs end"
            words = f"may borrow {what}, and owners wait {until} to get it back: maxEvictionsPerWorkload"
            yield f"ClusterQueue {queue.name}", words

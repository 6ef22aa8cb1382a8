"""Limits on evictions with which others wait long for what is theirs."""

from collections.abc import Iterator
from typing import Final, Protocol

from admitter.cache.views import ObjectView
from admitter.engine.policy import EvictionLimit, Queue
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Node, Tree
from admitter.insight.lint_pods import Found
from admitter.policy.messages import node_title, queue_title
from admitter.quantities.durations import written_duration

LONG_SECONDS: Final = 86_400
"""An owner that waits longer than a day for its own has no guarantee worth the name."""


class Checked(Protocol):
    """What this rule looks at."""

    book: Book
    tree: Tree

    def queues(self) -> Iterator[tuple[ObjectView, Queue]]:
        """ClusterQueues that work, by name."""


def keeps_what_it_borrows(given: Checked) -> Iterator[Found]:
    """Queues may borrow what others own, and a limit on evictions keeps them from it for long.

    It is one of the queue, or of a Cohort above it: that is named once, with the first such queue.
    """
    named = set[Node]()
    for _, queue in given.queues():
        path = given.tree.path(("queue", queue.name))
        limits = [(node, "maxEvictions", given.tree.eviction_limits.get(node)) for node in path]
        limits.insert(0, (path[0], "maxEvictionsPerWorkload", queue.eviction_limit))
        long = [
            (node, field, limit) for node, field, limit in limits if limit is not None and _is_long(limit)
        ]
        what = _borrowed(given.book, queue) if long else ""
        for node, field, limit in long if what else ():
            if node[0] == "cohort" and node in named:
                continue
            named.add(node)
            until = f"up to {written_duration(limit.per)}" if limit.count else "until its Jobs end"
            subject = f"{queue_title(queue.name)} " if node[0] == "cohort" else ""
            yield (
                node_title(*node),
                f"{subject}may borrow {what}, and owners wait {until} to get it back: {field}",
            )


def _is_long(limit: EvictionLimit) -> bool:
    return not limit.count or limit.per > LONG_SECONDS


def _borrowed(book: Book, queue: Queue) -> str:
    """What a queue may use beyond its own."""
    keys = queue.keys()
    cells = ((key, book.cell(queue.name, key)) for key in keys)
    borrows = sorted(key for key, cell in cells if cell.potential_available() > cell.subtree_quota)
    return ", ".join(f"{resource} in {flavor}" for flavor, resource in borrows)

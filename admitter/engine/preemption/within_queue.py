"""Victims in the preemptor's own queue: `withinClusterQueue` (docs/design/preemption.md)."""

from admitter.engine.model import Workload
from admitter.engine.policy import WithinQueue
from admitter.engine.quota.lines import NO_RANK, Lesser


def lesser(policy: WithinQueue, preemptor: Workload) -> Lesser:
    """Which workloads of its queue a workload may preempt.

    Among equals it is the older one, and of one age the one with the first UID; so of two
    workloads one at most may preempt the other.
    """
    match policy:
        case WithinQueue.NEVER:
            return NO_RANK
        case WithinQueue.LOWER_PRIORITY:
            return Lesser(preemptor.priority)
        case WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY:
            return Lesser(preemptor.priority, preemptor.rank)

"""Victims in the preemptor's own queue (design §3, *Preemption*: `withinClusterQueue`)."""

from admitter.engine.model import Workload
from admitter.engine.policy import WithinQueue
from admitter.engine.preemption.candidates import Candidate, Simple


def allows(policy: WithinQueue, preemptor: Workload, victim: Workload) -> bool:
    """Whether a workload may preempt another one of its queue.

    Among equals it is the older one, and of one age the one whose UID comes first; so of two
    workloads one at most may preempt the other.
    """
    match policy:
        case WithinQueue.NEVER:
            return False
        case WithinQueue.LOWER_PRIORITY:
            return victim.priority < preemptor.priority
        case WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY:
            return preemptor.rank < victim.rank


class WithinOwnQueue(Simple):
    """No other queue loses anything."""

    def may_go(self, candidate: Candidate) -> bool:
        """Whoever is of the preemptor's queue."""
        return candidate.pool.own

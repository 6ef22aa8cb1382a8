"""Why a workload waits, as data; sentences are made at the edge.

A refusal holds only what stays true while the workload waits (what it asks and what the limits
are, never what is free right now), so that it changes, and is written, rarely.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.eviction_limits import LimitReached


class Reason(StrEnum):
    """The rule that stopped a workload; the words are those of the condition's reason."""

    RESOURCE_NOT_COVERED = "ResourceNotCovered"
    NOTHING_REQUESTED = "NothingRequested"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    NEVER_FITS = "NeverFits"
    INSUFFICIENT_QUOTA = "InsufficientQuota"
    BEHIND_HEAD = "BehindHead"
    PREEMPTING = "Preempting"
    PREEMPTION_BACKED_OFF = "PreemptionBackedOff"
    EVICTIONS_LIMITED = "EvictionsLimited"


HOPELESS: Final = frozenset(
    {Reason.NEVER_FITS, Reason.NO_MATCHING_FLAVOR, Reason.RESOURCE_NOT_COVERED, Reason.NOTHING_REQUESTED}
)
"""Reasons that stay, whatever ends."""


class Rule(StrEnum):
    """Why one flavor was not taken."""

    TAINT = "taint"
    LABELS = "labels"
    LIMIT = "limit"
    NODES = "nodes"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class FlavorRefusal:
    """One flavor that a pod set could not have."""

    flavor: str
    rule: Rule  # which rule refused it
    resource: str = ""  # the resource that is short; empty for taints and labels
    # the most of it that the queue could ever use: its own, what others could lend, its max. Where nodes are
    # too small: the most that one of them has
    quota: int = 0
    own: int = 0  # how much of that is the queue's own
    detail: str = ""  # the taint, the labels, or what no node is or has
    # how much of the resource all pods would need in this flavor, if it is not what they ask for in the first
    # one; else 0. Where nodes are too small: how much one pod needs
    needed: int = 0
    beside: int = 0  # how much of the resource other pod sets of the workload would get, which comes on top


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a workload was not admitted."""

    reason: Reason
    queue: str
    # those that the queue does not cover, or those it covers if none of them is asked for
    resources: tuple[str, ...] = ()
    # what the pod set that found no flavor asks for, all of its pods together
    asked: tuple[tuple[str, int], ...] = ()
    pod_set: str = ""  # the name of that pod set, if the workload has several
    flavors: tuple[FlavorRefusal, ...] = ()  # every flavor tried, in order
    preempts: bool = False  # whether its queue preempts, and no victims were found that would make room
    shared: bool = False  # whether what is borrowed is shared by weight there
    # for how long its queue evicts nothing for its namespace, if it would be let in by evictions
    back_off: BackOff | None = None
    limited: LimitReached | None = None  # the limit without which others would be evicted for it


def reason_of(flavors: tuple[FlavorRefusal, ...]) -> Reason:
    """The reason that follows from all flavors of one group being refused."""
    rules = {refusal.rule for refusal in flavors}
    if Rule.BUSY in rules:
        return Reason.INSUFFICIENT_QUOTA
    return Reason.NEVER_FITS if rules & {Rule.LIMIT, Rule.NODES} else Reason.NO_MATCHING_FLAVOR

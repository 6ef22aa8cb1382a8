"""Sentences for users: why a workload waits. Made from the engine's data, and nowhere else."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from admitter.cache.views import at, timestamp
from admitter.engine.cycle import Engine
from admitter.engine.preemption.receipt import Grounds, Passed, Passing
from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.eviction_limits import LimitOf, LimitReached
from admitter.engine.quota.fair_shares import Share
from admitter.engine.refusal import FlavorRefusal, Reason, Refusal, Rule
from admitter.engine.tree_cycle import PlannedEviction
from admitter.names import ANY_NODE
from admitter.quantities.amounts import display, to_quantity
from admitter.quantities.durations import written_duration
from admitter.quotas.elastic import kind_of_queue


def queue_title(queue: str) -> str:
    """A queue of the engine as its users know it."""
    _, _, rest = queue.partition("_")
    return f"{kind_of_queue(queue)} {rest.replace('_', '/', 1)}" if rest else f"ClusterQueue {queue}"


def workload_title(namespace: str, name: str, reader: str) -> str:
    """A Workload in a message that is read in a namespace: that of another tenant has no name there.

    Every sentence about another Workload in a Workload's status or events names it so; `reader` is the
    namespace of the object with that status or event. Users with more rights read the name in the log, or ask
    `explain`.
    """
    return f"Workload {namespace}/{name}" if namespace == reader else "a Workload of another namespace"


class Use(NamedTuple):
    """What is free in a queue of an engine at a moment."""

    engine: Engine
    queue: str
    now: datetime

    def free(self, flavor: str, resource: str) -> tuple[int, int]:
        """How much could be admitted, and how much more if others claimed nothing; 0 if the queue is gone."""
        definition = self.engine.tree.queues.get(self.queue)
        if definition is None:
            return 0, 0
        cell = self.engine.ledger.planned.cell(self.queue, definition.key(flavor, resource))
        free = max(0, cell.available())
        return free, max(0, cell.room() - free)


def waiting_message(refusal: Refusal, queue: str = "", use: Use | None = None) -> str:
    """One sentence on what stopped a workload, naming queue, resource and flavors.

    The queue is called by default what its name tells. With `use` the sentence says how much is in use, and
    when that was so.
    """
    queue = queue or queue_title(refusal.queue)
    resources = _listed(refusal.resources)
    match refusal.reason:
        case Reason.BEHIND_HEAD:
            return f"waits behind an older or more important workload: {queue} is StrictFIFO"
        case Reason.RESOURCE_NOT_COVERED:
            return f"asks for {resources}, which {queue} does not cover"
        case Reason.NOTHING_REQUESTED:
            return f"requests none of what {queue} covers: {resources}"
        case Reason.PREEMPTING:
            return f"its place in {queue} is kept: it starts when victims or extra pods have ended"
        case Reason.PREEMPTION_BACKED_OFF if refusal.back_off is not None:
            waits = f"its turn in {queue} comes after all others"
            waits = _shortage(refusal, queue, use) if refusal.asked else waits
            return f"{waits}; {_backed_off(refusal.back_off)}"
        case _:
            return _shortage(refusal, queue, use)


_DIGEST: Final = re.compile(r"(shape-[0-9a-f]{6})[0-9a-f]{18}")
"""The name of a pod set of a group, and what tells it from the others of its Workload in messages."""
_IN_USE: Final = re.compile(
    r"\S+ of (\S+ \S+(?: \(of which \S+ are its own\))?(?: of \S+)? in use)"
    r"(?:, \S+ kept for others)?, \S+ free"
    r"| beside \S+ for other pod sets| \(at [-0-9T:Z]+\)"
)


def same_but_for_use(message: str, other: str) -> bool:
    """Whether two messages differ at most in what was in use when they were made."""
    return _but_for_use(message) == _but_for_use(other)


@lru_cache(maxsize=1024)
def _but_for_use(message: str) -> str:
    """A message without what was in use; many Workloads have the same."""
    return _IN_USE.sub(lambda found: found[1] or "", message)


_GROUNDS: Final = {
    Grounds.LOWER_PRIORITY: "its priority {theirs} is lower than {mine} (withinClusterQueue)",
    Grounds.NEWER: "it is the newer one of priority {theirs} (withinClusterQueue)",
    Grounds.NAMESPACE_SHARE: "another namespace has a smaller share of {queue} (namespaceOrdering)",
    Grounds.RECLAIM: "{queue} takes back what it lent (reclaimWithinCohort)",
    Grounds.BORROW: "its priority {theirs} is below {mine}; {queue} borrows instead (borrowWithinCohort)",
    Grounds.GUARANTEED_SHARE: "{queue} takes its guaranteed share of what is unused (GuaranteedShare)",
    Grounds.FAIR_SHARE: "{larger} had {before} of what can be lent, {smaller} has {after} now (fairSharing)",
}


def receipt_message(eviction: PlannedEviction) -> str:
    """The rule that allows an eviction, and what was compared."""
    victim, preemptor, compared = eviction.victim.workload, eviction.preemptor, eviction.receipt.compared
    assert victim is not None, "only Workloads are evicted"
    words = {
        "theirs": victim.priority,
        "mine": preemptor.priority,
        "queue": queue_title(eviction.admission.queue),
    }
    if compared is not None:
        words |= {"larger": node_title(*compared.victim), "before": _share(compared.before)}
        words |= {"smaller": node_title(*compared.preemptor), "after": _share(compared.after)}
    return _GROUNDS[eviction.receipt.grounds].format(**words)


_PASSING: Final = {
    Passing.BEST_EFFORT: "which does not fit: {queue} is BestEffortFIFO",
    Passing.NAMESPACE_SHARE: "of a namespace with a larger share of {queue} (namespaceOrdering)",
    Passing.PROMISED: "for which the place was not kept: others were evicted before it came",
}


def passing_message(passed: Passed, title: str) -> str:
    """The Workload with this title that another one passes, admitted out of order, and by which rule."""
    words = _PASSING[passed.rule].format(queue=queue_title(passed.workload.queue))
    return f"ahead of {title}, {words}"


def _share(share: Share) -> str:
    """A weighted share, as people read it."""
    endless, size = share
    return "without a weight all" if endless else f"a weighted share of {float(size):.3g}"


def pod_set_title(name: str) -> str:
    """A pod set as messages name it; of a group of pods by the first digits of its digest."""
    return _DIGEST.sub(r"\1", name) if _DIGEST.fullmatch(name) else f"pod set {name}"


def node_title(kind: str, name: str) -> str:
    """A node of the quota tree."""
    return f"Cohort {name}" if kind == "cohort" else queue_title(name)


def _backed_off(back_off: BackOff) -> str:
    """Why nothing is evicted for a workload, and when that is over."""
    after = datetime.fromtimestamp(back_off.until, UTC).strftime("%H:%M:%SZ")
    returned = "a place gained by eviction was given back unused"
    if back_off.count > 1:
        returned = f"places gained by eviction were given back unused {back_off.count} times"
    return f"{returned}: evicts again after {after}"


def _limited(reached: LimitReached) -> str:
    """Why a workload is not evicted that would make room, and when it may be."""
    if reached.of is not LimitOf.WORKLOAD:
        return _limited_together(reached)
    queue, limit = queue_title(reached.queue), reached.limit
    if reached.until == inf:
        return f"what would make room is in {queue}, where no Workload is evicted for others"
    times, per = f"{limit.count} time{'s' if limit.count > 1 else ''}", written_duration(limit.per)
    after = timestamp(at(reached.until))
    return f"a Workload of {queue} that would make room was evicted {times} within {per}: next at {after}"


def _limited_together(reached: LimitReached) -> str:
    """The same by a limit on all evictions from a queue, or below a Cohort."""
    title, limit = node_title(reached.of, reached.queue), reached.limit
    if not limit.count:
        return f"what would make room is in {title}, which allows no eviction for others"
    evictions = f"{limit.count} eviction{'s' if limit.count > 1 else ''} for others"
    allowed = f"{title} allows {evictions} within {written_duration(limit.per)}"
    if reached.until == inf:
        return f"{allowed}, and more at once would make room"
    return f"{allowed}, and there were so many: next at {timestamp(at(reached.until))}"


def _shortage(refusal: Refusal, queue: str, use: Use | None) -> str:
    asked = _listed(tuple(_amount(resource, amount) for resource, amount in refusal.asked))
    subject = f"{pod_set_title(refusal.pod_set)} asks for {asked}" if refusal.pod_set else f"asks for {asked}"
    needed = dict(refusal.asked)
    tried = "; ".join(
        _in_use(each, needed, use) if use is not None and each.rule is Rule.BUSY else flavor_sentence(each)
        for each in refusal.flavors
    )
    tried += f" (at {timestamp(use.now)})" if use is not None else ""
    match refusal.reason:
        case Reason.NO_MATCHING_FLAVOR:
            return f"{subject}, and no flavor of {queue} suits it: {tried}"
        case Reason.NEVER_FITS:
            return f"{subject}, which {queue} can never give: {tried}"
    if refusal.limited is not None:
        return f"{subject} from {queue}: {tried}; {_limited(refusal.limited)}"
    unmet = "; no workload that it may preempt would make room" if refusal.preempts else ""
    shares = ", by the shares of their queues" if refusal.preempts and refusal.shared else ""
    return f"{subject} from {queue}: {tried}{unmet}{shares}"


def flavor_sentence(refused: FlavorRefusal) -> str:
    """Why one flavor was not taken."""
    match refused.rule:
        case Rule.TAINT:
            return f"the taint {refused.detail} of {refused.flavor} is not tolerated"
        case Rule.LABELS:
            return f"{refused.flavor} does not match {refused.detail}"
        case Rule.NODES:
            return _nodes(refused)
        case Rule.LIMIT if refused.flavor == ANY_NODE:
            return f"there are only {_quota(refused)} in all{_of_others(refused)}"
        case Rule.LIMIT:
            words = f"{refused.flavor} has only {_quota(refused)} in all"
            return f"{words}{_of_others(refused)}{_needed(refused)}"
    return f"too much of the {_quota(refused)}{_of_flavor(refused)} is in use{_needed(refused)}"


def _in_use(refused: FlavorRefusal, asked: Mapping[str, int], use: Use) -> str:
    """As `flavor_sentence` of a flavor that is busy, with how much of it is."""
    resource, most = refused.resource, refused.quota
    free, kept = use.free(refused.flavor, resource)
    free = min(free, most)
    kept = min(kept, most - free)
    words = [f"{display(resource, most - free - kept)} of {_quota(refused)}{_of_flavor(refused)} in use"]
    words += [f"{display(resource, kept)} kept for others"] if kept else []
    needed = refused.needed or asked[resource]
    alike = display(resource, free) == display(resource, needed)  # rounded, it would seem to suffice
    spelled = to_quantity if alike else display
    words += [f"{spelled(resource, free)} free", f"{spelled(resource, needed)} asked"]
    beside = f" beside {display(resource, refused.beside)} for other pod sets" if refused.beside else ""
    return ", ".join(words) + beside


def _of_flavor(refused: FlavorRefusal) -> str:
    return "" if refused.flavor == ANY_NODE else f" of {refused.flavor}"


def _of_others(refused: FlavorRefusal) -> str:
    """How much of what there is the other pod sets of the workload would get."""
    others = display(refused.resource, refused.beside)
    return f", of which other pod sets get {others}" if refused.beside else ""


def _nodes(refused: FlavorRefusal) -> str:
    """Why no node has room for one pod."""
    if not refused.resource:
        return f"no node {refused.detail}"
    most, needed = (_amount(refused.resource, n) for n in (refused.quota, refused.needed))
    return f"the largest node{_of_flavor(refused)} has {most}, and a pod needs {needed}"


def _needed(refused: FlavorRefusal) -> str:
    """GPUs of another flavor have another amount of memory."""
    if not refused.needed:
        return ""
    return f", where it would need {_amount(refused.resource, refused.needed)}"


def _quota(refused: FlavorRefusal) -> str:
    """The most quota that the workload could get, and how much of that is the queue's own."""
    most = _amount(refused.resource, refused.quota)
    if refused.quota <= refused.own:
        return most
    own = display(refused.resource, refused.own) if refused.own else "none"
    return f"{most} (of which {own} are its own)"


def _amount(resource: str, amount: int) -> str:
    return f"{display(resource, amount)} {resource}"


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "nothing"

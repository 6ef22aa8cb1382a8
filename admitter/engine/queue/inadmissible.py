"""Inadmissible equivalence classes: what each refusal depends on, and a glance at whether it still stands.

What a class lacks is known when it is marked inadmissible. Before so much has been freed in its tree it
can't fit, whatever else comes and goes: what others take in the meantime only adds to what it lacks.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum, auto

from admitter.engine.flavors.assigner import Assigner
from admitter.engine.flavors.partial_admission import fewest
from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim
from admitter.engine.preemption import guaranteed
from admitter.engine.preemption.search import Outlook
from admitter.engine.queue.claim_blocked import ClaimBlocked
from admitter.engine.queue.equivalence import EquivalenceClass, FreedQuota, Need
from admitter.engine.quota.fair_shares import NO_SHARE
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.lesser import lesser_reservations
from admitter.engine.quota.tree import Node, Tree
from admitter.engine.refusal import Reason, Refusal


class Look(Enum):
    """What a glance at an equivalence class says."""

    SHORT = auto()  # nothing that it needs is free
    FITS = auto()  # something is free, and perhaps within the queue's own
    BORROWS = auto()  # what is free would be borrowed
    UNSURE = auto()  # only a nomination tells


class InadmissibleClasses:
    """Inadmissible classes by what their refusals depend on: a flavor and resource in a tree."""

    def __init__(self, tree: Tree, ledger: Ledger, assigner: Assigner, claim_blocked: ClaimBlocked) -> None:
        self._tree = tree
        self._ledger = ledger
        self._book = ledger.planned
        self._assigner = assigner
        self.claim_blocked = claim_blocked  # those of them that have room but for claims
        self._quotas: defaultdict[tuple[Node, FlavorResource], FreedQuota] = defaultdict(FreedQuota)

    def mark(self, members: EquivalenceClass, head: Workload, refusal: Refusal, outlook: Outlook) -> None:
        """Do not try a class again before something changes that the refusal of its head depends on."""
        queue, simple = self._tree.queues[head.queue], self._is_simple(head)
        uncovered = refusal.reason is Reason.RESOURCE_NOT_COVERED  # nothing that is freed helps
        keys = {} if uncovered else self._assigner.interests(fewest(head) or head, queue)
        members.needs, members.share, members.giving = [], NO_SHARE, outlook.giving
        members.unsearched = bool(outlook.withheld)
        if simple:
            needs = [Need(*need, self._book.cell(queue.name, need[0])) for need in keys.items()]
            held = self._held_by_lesser(head, queue)
            shortfalls = _shortfalls(needs, outlook.evictable, held)
            members.share = outlook.share
            if outlook.barred and len({resource for (_, resource), _, _ in needs}) == 1:
                members.needs = needs  # of each flavor the same: with one of them it may fit
        else:
            shortfalls = [(key, 1) for key in keys]
        members.inadmissible = members.refusal = refusal
        root = self._tree.root(queue.name)
        members.wait_at((self._quotas[root, key], shortfall) for key, shortfall in shortfalls)
        rooms = (*outlook.withheld, *self._rooms_by_share(queue, keys))
        self.claim_blocked.track(members, rooms, keys if outlook.bound else ())
        never = refusal.reason is Reason.NEVER_FITS
        if not never and self.claim_blocked.is_kept(head.queue, keys, each=simple):
            self.claim_blocked.keep(members)

    def _rooms_by_share(self, queue: Queue, keys: Mapping[FlavorResource, int]) -> Usage:
        """With fair sharing, what of several resources there is room for.

        Hard: with less room more victims count. Example: a Job of 4 CPUs and 2 GiB would borrow one GiB, so
        by its queue's share it may take no CPUs from others. Once the GiB are taken, it evicts in its own
        queue for them, which then borrows none, and takes the CPUs.
        """
        fair = self._tree.fair(self._tree.root(queue.name))
        if len(keys) < 2 or not fair or not queue.preemption.allowed:
            return ()
        cells = ((key, amount, self._book.cell(queue.name, key)) for key, amount in keys.items())
        return tuple((key, amount) for key, amount, cell in cells if amount <= cell.vacant())

    def _is_simple(self, workload: Workload) -> bool:
        """Whether it is known what has to change for a workload to fit.

        With several pod sets, or cohorts under cohorts, anything may help. What can do with fewer pods needs
        what the fewest need.
        """
        return len(workload.pod_sets) == 1 and len(self._tree.path(("queue", workload.queue))) <= 2

    def look(self, members: EquivalenceClass) -> Look:
        """Whether the first of a class may fit, at a glance; if not, the class is marked inadmissible again.

        That it need not borrow may turn out to be wrong, that it has to can't.
        """
        needs = members.needs
        if not needs:
            return Look.UNSURE
        withheld, taken = list[tuple[FlavorResource, int]](), list[tuple[FlavorResource, int]]()
        lacking, found = [], Look.SHORT
        for key, amount, cell in needs:
            more, claimed = cell.lacking(amount)
            if more > 0:
                lacking.append(more)
                (withheld if claimed else taken).append((key, amount))
            elif found is not Look.FITS:
                found = Look.BORROWS if cell.borrows(amount) else Look.FITS
        if lacking and self.may_take(members):
            return Look.UNSURE
        if found is Look.SHORT:
            if members.unsearched and self.claim_blocked.may_evict(
                members, (*taken, *self.claim_blocked.lost_by(members))
            ):
                return Look.UNSURE  # it has not even room beside claims any more
            members.mark_inadmissible_again(lacking)
            if withheld:
                self.claim_blocked.track_room(members, tuple(withheld))
                self.claim_blocked.keep(members)
        return found

    def may_take(self, members: EquivalenceClass) -> bool:
        """Whether the first of a class may take from others, or over, some of what it needs."""
        return self._is_entitled(members.queue, members.needs) or self._may_take_over(members)

    def _may_take_over(self, members: EquivalenceClass) -> bool:
        """Whether its queue would be within its own quota with it in the place of less important ones."""
        head = members.head()
        held = self._held_by_lesser(head, self._tree.queues[members.queue]) if head is not None else {}
        return bool(held) and any(
            not cell.borrows(amount - held.get(key, 0)) for key, amount, cell in members.needs
        )

    def _held_by_lesser(self, workload: Workload, queue: Queue) -> Mapping[FlavorResource, int]:
        """What the pending reservations come to that it may take over."""
        held = Counter[FlavorResource]()
        for pending in lesser_reservations(self._ledger, workload, queue):
            held.update(dict(pending.usage))
        return held

    def _is_entitled(self, queue: str, needs: Iterable[Need]) -> bool:
        """Whether with some of what is needed a queue would be within what it may take from others."""
        policy = self._tree.queues[queue].preemption
        if policy.borrow is BorrowWithin.GUARANTEED_SHARE:
            book, root = self._book, self._tree.root(queue)
            return any(
                guaranteed.is_entitled(self._tree, book, root, queue, key, amount) for key, amount, _ in needs
            )
        if policy.reclaim is Reclaim.NEVER:
            return False
        return any(not cell.borrows(amount) for _, amount, cell in needs)

    def freed(self, root: Node, usage: Iterable[tuple[FlavorResource, int]]) -> list[EquivalenceClass]:
        """The classes that may fit now that so much was freed in a tree."""
        found: dict[EquivalenceClass, None] = {}
        for key, amount in usage:
            quota = self._quotas.get((root, key))
            if quota is None:
                continue
            quota.freed += amount
            while quota.due and quota.due[0][0] <= quota.freed:
                _, _, ticket, members = heapq.heappop(quota.due)
                if ticket == members.ticket:
                    found[members] = None
        return list(found)

    def waiting(self, root: Node, keys: Iterable[FlavorResource]) -> list[EquivalenceClass]:
        """All inadmissible classes that wait for one of some keys in a tree."""
        found: dict[EquivalenceClass, None] = {}
        for key in keys:
            quota = self._quotas.get((root, key))
            if quota is not None:
                waiting = [members for members in quota.waiting if members.inadmissible is not None]
                found.update(dict.fromkeys(sorted(waiting, key=lambda members: members.queue)))
        return list(found)


def _shortfalls(
    needs: Iterable[Need], evictable: Mapping[FlavorResource, int], held: Mapping[FlavorResource, int]
) -> list[tuple[FlavorResource, int]]:
    """How much of each flavor and resource has to be freed at least."""
    return [
        (key, max(1, cell.lacking(amount)[0] - evictable.get(key, 0) - held.get(key, 0)))
        for key, amount, cell in needs
    ]

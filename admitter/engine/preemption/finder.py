"""Finds the candidates for one preemptor: what it may evict, by queue, rank and time."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from math import inf

from admitter.engine.model import Workload
from admitter.engine.policy import Queue, WithinQueue
from admitter.engine.preemption import namespaces, within_queue
from admitter.engine.preemption.candidates import (
    CandidateContext,
    Group,
    InLine,
    OverQuota,
    Pool,
    QueueLines,
    QueuePools,
)
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.demand import Demand, Keys
from admitter.engine.quota.ledger import Reservation
from admitter.engine.quota.lines import ANY_RANK, Lesser
from admitter.engine.quota.namespace_shares import ENDLESS as NO_NAMESPACE_GIVES
from admitter.engine.quota.namespace_shares import NamespaceShare
from admitter.engine.quota.tree import Node


class CandidateFinder:
    """Looks in the queues of the preemptor's tree."""

    def __init__(self, scene: PreemptionContext, queue: Queue, preemptor: Workload, demand: Demand) -> None:
        self._scene = scene
        self._tree = scene.tree
        self._ledger = scene.ledger
        self._book = scene.ledger.planned
        self._queue = queue
        self._preemptor = preemptor
        self._demand = demand
        self._ground = CandidateContext(scene.tree, scene.ledger.planned, demand.contested)
        self._root = demand.root
        self._displaced = scene.ledger.is_displaced(preemptor.uid)
        # when the first may be preempted of those met so far that may not be now by time alone; inf if none.
        # Candidates are met one by one, as they are taken
        self.due = inf

    def own(self) -> tuple[list[Group], NamespaceShare]:
        """Those of the preemptor's own queue.

        And where namespaces share that, how large a share one of them must keep to give anything.
        """
        policy, giving = self._queue.preemption.within, NO_NAMESPACE_GIVES
        if policy is WithinQueue.NEVER or not self._gives(self._queue.name):
            return [], giving
        node, sharing = ("queue", self._queue.name), self._ledger.sharing.get(self._queue.name)
        lesser = within_queue.lesser(policy, self._preemptor)
        if not self._displaced and self._queue.name not in self._tree.apart:
            own = InLine(self._ground, self._queue.name, node, self._own_lines(), lesser)
            return ([own] if next(own.placed(), None) is not None else []), giving
        pool = Pool(self._ground, self._queue.name, node)
        allows = self._eligible(lesser)
        mine = self._preemptor.namespace if sharing is not None else None
        for reservation in filter(allows, self._ledger.candidates(self._queue.name, mine)):
            pool.add(reservation)
        if sharing is not None:  # between namespaces shares decide
            eligible = self._eligible(ANY_RANK)
            giving = namespaces.share_at_least(sharing, self._preemptor, self._demand.usage, pool.held)
            for name in namespaces.givers(sharing, self._preemptor, giving):
                for reservation in filter(eligible, self._ledger.candidates(self._queue.name, name)):
                    pool.add(reservation)
        return ([pool] if pool.held else []), giving

    def _own_lines(self) -> QueueLines:
        """What of the own queue uses what is contested, or of what too much is in use in all flavors."""
        lines, limited = self._ledger.lines.of(self._queue.name), self._demand.limited
        if limited:
            return {k: line for k, line in lines.items() if k in self._demand.contested or k[1] in limited}
        return {key: lines[key] for key in self._demand.contested if key in lines}

    def _eligible(self, lesser: Lesser) -> Callable[[Reservation], bool]:
        """The workloads that may be evicted, by rules on each alone."""

        def eligible(reservation: Reservation) -> bool:
            workload = reservation.workload
            if workload is None or not self._demand.contends(reservation) or not lesser.has(workload):
                return False
            if self._displaced and not self._stays_out(reservation):
                return False
            ready = self._scene.may_go_at(reservation)
            if ready > self._scene.now:
                self.due = min(self.due, ready)
                return False
            return True

        return eligible

    def _stays_out(self, victim: Reservation) -> bool:
        """Whether a victim could not take its place back from its preemptor.

        That is all that a displaced workload may evict, so evictions in turns come to an end
        (docs/design/preemption.md).
        """
        if victim.queue != self._queue.name:
            owner = self._tree.queues.get(victim.queue)
            return owner is None or not owner.preemption.allowed
        assert victim.workload is not None, "only workloads are evicted"
        mine = not self._queue.by_namespace or victim.namespace == self._preemptor.namespace
        return mine and self._preemptor.rank < victim.workload.rank

    def others(self, side: Node, lesser: Lesser, gives: Callable[[str], bool] | None = None) -> list[Group]:
        """Candidates of queues that part from the preemptor's at this place: its queue, or a cohort above it.

        `gives` says which of the queues that borrow what is contested may have to give; None: all.
        """
        groups: list[Group] = []
        # What is displaced may evict less of every queue: then all are looked at in full.
        exceeds, apart = self._exceeding(side), self._borrowers(side) if self._displaced else self._tree.apart
        # Shares change while others are taken out: where they decide, they do so before that.
        giving = None if gives is None else set(filter(gives, self._borrowers(side)))
        for name in sorted(self._borrowers(side, apart) if giving is None else apart & giving):
            if self._tree.queues[name].pool:
                standing = self._scene.capacity.planned(name)
                groups.append(OverQuota(self._ground, name, side, standing, self._eligible(lesser)))
            elif exceeds(name) and self._gives(name):
                pool = Pool(self._ground, name, side)
                for reservation in filter(self._eligible(lesser), self._ledger.candidates(name)):
                    pool.add(reservation)
                groups.append(pool)
        groups = [group for group in groups if isinstance(group, Pool) and group.held]
        if self._displaced:
            return groups

        def among(name: str) -> bool:
            given = self._is_beside(side, name) if giving is None else name in giving
            return given and name not in apart and exceeds(name) and self._gives(name)

        queues = QueuePools(self._ground, side, self._ledger.lines, lesser, among)
        return [*groups, queues] if queues else groups

    def _gives(self, queue: str) -> bool:
        """Whether limits leave any workload of a queue to be evicted now."""
        opening = self._scene.gives_at(queue)
        if opening <= self._scene.now:
            return True
        self.due = min(self.due, opening)
        return False

    def _exceeding(self, side: Node) -> Callable[[str], bool]:
        """Says whether a queue on another side, and all between it and the node above both, exceed their own.

        In anything that is contested.
        """
        parents, top = self._tree.parents(), self._tree.parents().get(side)
        known: dict[Node | None, Keys] = {top: self._demand.contested}

        def keys(node: Node | None) -> Keys:
            if node not in known:
                assert node is not None, "the node above both is above it"
                above = keys(parents[node])
                known[node] = frozenset(key for key in above if self._book.at(node, key).borrows())
            return known[node]

        borrowers = {key: self._book.borrowers(self._root, key) for key in self._demand.contested}
        holders = self._tree.holders(top) if top is not None else ()
        found = {node: [borrowers[key] for key in keys(node)] for node in holders}
        return lambda name: any(name in borrowing for borrowing in found[parents["queue", name]])

    def _borrowers(self, side: Node, among: AbstractSet[str] | None = None) -> set[str]:
        """Queues that part from the preemptor's at this place on its side, and borrow what is contested."""
        found: set[str] = set()
        for key in self._demand.contested:
            names = self._book.borrowers(self._root, key)
            found.update(names if among is None else names & among)
        return {name for name in found if self._is_beside(side, name)}

    def _is_beside(self, side: Node, queue: str) -> bool:
        """Whether a queue is below the node above a side, and not below that."""
        path = self._tree.path(("queue", queue))
        return side not in path and self._tree.parents().get(side) in path

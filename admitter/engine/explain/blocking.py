"""Blocking workloads: a minimal set of running or incoming ones; their end would let a pending one in."""

from collections.abc import Callable
from math import inf

from admitter.engine.model import Workload
from admitter.engine.nominator import Nominator
from admitter.engine.policy import Queue
from admitter.engine.queue.competing_heads import Nomination
from admitter.engine.quota.ledger import Reservation
from admitter.engine.state import EngineState


class _EnoughError(Exception):
    """The search is to end."""


class BlockingWorkloads:
    """Plans without some holders, and with them again: the state is in the end as it was."""

    def __init__(
        self, state: EngineState, workload: Workload, queue: Queue, enough: Callable[[], bool]
    ) -> None:
        """`enough` is asked before each attempt: whether the search is to end without an answer."""
        self._tree = state.tree
        self._ledger = state.ledger
        self._nominator = Nominator(state)
        self._workload = workload
        self._queue = queue
        self._enough = enough
        self._gone: list[Reservation] = []
        self._victims: dict[str, list[str]] = {}
        self._related = set(state.tree.relatives(queue.name))
        self._displaced_by = self._ledger.displacements.preemptor(workload.uid)

    def found(self) -> list[str] | None:
        """Their UIDs; empty if the end of all would not help, or none needs to end; None: search ended.

        All leave, the newest first, until the workload fits; then each returns that is not needed for that.
        A workload that could be evicted for it once the others have ended need not end.
        """
        holders = self._in_order(self._holders())
        try:
            while not self._nominator.fits(self._workload, self._queue):
                if not holders:
                    return []
                self._look_up()
                staying = self._leave(holders.pop(0))
                holders = self._in_order([*holders, *staying]) if staying else holders
            while self._return_needless():
                pass  # with one back another may not be needed any more: the first may be evicted
            return [reservation.holder for reservation in self._gone]
        except _EnoughError:
            return None
        finally:
            for reservation in self._gone[::-1]:
                self._return(reservation)

    def _holders(self) -> list[Reservation]:
        names = self._tree.members(self._tree.root(self._queue.name))
        run = [r for name in names for r in self._ledger.reservations(name)]
        coming = [pending for name in names for pending in self._ledger.pending_in(name)]
        return [
            *(reservation for reservation in run if not self._ledger.evicting(reservation.holder)),
            *(Reservation(each.workload.uid, each.admission, each.workload, inf) for each in coming),
        ]

    def _in_order(self, holders: list[Reservation]) -> list[Reservation]:
        """Those of the workload's own queue first, and of them the newest."""
        return sorted(holders, key=lambda r: (r.queue != self._queue.name, -r.since, r.holder))

    def _return_needless(self) -> bool:
        """Let those return that are not needed for the workload to get in; says whether there were any."""
        before = len(self._gone)
        for reservation in self._gone[::-1]:
            if reservation in self._gone:
                going = self._return(reservation)
                if not self._gets_in():
                    self._leave(reservation)
                    for other in going:
                        self._leave(other)
        return len(self._gone) < before

    def _gets_in(self) -> bool:
        """Whether the workload would be admitted now, or others be evicted for it."""
        self._look_up()
        if self._nominator.fits(self._workload, self._queue):
            return True
        return isinstance(self._nominator.nominate(self._workload, self._queue), Nomination)

    def _look_up(self) -> None:
        """Between two attempts: go on, unless it is enough."""
        if self._enough():
            raise _EnoughError

    def _leave(self, reservation: Reservation) -> list[Reservation]:
        """Take a workload out of planned use; returns its victims: their pending evictions are cancelled."""
        holder = reservation.holder
        self._gone.append(reservation)
        if holder not in self._ledger.pending_reservations:
            self._ledger.evict(holder, self._workload.uid)
            self._restore()
            return []
        staying = self._ledger.pending_evictions_for(holder)
        self._victims[holder] = [each.holder for each in staying]
        self._ledger.drop_pending(holder)
        self._ledger.cancel_pending_evictions(holder)
        return staying

    def _return(self, reservation: Reservation) -> list[Reservation]:
        """Count a workload in planned use again; returns those of the gone that are its victims again."""
        holder = reservation.holder
        self._gone.remove(reservation)
        if holder not in self._victims:
            self._ledger.cancel_eviction(holder)
            self._restore()
            return []
        assert reservation.workload is not None, "only workloads are on the way in"
        victims = self._victims.pop(holder)
        going = [other for other in self._gone if other.holder in victims]
        for other in going:
            self._gone.remove(other)
        self._ledger.add_pending(reservation.workload, reservation.admission)
        for each in victims:
            self._ledger.evict(each, holder)
            self._ledger.mark_eviction_pending(each)
        return going

    def _restore(self) -> None:
        """Let the workload evict what could come back if something near it has ended: as `State.restore`."""
        if self._displaced_by is not None:
            displacements = self._ledger.displacements
            if any(each.queue in self._related and each.holder not in self._victims for each in self._gone):
                displacements.end(self._workload.uid)
            else:
                displacements.make(self._workload.uid, self._displaced_by)

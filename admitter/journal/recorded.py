"""An engine that writes down all that is done to it.

What makes no difference is left out, such as the withdrawal of a workload that does not wait. So a journal is
as long as there was something to decide about.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Protocol

from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Flavor, Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.preemption.back_off import BackOff
from admitter.engine.quota.ledger import NO_PODS, Pod, Pods, Reservation
from admitter.engine.quota.tree import Node
from admitter.engine.tree_cycle import Plan
from admitter.journal import state
from admitter.journal.calls import Call, Looks, plan_record


class Writer(Protocol):
    """Where calls are written."""

    def begin(self, state: Iterable[Call]) -> None:
        """Begin with what an engine knows."""

    def write(self, call: Call) -> None:
        """Write one."""

    def decided(self, state: Callable[[], Iterable[Call]]) -> None:
        """A cycle is over, and nothing has been done since; `state` tells all that the engine knows."""


class RecordedEngine(Engine):
    """Decides as an engine does, and records its calls from when it begins to decide.

    What one call makes the engine call of itself is no call of its own.
    """

    def __init__(self, journal: Writer) -> None:
        super().__init__()
        self._journal = journal
        self._decides = False
        self._inside = False

    def set_flavor(self, flavor: Flavor) -> None:
        with self._called("set_flavor", flavor):
            super().set_flavor(flavor)

    def remove_flavor(self, name: str) -> None:
        with self._called("remove_flavor", name):
            super().remove_flavor(name)

    def define(
        self,
        queues: Iterable[Queue] = (),
        cohorts: Iterable[Cohort] = (),
        gone: Iterable[str] = (),
        gone_cohorts: Iterable[str] = (),
    ) -> None:
        changes = [*queues], [*cohorts], [*gone], [*gone_cohorts]
        with self._called("define", *changes, matters=any(changes)):
            super().define(*changes)

    def set_weight(self, namespace: str, weight: int) -> None:
        with self._called("set_weight", namespace, weight):
            super().set_weight(namespace, weight)

    def submit(self, workload: Workload) -> None:
        pending = self.ledger.pending_reservations.get(workload.uid)
        known = pending.workload if pending is not None else self._state.waiting(workload.uid)
        with self._called("submit", workload, matters=known != workload):
            super().submit(workload)

    def withdraw(self, uid: str) -> None:
        with self._called("withdraw", uid, matters=self.waits(uid)):
            super().withdraw(uid)

    def reserve(
        self,
        holder: str,
        admission: Admission,
        workload: Workload | None = None,
        since: float = 0.0,
        namespace: str = "",
    ) -> None:
        made = Reservation(holder, admission, workload, since, namespace)
        with self._called(
            "reserve", holder, admission, workload, since, namespace, matters=self.ledger.held(holder) != made
        ):
            super().reserve(holder, admission, workload, since, namespace)

    def set_pods(self, holder: str, alive: tuple[Pod, ...], left_over: int = 0) -> None:
        known = self.ledger.pods(holder) == Pods(alive, left_over)
        with self._called("set_pods", holder, alive, left_over, matters=not known):
            super().set_pods(holder, alive, left_over)

    def release(self, holder: str) -> None:
        held = self.ledger.held(holder) is not None or self.ledger.pods(holder) != NO_PODS
        with self._called("release", holder, matters=held):
            super().release(holder)

    def evict(self, holder: str, preemptor: Workload, admission: Admission, *, told: bool = False) -> None:
        with self._called("evict", holder, preemptor, admission, told):
            super().evict(holder, preemptor, admission, told=told)

    def displaced(self, uid: str, preemptor: str) -> None:
        with self._called("displaced", uid, preemptor):
            super().displaced(uid, preemptor)

    def start_eviction(self, holder: str) -> None:
        with self._called("goes", holder):
            super().start_eviction(holder)

    def cancel_eviction(self, holder: str) -> None:
        with self._called("spare", holder, matters=self.ledger.evicting(holder)):
            super().cancel_eviction(holder)

    def give_back(self, uid: str) -> None:
        with self._called("give_back", uid, matters=uid in self.returned.gained):
            super().give_back(uid)

    def use(self, uid: str) -> None:
        with self._called("use", uid, matters=uid in self.returned.gained):
            super().use(uid)

    def gain(self, uid: str) -> None:
        with self._called("gain", uid, matters=uid not in self.returned.gained):
            super().gain(uid)

    def back_off(self, queue: str, namespace: str, back_off: BackOff) -> None:
        with self._called("back_off", queue, namespace, back_off):
            super().back_off(queue, namespace, back_off)

    def cycle(self, now: float = 0.0, decides: Callable[[Node], bool] | None = None) -> Plan:
        asked = _AskedRoots(decides)
        plan = super().cycle(now, asked)
        self._journal.write(Call("cycle", (now, asked.looks()), plan_record(plan)))
        self._journal.decided(
            lambda: chain(state.calls(self._state), [state.settled(self._state, now, asked)])
        )
        return plan

    def resume(self, decides: Callable[[Node], bool]) -> None:
        if not self._decides:
            self._decides = True
            self._journal.begin(state.calls(self._state))
        asked = _AskedRoots(decides)
        super().resume(asked)
        self._journal.write(Call("resume", (asked.looks(),)))

    def abandon_trees(self, decides: Callable[[Node], bool]) -> None:
        asked = _AskedRoots(decides)
        super().abandon_trees(asked)
        self._journal.write(Call("forsake", (asked.looks(),)))

    @contextmanager
    def _called(self, name: str, *arguments: object, matters: bool = True) -> Iterator[None]:
        """Write a call before it is made, unless it makes no difference or is a part of another."""
        if self._inside:
            yield
            return
        if matters and self._decides:
            self._journal.write(Call(name, arguments))
        self._inside = True
        try:
            yield
        finally:
            self._inside = False


class _AskedRoots:
    """Notes which trees it was asked about, and what it said."""

    def __init__(self, decides: Callable[[Node], bool] | None) -> None:
        self._decides = decides
        self._answers: dict[Node, bool] = {}

    def __call__(self, root: Node) -> bool:
        self._answers[root] = self._decides is None or self._decides(root)
        return self._answers[root]

    def looks(self) -> Looks:
        """All of it."""
        return Looks(tuple(self._answers.items()))

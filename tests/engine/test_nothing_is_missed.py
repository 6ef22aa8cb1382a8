"""An engine that tries all in every cycle decides the same as one that marks the refused inadmissible.

Random events of `test_tree_properties`, half of them in queues that share one flavor and grant time before
they give way: an eviction may then turn out not to be needed, and its victim is in the plan again.
"""

from dataclasses import replace
from typing import Any
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from admitter.engine.commands import Command, Define
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import (
    BorrowWithin,
    Cohort,
    PreemptionPolicy,
    Queue,
    Reclaim,
    VictimTerms,
    WithinQueue,
)
from admitter.engine.queue.equivalence import EquivalenceClass
from admitter.engine.queue.inadmissible import Look
from admitter.engine.tree_cycle import Plan
from tests.engine import test_tree_properties as tree
from tests.engine.builders import queue
from tests.scale import histories

patiences = st.builds(VictimTerms, st.sampled_from([0.0, 5.0, 5.0]), st.sampled_from([0.0, 0.0, 2.0]))


@st.composite
def plain(draw: st.DrawFn, name: str) -> Queue:
    """One of several queues that share one flavor: what is freed in one is felt in all."""
    policy = PreemptionPolicy(
        draw(st.sampled_from([WithinQueue.NEVER, WithinQueue.LOWER_PRIORITY, WithinQueue.LOWER_PRIORITY])),
        draw(st.sampled_from([Reclaim.LOWER_PRIORITY, Reclaim.ANY])),
        draw(st.sampled_from([BorrowWithin.NEVER, BorrowWithin.NEVER, BorrowWithin.GUARANTEED_SHARE])),
    )
    return queue(name, {"cpu": {"a": str(draw(st.integers(1, 4)))}}, cohort="left", preemption=policy)


class Untiring(Engine):
    """Tries all in every cycle: neither a glance nor what another one got replaces that."""

    def __init__(self) -> None:
        super().__init__()
        self._look = self._state.inadmissible.look
        self._state.inadmissible.look = self._doubted  # type: ignore[method-assign]  # tries again what a glance refuses
        self._state.assigner.again = mock.Mock(return_value=None)  # type: ignore[method-assign]

    def _doubted(self, members: EquivalenceClass) -> Look:
        found = self._look(members)
        if found is not Look.SHORT:
            return found
        members.retry_as_known()
        return Look.UNSURE

    def cycle(self, now: float = 0.0, decides: Any = None) -> Plan:
        for name, pending in self._state.pending.items():
            for workload in pending.workloads():
                pending.class_of(workload).retry_as_known()
            self._state.changed.add(name)
        self._state.changed.update(self.ledger.queues_with_pending)
        return super().cycle(now, decides)


class Twin(Engine):
    """Tells another engine all that it is told, and compares what both decide."""

    def __init__(self) -> None:
        self.untiring = Untiring()
        super().__init__()

    def apply(self, command: Command) -> None:
        self.untiring.apply(command)
        super().apply(command)

    def cycle(self, now: float = 0.0, decides: Any = None) -> Plan:
        expected, plan = self.untiring.cycle(now, decides), super().cycle(now, decides)
        assert [(w.uid, a) for w, a in plan.admissions] == [(w.uid, a) for w, a in expected.admissions]
        assert tree.preempting(plan) == tree.preempting(expected)
        assert plan.planned == expected.planned
        return plan


class Patient(tree.Tree):
    """As the tree, in queues that grant time; what is true of each plan is looked at there."""

    make = Twin

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        super().start(data)
        if data.draw(st.booleans()):
            self.queues = {name: data.draw(plain(name)) for name in self.queues}
            self.cohorts = {name: Cohort(name) for name in self.cohorts}
        self.queues = {
            name: replace(made, victim_terms=data.draw(patiences)) for name, made in self.queues.items()
        }
        self.engine.apply(Define(tuple(self.queues.values()), tuple(self.cohorts.values())))

    def cycle(self) -> Plan:
        self.now += 1
        plan = self.engine.cycle(self.now)
        self.check(plan)
        return plan

    def check(self, plan: Plan) -> None:
        for workload, admission in plan.admissions:
            self.waiting.pop(workload.uid, None)
            self.promised.pop(workload.uid, None)
            self.running[workload.uid] = (workload, admission, self.now)
        for uid, admission in plan.planned.items():
            if uid in self.engine.ledger.pending_reservations:
                self.promised[uid] = (self._asking(uid), admission)
        self.keep_only_what_is_held()
        preemptors = {uid: self.engine.ledger.preemptor(uid) for uid in self.running}
        self.evicted = {uid: preemptor for uid, preemptor in preemptors.items() if preemptor is not None}

    def _asking(self, uid: str) -> Workload:
        return self.waiting.pop(uid) if uid in self.waiting else self.promised[uid][0]


TestPatient = Patient.TestCase
TestPatient.settings = histories(24)

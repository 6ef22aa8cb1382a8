"""What is always true of the engine, whatever comes in whichever order."""

import copy
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from admitter.engine.flavors import Assigner, Proposal
from admitter.engine.ledger import summed
from admitter.engine.model import Admission, FlavorResource, Workload
from admitter.engine.policy import Queue, Strategy
from admitter.engine.quota import Book, Tree
from tests.engine.builders import admitted, engine, flavor, pods, queue

FLAVORS = (flavor("a", kind="a"), flavor("b", kind="b"))


def limits(cpu_a: int, cpu_b: int, strategy: Strategy) -> Queue:
    return queue("q", {"cpu": {"a": str(cpu_a), "b": str(cpu_b)}}, strategy)


class Cluster(RuleBasedStateMachine):
    """Random events against the engine, checked against a naive recount from scratch."""

    @initialize(strategy=st.sampled_from(list(Strategy)), a=st.integers(0, 6), b=st.integers(0, 6))
    def start(self, strategy: Strategy, a: int, b: int) -> None:
        self.queue = limits(a, b, strategy)
        self.engine = engine(*FLAVORS, self.queue)
        self.waiting: dict[str, Workload] = {}
        self.running: dict[str, Admission] = {}
        self.over: Counter[FlavorResource] = Counter()
        self.serial = 0

    @rule(
        cpu=st.integers(0, 8),
        count=st.integers(0, 3),
        priority=st.integers(0, 2),
        kind=st.sampled_from([None, "a", "b"]),
        two=st.booleans(),
    )
    def submit(self, cpu: int, count: int, priority: int, kind: str | None, two: bool) -> None:
        self.serial += 1
        sets = [pods(count, cpu=str(cpu), selector={"kind": kind} if kind else None)]
        if two:
            sets.append(pods(1, name="second", cpu="1"))
        made = Workload(f"w{self.serial:03}", "q", priority, self.serial % 4, tuple(sets))
        self.waiting[made.uid] = made
        self.engine.submit(made)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[uid]
        self.engine.release(uid)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[uid]
        self.engine.withdraw(uid)

    @rule(a=st.integers(0, 6), b=st.integers(0, 6), strategy=st.sampled_from(list(Strategy)))
    def edit_the_queue(self, a: int, b: int, strategy: Strategy) -> None:
        self.queue = limits(a, b, strategy)
        self.engine.set_queue(self.queue)

    @rule()
    def cycle(self) -> None:
        before = self.use()
        copied = copy.deepcopy(self.engine)
        plan = self.engine.cycle()
        assert admitted(plan) == admitted(copied.cycle()), "the same input, the same plan"
        for workload, admission in plan.admissions:
            if self.queue.strategy is Strategy.STRICT_FIFO:
                assert workload.rank == min(w.rank for w in self.waiting.values()), "a head was overtaken"
            del self.waiting[workload.uid]
            self.running[workload.uid] = admission
        for key, amount in self.use().items():
            assert amount <= max(self.queue.quotas[key].minimum, before[key]), "an excess was made or grew"
        self.nothing_eligible_is_left()

    def nothing_eligible_is_left(self) -> None:
        ranked = sorted(self.waiting.values(), key=lambda workload: workload.rank)
        strict = self.queue.strategy is Strategy.STRICT_FIFO
        tree = Tree()
        tree.set_queue(self.queue)
        book = Book(tree)
        for admission in self.running.values():
            book.add("q", summed(admission))
        for workload in ranked[:1] if strict else ranked:
            outcome = Assigner(book, {f.name: f for f in FLAVORS}).assign(workload, self.queue)
            assert not isinstance(outcome, Proposal), f"{workload.uid} fits and was left waiting"

    def use(self) -> Counter[FlavorResource]:
        total: Counter[FlavorResource] = Counter()
        for admission in self.running.values():
            for key, amount in admission.usage():
                total[key] += amount
        return total

    @invariant()
    def the_ledger_is_the_sum_of_what_runs(self) -> None:
        if hasattr(self, "engine"):
            assert dict(self.engine.ledger.used("q")) == {k: v for k, v in self.use().items() if v}


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)

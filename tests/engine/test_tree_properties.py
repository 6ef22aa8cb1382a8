"""What is always true of queues in cohorts, whatever comes in whichever order, against a naive recount."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from admitter.engine.commands import (
    CancelEviction,
    Define,
    Displace,
    Evict,
    Release,
    Reserve,
    SetWeight,
    Submit,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, FlavorResource, Workload
from admitter.engine.policy import (
    BorrowWithin,
    Cohort,
    Fungibility,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    WithinQueue,
)
from admitter.engine.quota.fair_shares import FairShares
from admitter.engine.tree_cycle import Plan, PlannedEviction
from tests.engine.builders import engine, flavor, pods, queue
from tests.engine.naive import Naive
from tests.scale import histories

FLAVORS = (flavor("a", kind="a"), flavor("b", kind="b"))
KEYS: tuple[FlavorResource, ...] = (("a", "cpu"), ("b", "cpu"), ("a", "memory"), ("b", "memory"))
QUEUES = ("q0", "q1", "q2", "q3")
NAMESPACES = ("n0", "n1", "n2")
PARENTS = {"top": ("",), "left": ("", "top"), "right": ("", "top", "left")}
"""Cohorts with the parents that they may get: never a cycle."""

cpu = st.integers(0, 6).map(lambda cores: cores * 1000)
maybe_cpu = st.none() | cpu
quotas = st.builds(
    lambda minimum, extra, lending: Quota(minimum, None if extra is None else minimum + extra, lending),
    cpu,
    maybe_cpu,
    maybe_cpu,
)
policies = st.builds(
    PreemptionPolicy,
    st.sampled_from([*WithinQueue, *list(WithinQueue)[1:]]),
    st.sampled_from([*Reclaim, *list(Reclaim)[1:]]),
    st.sampled_from([*BorrowWithin, *list(BorrowWithin)[1:]]),
    st.none() | st.integers(0, 2),
)
weights = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1), Fraction(2)])
strategies = st.sampled_from(Strategy)
cohort_names = st.sampled_from(["", "top", "left", "left", "right", "right"])
fungibilities = st.builds(Fungibility, st.booleans(), st.booleans())
parents = {name: st.sampled_from(above) for name, above in PARENTS.items()}
requests = st.tuples(
    st.sampled_from(QUEUES),
    st.integers(1, 7),  # pods of one CPU
    st.integers(0, 2),  # priority
    st.sampled_from([None, None, "a", "b"]),  # the kind of node
    st.booleans(),  # whether there is a second pod set
    st.sampled_from([None, None, 1]),  # min_count
    st.sampled_from([0, 0, 500, 2000]),  # memory of each pod
    st.sampled_from(NAMESPACES),
)
Asked = tuple[str, int, int, str | None, bool, int | None, int, str]


@cache
@st.composite
def queue_definitions(draw: st.DrawFn, name: str) -> Queue:
    made = queue(
        name,
        {"cpu": {"a": "0", "b": "0"}, "memory": {"a": "0", "b": "0"}},
        draw(strategies),
        cohort=draw(cohort_names),
        fungibility=draw(fungibilities),
        preemption=draw(policies),
    )
    limits = {key: draw(quotas) for key in KEYS}
    together = draw(maybe_cpu)
    return replace(
        made,
        quotas=limits,
        weight=draw(weights),
        limits={} if together is None else {"cpu": together},
        by_namespace=draw(st.booleans()),
    )


@cache
@st.composite
def cohort_definitions(draw: st.DrawFn, name: str) -> Cohort:
    parent = draw(parents[name])
    limits = {KEYS[0]: draw(quotas), KEYS[2]: draw(quotas)}
    return Cohort(name, parent, limits, draw(weights), fair=draw(st.booleans()))


def preempting(plan: Plan) -> dict[str, str]:
    return {eviction.victim.holder: eviction.preemptor.uid for eviction in plan.evictions}


class Tree(RuleBasedStateMachine):
    """Random events against the engine."""

    make: Callable[[], Engine] = Engine

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.queues = {name: data.draw(queue_definitions(name)) for name in QUEUES}
        self.cohorts = {name: data.draw(cohort_definitions(name)) for name in PARENTS}
        self.engine = engine(*FLAVORS, *self.cohorts.values(), *self.queues.values(), made=self.make())
        self.waiting: dict[str, Workload] = {}
        self.running: dict[str, tuple[Workload, Admission, float]] = {}
        self.evicted: dict[str, str] = {}
        self.promised: dict[str, tuple[Workload, Admission]] = {}
        self.weights: dict[str, int] = {}
        self.serial = 0
        self.now = 0.0

    @rule(asked=st.lists(requests, min_size=1, max_size=5))
    def submit(self, asked: list[Asked]) -> None:
        for name, count, priority, kind, two, least, memory, namespace in asked:
            self.serial += 1
            selector = {"kind": kind} if kind else None
            sets = [pods(count, cpu="1", memory=str(memory), selector=selector, min_count=least)]
            if two:
                sets.append(pods(1, name="second", cpu="1"))
            made = Workload(f"w{self.serial:03}", name, priority, self.serial % 4, tuple(sets), namespace)
            self.waiting[made.uid] = made
            self.engine.apply(Submit(made))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[uid]
        self.evicted.pop(uid, None)
        self.engine.apply(Release(uid))

    @precondition(lambda self: self.waiting or self.promised)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.waiting.keys() | self.promised.keys())))
        self.waiting.pop(uid, None)
        self.promised.pop(uid, None)
        self.engine.apply(Withdraw(uid))

    @precondition(lambda self: self.now > 3)
    @rule(data=st.data(), name=st.sampled_from(QUEUES))
    def edit_a_queue(self, data: st.DataObject, name: str) -> None:
        self.queues[name] = data.draw(queue_definitions(name))
        self.engine.apply(Define((self.queues[name],)))
        self.keep_only_what_is_held()

    @precondition(lambda self: self.now > 3)
    @rule(data=st.data(), name=st.sampled_from(sorted(PARENTS)))
    def edit_a_cohort(self, data: st.DataObject, name: str) -> None:
        self.cohorts[name] = data.draw(cohort_definitions(name))
        self.engine.apply(Define(cohorts=(self.cohorts[name],)))
        self.keep_only_what_is_held()

    @rule(namespace=st.sampled_from(NAMESPACES), weight=st.integers(1, 3))
    def weigh(self, namespace: str, weight: int) -> None:
        self.weights[namespace] = weight
        self.engine.apply(SetWeight(namespace, weight))

    @precondition(lambda self: self.evicted)
    @rule(data=st.data())
    def spare(self, data: st.DataObject) -> None:
        """An eviction does not come about."""
        uid = data.draw(st.sampled_from(sorted(self.evicted)))
        del self.evicted[uid]
        self.engine.apply(CancelEviction(uid))
        self.keep_only_what_is_held()

    def keep_only_what_is_held(self) -> None:
        """A change of limits may end promises; a preemptor with a reservation competes again."""
        for uid in [uid for uid in self.promised if uid not in self.engine.ledger.pending_reservations]:
            workload, _ = self.promised.pop(uid)
            self.waiting[uid] = workload

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        """To look for victims, flavors and blocking workloads leaves every number as it was.

        Claims that are less than before may be made anew for it: what is tried again for that fits no more.
        """
        uid = data.draw(st.sampled_from(sorted(self.waiting)))
        before, changed = self.numbers(), self.engine.changed
        explanation = self.engine.explain(uid)
        assert self.numbers() == before
        assert explanation is not None
        assert set(explanation.blocking) <= self.running.keys() | self.promised.keys()
        if self.engine.changed and not changed:
            plan = self.cycle()
            assert not [*plan.admissions, *plan.evictions], "no cycle was due that decides"

    def numbers(self) -> dict[object, tuple[int, int]]:
        books = (self.engine.ledger.real, self.engine.ledger.planned)
        return {
            (number, node, key): (cell.used, cell.total)
            for number, book in enumerate(books)
            for node in self.engine.tree.parents()
            for key in KEYS
            for cell in (book.at(node, key),)
        }

    @precondition(lambda self: self.engine.changed)
    @rule()
    def decide(self) -> None:
        self.cycle()

    def cycle(self) -> Plan:
        """One cycle, and the same by an engine that has just learnt all of it."""
        self.now += 1
        expected = self.rebuilt().cycle(self.now)
        plan = self.engine.cycle(self.now)
        assert [(w.uid, a) for w, a in plan.admissions] == [(w.uid, a) for w, a in expected.admissions]
        assert preempting(plan) == preempting(expected), "parked ones would decide otherwise"
        self.check(plan)
        return plan

    def check(self, plan: Plan) -> None:
        """Take a plan over, and see that each step of it keeps every limit."""
        naive = Naive(self.queues, self.cohorts)
        for workload, admission in plan.admissions:
            usage = dict(admission.usage)
            assert naive.fits(workload.queue, usage, self.used()), f"{workload.uid} exceeds a limit"
            self.may_pass(workload)
            self.waiting.pop(workload.uid, None)
            self.promised.pop(workload.uid, None)
            self.running[workload.uid] = (workload, admission, self.now)
        self.take_evictions(plan)
        for uid, admission in plan.planned.items():
            if uid in self.engine.ledger.pending_reservations:
                workload = self.waiting.pop(uid) if uid in self.waiting else self.promised[uid][0]
                self.promised[uid] = (workload, admission)
        self.keep_only_what_is_held()
        for eviction in plan.evictions:
            if eviction.preemptor.uid in self.promised:
                self.cannot_take_it_back(eviction)
        planned = self.planned()
        shares = FairShares(self.engine.tree, self.engine.ledger.planned)
        for node in self.engine.tree.parents():
            assert shares.of(node) == naive.share(*node, planned), f"the share of {node}"
        self.check_namespaces(naive)
        for workload in self.waiting.values():
            if self.queues[workload.queue].strategy is Strategy.BEST_EFFORT_FIFO:
                self.does_not_fit(naive, workload, planned)

    def take_evictions(self, plan: Plan) -> None:
        """Note what is evicted for which workload."""
        reassigned = {each.victim: each.preemptor.uid for each in plan.reassigned}
        self.evicted.update({uid: reassigned[uid] for uid in self.evicted.keys() & reassigned})
        for eviction in plan.evictions:
            self.evicted[eviction.victim.holder] = eviction.preemptor.uid
            self.check_victim(self.running[eviction.victim.holder][0], eviction.preemptor)

    def check_namespaces(self, naive: Naive) -> None:
        """Shares of namespaces are what a recount says."""
        use: dict[tuple[str, str], Counter[FlavorResource]] = defaultdict(Counter)
        for uid, (workload, admission, _) in self.running.items():
            if uid not in self.evicted:
                use[admission.queue, workload.namespace].update(dict(admission.usage))
        for workload, admission in self.promised.values():
            use[admission.queue, workload.namespace].update(dict(admission.usage))
        for name, sharing in self.engine.ledger.sharing.items():
            for namespace in NAMESPACES:
                weight = self.weights.get(namespace, 1)
                expected = naive.namespace_share(name, use[name, namespace], weight)
                endless, share = sharing.of(namespace)
                found = (endless, Fraction(share, sharing._scale))
                assert found == expected, f"the share of {namespace} in {name}"

    def may_pass(self, workload: Workload) -> None:
        if self.queues[workload.queue].strategy is Strategy.STRICT_FIFO and workload.uid in self.waiting:
            ahead = [w for w in self.waiting.values() if w.queue == workload.queue and w.rank < workload.rank]
            if self.queues[workload.queue].by_namespace:
                ahead = [w for w in ahead if w.namespace == workload.namespace]
            assert not ahead, f"{workload.uid} overtakes {ahead[0].uid}"

    def cannot_take_it_back(self, eviction: PlannedEviction) -> None:
        """Once the preemptor is in and its victims wait, alone, none of these evicts it again."""
        after = engine(*FLAVORS, *self.cohorts.values(), *self.queues.values())
        for namespace, weight in self.weights.items():
            after.apply(SetWeight(namespace, weight))
        for uid, (workload, admission, since) in self.running.items():
            if uid not in self.evicted:
                after.apply(Reserve(uid, admission, workload, since))
        for workload, admission in self.promised.values():
            after.apply(Reserve(workload.uid, admission, workload, self.now))
        victim = eviction.victim.workload
        assert victim is not None
        after.apply(Submit(victim))
        after.apply(Displace(victim.uid, eviction.preemptor.uid))
        assert eviction.preemptor.uid not in preempting(after.cycle(self.now)), (
            f"{victim.uid} evicts {eviction.preemptor.uid}, which had just evicted it"
        )

    def check_victim(self, victim: Workload, preemptor: Workload) -> None:
        policy = self.queues[preemptor.queue].preemption
        if victim.queue == preemptor.queue:
            assert policy.within is not WithinQueue.NEVER
            other = self.queues[victim.queue].by_namespace and victim.namespace != preemptor.namespace
            assert other or preemptor.rank < victim.rank
        else:
            reclaims = policy.reclaim is not Reclaim.NEVER
            lower = policy.borrow is BorrowWithin.LOWER_PRIORITY and victim.priority < preemptor.priority
            assert reclaims or lower or policy.borrow is BorrowWithin.GUARANTEED_SHARE

    def does_not_fit(self, naive: Naive, workload: Workload, use: dict[str, Counter[FlavorResource]]) -> None:
        """At rest nothing that waits fits, with all of its pods in one flavor."""
        first, *rest = workload.pod_sets
        selected = dict(first.node_selector).get("kind")
        for name in ("a", "b"):
            if not rest and selected in {None, name}:
                asked = {(name, resource): first.count * amount for resource, amount in first.requests}
                fits = naive.fits(workload.queue, asked, use)
                assert not fits, f"{workload.uid} fits into {name} and waits"

    @precondition(lambda self: self.waiting or self.promised)
    @rule()
    def settle(self) -> None:
        """Victims go and compete again, as often as it takes: it comes to an end, and promises are kept."""
        for _ in range(60):
            self.cycle()
            if not self.evicted and not self.promised:
                return
            for uid in sorted(self.evicted):
                workload, _, _ = self.running.pop(uid)
                self.engine.apply(Release(uid))
                self.waiting[uid] = workload
                self.engine.apply(Submit(workload))
            waited_for = set(self.evicted.values()) & self.promised.keys()
            self.evicted.clear()
            self.cycle()
            assert not waited_for & self.promised.keys(), "its victims are gone, and it is not admitted"
        raise AssertionError("they preempt each other for ever")

    def used(self) -> dict[str, Counter[FlavorResource]]:
        """What is really in use."""
        total: dict[str, Counter[FlavorResource]] = {name: Counter() for name in QUEUES}
        for _, admission, _ in self.running.values():
            total[admission.queue].update(dict(admission.usage))
        return total

    def planned(self) -> dict[str, Counter[FlavorResource]]:
        """What is in use once evictions are over and promises kept."""
        total: dict[str, Counter[FlavorResource]] = {name: Counter() for name in QUEUES}
        for uid, (_, admission, _) in self.running.items():
            if uid not in self.evicted:
                total[admission.queue].update(dict(admission.usage))
        for _, admission in self.promised.values():
            total[admission.queue].update(dict(admission.usage))
        return total

    def rebuilt(self) -> Engine:
        """An engine that knows the same, but learnt it at once and in another order."""
        made = engine(*FLAVORS, *reversed(self.queues.values()), *reversed(self.cohorts.values()))
        for namespace, weight in self.weights.items():
            made.apply(SetWeight(namespace, weight))
        for uid, (workload, admission, since) in sorted(self.running.items(), reverse=True):
            made.apply(Reserve(uid, admission, workload, since))
        for uid, (workload, admission) in self.promised.items():
            victims = [victim for victim, preemptor in self.evicted.items() if preemptor == uid]
            for victim in victims or [""]:
                made.apply(Evict(victim, workload, admission))
        for victim, preemptor in self.evicted.items():
            if preemptor not in self.promised and self.engine.ledger.evicting(victim):
                made.ledger.evict(victim, preemptor)
        for victim, preemptor in self.engine.ledger.displacements:
            made.apply(Displace(victim, preemptor))
        for workload in sorted(self.waiting.values(), key=lambda w: w.uid, reverse=True):
            made.apply(Submit(workload))
        return made


TestTree = Tree.TestCase
TestTree.settings = histories(24)

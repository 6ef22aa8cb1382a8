"""What is always true of elastic quotas, whatever comes in whichever order; the rule by brute force."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from admitter.engine.commands import (
    CancelEviction,
    Define,
    Displace,
    Evict,
    Release,
    Reserve,
    SetPods,
    StartEviction,
    Submit,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, PodSet, Workload
from admitter.engine.policy import Queue
from admitter.engine.tree_cycle import Plan
from admitter.quotas.elastic import POOL
from tests.engine.elastic import quota, quotas
from tests.engine.naive_elastic import Elastic, Runs, Terms
from tests.scale import histories

NAMES = ("a", "b", "c", "d")


@dataclass(frozen=True)
class Shape:
    """What a workload asks for, and how important it is."""

    count: int
    sizes: tuple[int, int]
    priority: int


shapes = st.builds(
    Shape, st.sampled_from([1, 1, 2, 3]), st.tuples(st.integers(1, 5), st.integers(1, 5)), st.integers(0, 2)
)


@st.composite
def terms(draw: st.DrawFn, resources: tuple[str, ...]) -> Terms:
    least = {resource: draw(st.integers(0, 12)) for resource in resources}
    most = {r: least[r] + draw(st.integers(0, 6)) for r in resources if draw(st.integers(0, 3)) == 0}
    return Terms(least, most, draw(st.sampled_from([0, 0, 0, 3, 10])), draw(st.sampled_from([0, 0, 5])))


class Quotas(RuleBasedStateMachine):
    """Random loads of two to four elastic quotas, with one or two resources.

    In half of the runs all workloads of a quota have one size: then none waits for which there are victims.
    """

    make: Callable[[], Engine] = Engine

    @initialize(data=st.data(), number=st.integers(2, 4), two=st.booleans(), alike=st.booleans())
    def start(self, data: st.DataObject, number: int, *, two: bool, alike: bool) -> None:
        self.resources = ("gpu", "memory") if two else ("gpu",)
        self.terms = {name: data.draw(terms(self.resources)) for name in NAMES[:number]}
        self.alike = {name: data.draw(shapes) for name in self.terms} if alike else {}
        self.engine = quotas(*(self.defined(name) for name in self.terms), made=self.make())
        self.waiting: dict[str, Workload] = {}
        self.running: dict[str, tuple[Workload, Admission, float]] = {}
        self.evicted: dict[str, str] = {}
        self.told: set[str] = set()  # of these, the ones that go on for a while
        self.promised: dict[str, tuple[Workload, Admission]] = {}
        self.pods: dict[str, tuple[float, ...]] = {}
        self.serial = 0
        self.now = 0.0
        for name in self.terms:  # one after the other they take all there is
            self.load(data, [name], data.draw(st.lists(shapes, max_size=8)))
            self.cycle()

    def defined(self, name: str) -> Queue:
        each = self.terms[name]
        granted = {"minRuntime": str(each.runtime), "gracePeriod": str(each.grace)}
        return quota(name, dict(each.least), dict(each.most), preemption=granted)

    @rule(data=st.data(), asked=st.lists(shapes, min_size=1, max_size=4))
    def submit(self, data: st.DataObject, asked: list[Shape]) -> None:
        self.load(data, sorted(self.terms), asked)

    @rule(data=st.data(), asked=st.lists(shapes, min_size=2, max_size=4))
    def submit_one_by_one(self, data: st.DataObject, asked: list[Shape]) -> None:
        for shape in asked:
            self.load(data, sorted(self.terms), [shape])
            self.cycle()

    def load(self, data: st.DataObject, names: list[str], asked: list[Shape]) -> None:
        for shape in asked:
            self.serial += 1
            name = data.draw(st.sampled_from(names))
            kind = replace(self.alike[name], priority=shape.priority) if self.alike else shape
            requests = tuple(zip(self.resources, kind.sizes, strict=False))
            pod_set = PodSet("main", kind.count, requests)
            self.enter(Workload(f"w{self.serial:03}", name, kind.priority, self.serial % 4, (pod_set,)))

    def enter(self, workload: Workload) -> None:
        self.waiting[workload.uid] = workload
        self.engine.apply(Submit(workload))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        self.leave(uid)

    def leave(self, uid: str) -> Workload:
        workload, _, _ = self.running.pop(uid)
        self.evicted.pop(uid, None)
        self.told.discard(uid)
        self.pods.pop(uid, None)
        self.engine.apply(SetPods(uid, ()))
        self.engine.apply(Release(uid))
        return workload

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def pods_come_and_go(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        count = self.running[uid][0].pod_sets[0].count
        born = sorted(data.draw(st.lists(st.integers(0, 5), max_size=count)))
        self.pods[uid] = tuple(map(float, born))
        self.tell_pods(self.engine, uid)

    def tell_pods(self, made: Engine, uid: str) -> None:
        made.apply(SetPods(uid, tuple((born, f"{uid}-{n}") for n, born in enumerate(self.pods.get(uid, ())))))

    @precondition(lambda self: self.waiting or self.promised)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.waiting.keys() | self.promised.keys())))
        self.waiting.pop(uid, None)
        self.promised.pop(uid, None)
        self.engine.apply(Withdraw(uid))
        self.keep_only_what_is_held()

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def time_is_up(self, data: st.DataObject) -> None:
        """A pending eviction starts: from now on the victim goes, whatever becomes of its preemptor."""
        uid = data.draw(st.sampled_from(sorted(self.told)))
        self.told.discard(uid)
        self.engine.apply(StartEviction(uid))

    @precondition(lambda self: self.engine.changed)
    @rule()
    def decide(self) -> None:
        self.cycle()

    @precondition(lambda self: self.now > 9)
    @rule(data=st.data())
    def change_a_quota(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.terms)))
        self.terms[name] = data.draw(terms(self.resources))
        self.engine.apply(Define((self.defined(name),)))
        self.keep_only_what_is_held()

    @precondition(lambda self: self.evicted)
    @rule(data=st.data())
    def spare(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.evicted)))
        del self.evicted[uid]
        self.told.discard(uid)
        self.engine.apply(CancelEviction(uid))
        self.keep_only_what_is_held()

    def keep_only_what_is_held(self) -> None:
        """A preemptor without its reservation waits again; its pending evictions are cancelled."""
        for uid in [uid for uid in self.promised if uid not in self.engine.ledger.pending_reservations]:
            self.waiting[uid], _ = self.promised.pop(uid)
        for uid in sorted(self.told):
            preemptor = self.engine.ledger.preemptor(uid)
            if preemptor is None:
                self.told.discard(uid)
                del self.evicted[uid]
            else:  # perhaps another one than before
                assert preemptor in self.engine.ledger.pending_reservations, f"{uid} goes for no preemptor"
                self.evicted[uid] = preemptor
        assert all(self.engine.ledger.evicting(uid) for uid in self.evicted)

    def cycle(self) -> Plan:
        """One cycle, and the same by an engine that has just learnt all of it."""
        self.now += 1
        promised = set(self.promised)
        before, told = self.planned(), set(self.told)
        expected = self.rebuilt().cycle(self.now)
        plan = self.engine.cycle(self.now)
        assert [w.uid for w, _ in plan.admissions] == [w.uid for w, _ in expected.admissions]
        assert preempting(plan) == preempting(expected), "parked ones would decide otherwise"
        assert plan.planned == expected.planned, "nothing else has a place"
        alone = not plan.admissions and len(plan.planned) == 1 and not plan.taken_over
        for workload, admission in plan.admissions:
            self.waiting.pop(workload.uid, None)
            self.promised.pop(workload.uid, None)
            self.running[workload.uid] = (workload, admission, self.now)
            self.keeps_the_limits(workload)
        for uid, admission in plan.planned.items():
            if uid in self.engine.ledger.pending_reservations:
                known = self.waiting.pop(uid) if uid in self.waiting else self.promised[uid][0]
                self.promised[uid] = (known, admission)
        for each in plan.reassigned:
            if each.victim in self.evicted:
                self.evicted[each.victim] = each.preemptor.uid
        for eviction in plan.evictions:
            uid = eviction.victim.holder
            self.evicted[uid] = eviction.preemptor.uid
            self.told.discard(uid)
            if eviction.grace:
                self.told.add(uid)
        self.keep_only_what_is_held()
        if alone and plan.evictions and promised < self.promised.keys() and told <= self.told:
            self.was_allowed(before, plan)
        return plan

    def keeps_the_limits(self, workload: Workload) -> None:
        """No admission passes the sum of all minimums, or makes an excess over it worse, or passes a max."""
        real = Elastic(self.terms, tuple(self.as_runs(uid) for uid in self.running))
        (who,) = [r for r in real.running if r.uid == workload.uid]
        assert real.without([who]).fits(who), f"{workload.uid} exceeds a limit"

    def was_allowed(self, before: Elastic, plan: Plan) -> None:
        (preemptor,) = set(preempting(plan).values())
        who = self.asking(self.promised[preemptor][0])
        by_uid = {each.uid: each for each in before.running}
        victims = [by_uid[eviction.victim.holder] for eviction in plan.evictions]
        own = [victim for victim in victims if victim.quota == who.quota]
        others = [victim for victim in victims if victim.quota != who.quota]
        assert all(victim.priority < who.priority for victim in own)
        for name in {victim.quota for victim in others}:
            assert {victim.uid for victim in others if victim.quota == name} <= before.over(name)
        ready = [victim.since + self.terms[victim.quota].runtime <= self.now for victim in victims]
        assert all(ready), "it has not run for long enough"
        left = before.without(own)
        if others:
            assert left.may_reclaim(who, others) or left.may_take_its_part(who, others, keep=False)

    @precondition(lambda self: self.waiting or self.promised)
    @rule()
    def settle(self) -> None:
        """Victims go and compete again: that ends, and none evicts one that has just evicted it."""
        happened: list[tuple[str, str]] = []
        for _ in range(60):
            happened += self.step()
            for victim, preemptor in happened:
                assert (preemptor, victim) not in happened, f"{victim} and {preemptor} evict each other"
            if not self.evicted and not self.promised:
                break
        else:
            raise AssertionError(f"they preempt each other for ever: {happened[-9:]}")
        count = len(self.running) + len(self.waiting)
        assert len(happened) <= 3 * count, "so many evictions are too many"
        self.nobody_waits_for_nothing()

    def step(self) -> list[tuple[str, str]]:
        found = list(preempting(self.cycle()).items())
        waited_for = set(self.evicted.values()) & self.promised.keys()
        for uid in sorted(self.evicted):
            self.enter(self.leave(uid))
        self.cycle()
        assert not waited_for & self.promised.keys(), "its victims are gone, and it is not admitted"
        return found

    def nobody_waits_for_nothing(self) -> None:
        """At rest no workload waits that fits, or for which a victim could go."""
        rest = self.planned()
        for workload in self.waiting.values():
            who = self.asking(workload)
            kept = any(rest.keeps(self.asking(other), who) for other in self.waiting.values())
            assert kept or not rest.fits(who), f"{who.uid} fits and waits"
            if self.alike and not kept and not self.engine.ledger.is_displaced(workload.uid):
                assert next(rest.sets(who), None) is None, f"{who.uid} waits, and could evict"
                assert next(rest.own_sets(who), None) is None, f"{who.uid} waits, and could evict its own"
        due = self.engine.due
        later = Elastic(self.terms, rest.running)
        if self.alike and due is None:
            waiting = list(self.waiting.values())
            free = [
                w
                for uid, w in self.waiting.items()
                if not self.engine.ledger.is_displaced(uid)
                and not any(later.keeps(self.asking(other), self.asking(w)) for other in waiting)
            ]
            assert all(next(later.sets(self.asking(w)), None) is None for w in free)

    @precondition(lambda self: self.engine.due is not None and not self.engine.changed)
    @rule()
    def time_passes(self) -> None:
        """Until a workload has run for long enough; before that nothing would be decided."""
        due = self.engine.due
        assert due is not None
        before = self.rebuilt().cycle(max(self.now, due - 0.5))
        assert not before.admissions
        assert not before.evictions
        self.now = max(self.now, due)
        self.cycle()

    def asking(self, workload: Workload) -> Runs:
        (pod_set,) = workload.pod_sets
        return Runs(
            workload.uid, workload.queue, workload.priority, pod_set.count, dict(pod_set.requests), self.now
        )

    def as_runs(self, uid: str) -> Runs:
        workload, _, since = self.running[uid]
        return replace(self.asking(workload), since=since, born=self.pods.get(uid, ()))

    def planned(self) -> Elastic:
        """The workloads that hold quota once evictions are over and promises kept."""
        stay = [self.as_runs(uid) for uid in self.running if uid not in self.evicted]
        coming = [self.asking(workload) for workload, _ in self.promised.values()]
        return Elastic(self.terms, (*stay, *coming), self.now)

    def rebuilt(self) -> Engine:
        """An engine that knows the same, but learnt it at once and in another order."""
        made = quotas(*(self.defined(name) for name in reversed(self.terms)))
        for uid, (workload, admission, since) in sorted(self.running.items(), reverse=True):
            assert admission.pool == POOL
            made.apply(Reserve(uid, admission, workload, since))
            self.tell_pods(made, uid)
        displacements = self.engine.ledger.displacements
        for victim, preemptor in self.evicted.items():
            if displacements.preemptor(victim) is None:  # its preemptor lost that place
                made.ledger.evict(victim, preemptor)
                made.ledger.displacements.end(victim)
        for uid, (workload, admission) in self.promised.items():
            for victim in displacements.victims(uid) or [""]:
                made.apply(Evict(victim, workload, admission, pending=victim in self.told))
        for victim, preemptor in self.evicted.items():
            if preemptor not in self.promised and displacements.preemptor(victim) is not None:
                made.ledger.evict(victim, preemptor)
        for victim, preemptor in self.engine.ledger.displacements:
            made.apply(Displace(victim, preemptor))
        for workload in sorted(self.waiting.values(), key=lambda w: w.uid, reverse=True):
            made.apply(Submit(workload))
        return made


def preempting(plan: Plan) -> dict[str, str]:
    return {eviction.victim.holder: eviction.preemptor.uid for eviction in plan.evictions}


TestQuotas = Quotas.TestCase
TestQuotas.settings = histories(20)

"""However definitions come, change and go, the live engine is one that has learnt only the last of them.

Cohorts may be their own ancestors here, queues come and go while they are in use, and whole subtrees move.
"""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from admitter.engine.commands import Define, Evict, Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Cohort, PreemptionPolicy, Queue, Reclaim, WithinQueue
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Node, Tree
from admitter.engine.tree_cycle import Plan
from tests.engine.builders import engine, flavor, pods, queue, use
from tests.engine.test_tree_properties import cpu, quotas, weights
from tests.scale import histories

FLAVORS = (flavor("a"), flavor("b"))
KEYS: tuple[FlavorResource, ...] = (("a", "cpu"), ("b", "cpu"))
QUEUES = ("q0", "q1", "q2", "q3")
COHORTS = ("c0", "c1", "c2", "c3")
POLICIES = (
    PreemptionPolicy(),
    PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY),
    PreemptionPolicy(reclaim=Reclaim.LOWER_PRIORITY, borrow=BorrowWithin.LOWER_PRIORITY),
    PreemptionPolicy(reclaim=Reclaim.ANY, borrow=BorrowWithin.GUARANTEED_SHARE),
)
above = st.sampled_from(["", *COHORTS])
limits = st.dictionaries(st.sampled_from(KEYS), quotas, max_size=2)
queues = st.builds(
    lambda name, cohort, quota, policy, most, shared: Queue(
        name,
        queue(name, {"cpu": {"a": "0", "b": "0"}}).strategy,
        queue(name, {"cpu": {"a": "0", "b": "0"}}).groups,
        quota,
        cohort,
        preemption=policy,
        limits={} if most is None else {"cpu": most},
        by_namespace=shared,
    ),
    st.sampled_from(QUEUES),
    above,
    limits,
    st.sampled_from(POLICIES),
    st.none() | cpu,
    st.booleans(),
)
cohorts = st.builds(Cohort, st.sampled_from(COHORTS), above, limits, weights, fair=st.booleans())
gone = st.lists(st.sampled_from(QUEUES), max_size=1)
gone_cohorts = st.lists(st.sampled_from(COHORTS), max_size=1)

State = dict[object, object]


def shape(tree: Tree) -> State:
    """All that a tree says."""
    nodes = [*(("queue", name) for name in QUEUES), *(("cohort", name) for name in COHORTS)]
    roots = sorted({tree.path(node)[-1] for node in nodes})
    found: State = {"parents": dict(tree.parents()), "apart": set(tree.apart)}
    for node in nodes:
        found["path", node] = tree.path(node)
        found["below", node] = tree.below(node)
        found["holders", node] = tree.holders(node) if node[0] == "cohort" else ()
        found["given", node] = dict(tree.given(node))
        found["cycle", node] = tree.cycle(node[1]) if node[0] == "cohort" else ()
    for root in roots:
        found["members", root] = tree.members(root)
        found["nodes", root] = sorted(tree.nodes(root))
        found["minimums", root] = [tree.minimums(root, key) for key in KEYS]
        found["to borrow", root] = [set(tree.preempting_to_borrow(root, policy)) for policy in BorrowWithin]
    return found


def figures(book: Book, tree: Tree) -> State:
    """All that a book says; a cell of zeros may be there or not."""
    found: State = {}
    nodes: list[Node] = [*tree.parents(), *(("queue", name) for name in QUEUES)]
    for node in nodes:
        for key, cell in sorted(book.cells(node).items()):
            parent = tree.parents().get(node)
            above = book.at(parent, key) if parent is not None else None
            assert cell.parent is above, f"{node} hangs below its parent"
            numbers = (cell.subtree_quota, cell.local_quota, cell.limit, cell.used, cell.total)
            if any(numbers):
                found[node, key] = numbers
    for name in QUEUES:
        found["used", name] = dict(book.used(name))
        for key in KEYS:
            together = book.cell(name, key).together
            found["together", name, key] = (together.limit, together.used) if together is not None else None
            found["free", name, key] = book.cell(name, key).available()
    for root in sorted({tree.root(name) for name in QUEUES}):
        for key in KEYS:
            found["borrowers", root, key] = set(book.borrowers(root, key))
            found["unused", root, key] = book.unused(root, key)
    return found


class Definitions(RuleBasedStateMachine):
    """Random definitions, some of them together, while there is work."""

    make: Callable[[], Engine] = Engine

    @initialize()
    def start(self) -> None:
        self.engine = engine(*FLAVORS, made=self.make())
        self.workloads: dict[str, Workload] = {}
        self.serial = 0
        self.now = 0.0

    @rule(
        queues=st.lists(queues, max_size=3, unique_by=lambda each: each.name),
        cohorts=st.lists(cohorts, max_size=3, unique_by=lambda each: each.name),
        gone=gone,
        gone_cohorts=gone_cohorts,
    )
    def define(
        self, queues: list[Queue], cohorts: list[Cohort], gone: list[str], gone_cohorts: list[str]
    ) -> None:
        names = {each.name for each in queues}
        cohort_names = {each.name for each in cohorts}
        gone = [name for name in gone if name not in names]
        gone_cohorts = [name for name in gone_cohorts if name not in cohort_names]
        self.engine.apply(Define(tuple(queues), tuple(cohorts), tuple(gone), tuple(gone_cohorts)))

    @rule(name=st.sampled_from(QUEUES), most=st.none() | cpu)
    def limit(self, name: str, most: int | None) -> None:
        """Only the limits of a queue change."""
        known = self.engine.tree.queues.get(name)
        if known is not None:
            self.engine.apply(Define((replace(known, limits={} if most is None else {"cpu": most}),)))

    @rule(name=st.sampled_from(QUEUES), cores=st.integers(1, 6), priority=st.integers(0, 2))
    def submit(self, name: str, cores: int, priority: int) -> None:
        self.serial += 1
        asked = (pods(cores, cpu="1"),)
        made = Workload(f"w{self.serial:03}", name, priority, self.serial, asked, f"n{self.serial % 2}")
        self.workloads[made.uid] = made
        self.engine.apply(Submit(made))

    @rule(name=st.sampled_from(QUEUES), flavor=st.sampled_from(["a", "b"]), cores=st.integers(1, 6))
    def reserve(self, name: str, flavor: str, cores: int) -> None:
        """Pods that outlived their workload use something, be there a queue or not."""
        self.serial += 1
        self.engine.apply(Reserve(f"pod{self.serial:03}", use(name, flavor, cpu=str(cores))))

    @precondition(lambda self: self.holders())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.engine.apply(Release(data.draw(st.sampled_from(self.holders()))))

    def holders(self) -> list[str]:
        ledger = self.engine.ledger
        return sorted(each.holder for name in QUEUES for each in ledger.reservations(name))

    @precondition(lambda self: self.engine.changed)
    @rule()
    def decide(self) -> None:
        """One cycle, and the same by an engine that has just learnt all of it."""
        self.now += 1
        expected = decisions(self.rebuilt().cycle(self.now))
        assert decisions(self.engine.cycle(self.now)) == expected

    @invariant()
    def nothing_is_left_of_what_was(self) -> None:
        fresh = self.rebuilt()
        assert shape(self.engine.tree) == shape(fresh.tree)
        for name in QUEUES:  # what is free depends on what is claimed, which follows from all else
            assert self.engine.claimed(name) == fresh.claimed(name), f"what {name} claims"
        books = (self.engine.ledger.real, self.engine.ledger.planned)
        for book, expected in zip(books, (fresh.ledger.real, fresh.ledger.planned), strict=True):
            assert figures(book, self.engine.tree) == figures(expected, fresh.tree)

    def rebuilt(self) -> Engine:
        """An engine that knows the same, but learnt it at once and in another order."""
        tree, ledger = self.engine.tree, self.engine.ledger
        made = engine(*FLAVORS)
        made.apply(Define(tuple(sorted(tree.queues.values(), key=lambda each: each.name, reverse=True))))
        made.apply(
            Define(cohorts=tuple(sorted(tree.cohorts.values(), key=lambda each: each.name, reverse=True)))
        )
        for name in reversed(QUEUES):
            for each in ledger.reservations(name):
                made.apply(Reserve(each.holder, each.admission, each.workload, each.since, each.namespace))
        for hold in ledger.pending_reservations.values():
            made.apply(Evict("", hold.workload, hold.admission))
        for holder in self.holders():
            preemptor = ledger.preemptor(holder)
            if preemptor is not None:
                made.ledger.evict(holder, preemptor)
        for name in QUEUES:
            for uid in self.engine.line(name):
                if uid not in ledger.pending_reservations:
                    made.apply(Submit(self.workloads[uid]))
        return made


def decisions(plan: Plan) -> State:
    """What a plan decides."""
    return {
        "admissions": [(workload.uid, admission) for workload, admission in plan.admissions],
        "evictions": {each.victim.holder: each.preemptor.uid for each in plan.evictions},
        "planned": plan.planned,
    }


TestDefinitions = Definitions.TestCase
TestDefinitions.settings = histories(18, 25)

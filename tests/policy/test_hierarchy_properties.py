"""What is always true of trees, while nodes, queues and Jobs come and go in any order."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from admitter.cache.node_views import NodeView
from admitter.engine.commands import Release, Submit
from admitter.engine.model import Workload
from admitter.names import ANY_NODE
from admitter.quotas.nodes import NodeCapacity
from tests.engine.builders import pods
from tests.policy.test_catalog import Cluster
from tests.quotas.test_hierarchy import resources
from tests.scale import histories

Json = dict[str, Any]

FLAVORS = ("a", "b")
COHORTS = {"root": [""], "left": ["root"], "right": ["root"], "deep": ["left", "right"]}
QUEUES = ("q0", "q1", "q2", "q3")
NODES = ("n0", "n1", "n2")
ADMITTED, PASSED = 200, 5
"""So much is checked at least: admissions, and cycles with a limit that was lowered below what is in use."""

amount = st.sampled_from((4, 9, 6, 2, 8, 1, 5, 3, 7, 0))  # the first ones are drawn more often
quota = st.builds(
    lambda least, more: {"min": least} | ({} if more is None else {"max": least + more}),
    amount,
    st.none() | amount,
)
listed = st.builds(lambda a, b: resources(cpu={"a": a, "b": b}), quota, quota)


@st.composite
def cohorts(draw: st.DrawFn, name: str) -> Json:
    if name == "root":
        most = st.builds(lambda a, b: resources(cpu={"a": {"max": a}, "b": {"max": b}}), amount, amount)
        return {"capacityFrom": "Nodes", "resources": draw(most)}
    return {"parent": draw(st.sampled_from(COHORTS[name])), "resources": draw(listed | st.just([]))}


@st.composite
def queues(draw: st.DrawFn) -> Json:
    return {
        "cohort": draw(st.sampled_from(sorted(COHORTS))),
        "resources": draw(listed | st.just([])),
        "limits": draw(st.just({}) | st.builds(lambda most: {"cpu": most}, amount)),
    }


class Trees(RuleBasedStateMachine):
    """Random events, and limits that are added up from what was written.

    Attributes:
        admitted: how many were admitted by all machines.
        passed: how many cycles began with a limit that was passed.
    """

    admitted = passed = 0

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.cluster, self.written = Cluster(), dict[tuple[str, str], Json]()
        self.nodes: dict[str, tuple[int, str, bool]] = {}
        self.uses: dict[str, tuple[str, Counter[str]]] = {}
        self.serial, self.news = 0, False
        for name in FLAVORS:
            self.cluster.write("flavor", name, {"nodeLabels": {"kind": name}})
            self.join(f"stays-{name}", name, 9, schedulable=True)
        for name in COHORTS:
            self.write("cohort", name, data.draw(cohorts(name)))
        for name in QUEUES:
            self.write("queue", name, data.draw(queues()))

    def write(self, kind: str, name: str, spec: Json) -> None:
        self.written[kind, name] = spec
        self.cluster.write(kind, name, spec)

    @rule(data=st.data(), name=st.sampled_from(sorted(COHORTS)))
    def edit_a_cohort(self, data: st.DataObject, name: str) -> None:
        self.write("cohort", name, data.draw(cohorts(name)))

    @rule(data=st.data(), name=st.sampled_from(QUEUES))
    def edit_a_queue(self, data: st.DataObject, name: str) -> None:
        self.write("queue", name, data.draw(queues()))

    @rule(
        name=st.sampled_from(NODES),
        kind=st.sampled_from((*FLAVORS, *FLAVORS, "other")),
        cpu=st.integers(1, 9),
        schedulable=st.booleans(),
    )
    def join(self, name: str, kind: str, cpu: int, *, schedulable: bool) -> None:
        self.cluster.serial += 1
        node = NodeCapacity({"kind": kind}, (), schedulable, {"cpu": cpu * 1000})
        known = self.cluster.world.nodes.get(("", name))
        uid = known.uid if known is not None else str(self.cluster.serial)
        self.cluster.world.nodes.apply(NodeView("", name, uid, self.cluster.serial, node))
        self.nodes[name] = (cpu, kind, schedulable)
        self.cluster.catalog.nodes_changed()

    @precondition(lambda self: self.nodes.keys() & set(NODES))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes.keys() & set(NODES))))
        del self.nodes[name]
        view = self.cluster.world.nodes.get(("", name))
        assert view is not None
        self.cluster.world.nodes.delete(view.key, view.uid)
        self.cluster.catalog.nodes_changed()

    @rule(
        name=st.sampled_from(QUEUES),
        counts=st.lists(st.sampled_from((1, 1, 2, 3, 5)), min_size=3, max_size=6),
    )
    def submit(self, name: str, counts: list[int]) -> None:
        for count in counts:
            self.serial += 1
            made = Workload(f"w{self.serial:03}", name, 0, self.serial, (pods(count, cpu="1"),))
            self.cluster.engine.apply(Submit(made))
        self.news = True

    @precondition(lambda self: self.uses)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.uses)))
        del self.uses[uid]
        self.cluster.engine.apply(Release(uid))
        self.news = True

    @precondition(lambda self: self.news)
    @rule()
    def decide(self) -> None:
        self.news = False
        self.cluster.refresh()
        before = dict(self.excesses())
        plan = self.cluster.engine.cycle(self.serial)
        flavors: set[str] = set()
        for workload, admission in plan.admissions:
            use = Counter({flavor: used // 1000 for (flavor, _), used in admission.usage})
            self.uses[workload.uid] = (workload.queue, use)
            flavors.update(use)
        Trees.admitted += len(plan.admissions)
        Trees.passed += any(before.values())
        for limit, excess in self.excesses():
            assert excess <= before[limit], "no admission makes an excess larger"
            assert not excess or limit[0] != "limits" or limit[1] not in {w.queue for w, _ in plan.admissions}
        for flavor in flavors:
            there = sum(cpu for cpu, kind, can in self.nodes.values() if can and flavor in {kind, ANY_NODE})
            assert self.used("root")[flavor] <= there, "no admission where more is in use than there is"

    def above(self, queue: str) -> list[str]:
        way, name = [], self.written["queue", queue]["cohort"]
        while name:
            way.append(name)
            name = self.written["cohort", name].get("parent", "")
        return way

    def used(self, cohort: str) -> Counter[str]:
        below: Counter[str] = Counter()
        for queue, use in self.uses.values():
            if cohort in self.above(queue):
                below += use
        return below

    def in_queue(self, name: str) -> Counter[str]:
        return sum((use for queue, use in self.uses.values() if queue == name), Counter[str]())

    def excesses(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """By how much each limit that is written is passed."""
        for (kind, name), spec in self.written.items():
            use = self.used(name) if kind == "cohort" else self.in_queue(name)
            for flavor in (f for r in spec.get("resources", ()) for f in r["flavors"]):
                most = flavor["quota"].get("max")
                if most is not None:
                    yield (kind, name, flavor["name"]), max(0, use[flavor["name"]] - most)
            if "cpu" in spec.get("limits", {}):
                yield ("limits", name, ""), max(0, use.total() - spec["limits"]["cpu"])

    @invariant()
    def counts_agree(self) -> None:
        """What the engine has in use is what was admitted and has not ended."""
        for name in QUEUES:
            used = {f: amount // 1000 for (f, _), amount in self.cluster.engine.ledger.used(name).items()}
            assert used == dict(self.in_queue(name))


@pytest.mark.long
def test_trees() -> None:
    run_state_machine_as_test(
        Trees,
        settings=settings(
            histories(140, 40),
            suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
    assert Trees.admitted >= ADMITTED
    assert Trees.passed >= PASSED

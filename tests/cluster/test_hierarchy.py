"""Trees of queues on a real API server, and a root that follows the nodes."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from admitter.sandbox.nodes import SIMULATED_ANNOTATION
from tests.cluster.objects import ADMITTER, DELETE_IN_USE, Json, job, local_queue, resource_flavor
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.quotas.test_hierarchy import resources

pytestmark = pytest.mark.cluster


class Nodes:
    """Nodes of the test's own: a taint keeps everybody else's pods away."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.flavor = team.flavor("own")
        key = {"key": "team", "value": team.namespace, "effect": "NoSchedule"}
        spec = {"nodeLabels": {"team": team.namespace}, "nodeTaints": [key]}
        tolerations = [{"key": "team", "operator": "Equal", "value": team.namespace}]
        team.apply(resource_flavor(self.flavor, {**spec, "tolerations": tolerations}))
        self._taint = key

    def name(self, short: str) -> str:
        return f"{self.team.namespace}-{short}"

    def join(self, short: str, cpu: int) -> datetime:
        """A simulated node; returns when it was made."""
        metadata = {
            "name": self.name(short),
            "labels": {"team": self.team.namespace},
            "annotations": {SIMULATED_ANNOTATION: "fake"},
        }
        status = {"capacity": {"cpu": str(cpu), "memory": "8Gi", "pods": "50"}}
        spec = {"taints": [self._taint]}
        kind = {"apiVersion": "v1", "kind": "Node"}
        self.team.apply({**kind, "metadata": metadata, "spec": spec, "status": status})
        made = self.team.read("node", self.name(short))["metadata"]["creationTimestamp"]
        return datetime.fromisoformat(made)

    def cordon(self, short: str, *, cordoned: bool = True) -> None:
        self.team.patch("node", self.name(short), {"spec": {"unschedulable": cordoned}})

    def leave(self, short: str) -> None:
        self.team.kubectl("delete", "node", self.name(short))


@pytest.fixture
def nodes(team: Team) -> Iterator[Nodes]:
    made = Nodes(team)
    yield made
    team.kubectl("delete", "jobs", "--all")


def cohort(team: Team, name: str, parent: str = "", **spec: Any) -> None:
    above = {"parent": f"{team.namespace}-{parent}"} if parent else {}
    metadata = {"name": f"{team.namespace}-{name}", "annotations": {**DELETE_IN_USE}}
    team.apply({"apiVersion": ADMITTER, "kind": "Cohort", "metadata": metadata, "spec": {**above, **spec}})


def queue(team: Team, name: str, parent: str, **spec: Any) -> None:
    """A ClusterQueue for the team, and its LocalQueue with the short name."""
    full = f"{team.namespace}-{name}"
    selector = {"matchLabels": {"team": team.namespace}}
    spec = {"cohort": f"{team.namespace}-{parent}", "namespaceSelector": selector, **spec}
    made = {"apiVersion": ADMITTER, "kind": "ClusterQueue", "spec": spec}
    made["metadata"] = {"name": full, "annotations": {**DELETE_IN_USE}}
    team.apply(made, local_queue(team.namespace, full, name))


def cpus(nodes: Nodes, **quota: Any) -> list[Json]:
    return resources(cpu={nodes.flavor: quota})


def asks(team: Team, queue: str, count: int) -> None:
    team.apply(*(job(team.namespace, f"{queue}-{n}", seconds=None, queue=queue) for n in range(count)))


def admitted(team: Team) -> Counter[str]:
    """How many Workloads of each LocalQueue hold quota."""
    items = team.workloads().values()
    return Counter(w["spec"]["queueName"] for w in items if w.get("status", {}).get("state") == "Admitted")


def shows(team: Team, kind: str, name: str, expected: dict[str, str]) -> Callable[[], bool]:
    """Whether the status of a Cohort or ClusterQueue has these numbers of CPUs."""

    def found() -> bool:
        flavors = team.read(kind, f"{team.namespace}-{name}").get("status", {}).get("flavors", [])
        cpu = [r for flavor in flavors for r in flavor["resources"] if r["name"] == "cpu"]
        return bool(cpu) and {key: cpu[0].get(key) for key in expected} == expected

    return found


def test_a_parent_bounds_its_children_and_the_root_follows_the_nodes(team: Team, nodes: Nodes) -> None:
    """The hierarchy of docs/hierarchy.md with a hundredth of its figures."""
    nodes.join("one", 10)
    nodes.join("two", 10)
    cohort(team, "root", capacityFrom="Nodes", resources=cpus(nodes))
    cohort(team, "parent", "root", resources=cpus(nodes, max=9))
    queue(team, "child1", "parent")
    queue(team, "child2", "parent", resources=cpus(nodes, max="7500m"))
    queue(team, "child3", "parent", resources=cpus(nodes, max=11))
    asks(team, "child2", 9)
    eventually(lambda: admitted(team) == {"child2": 7}, what="what child2 may have at most")
    asks(team, "child1", 4)
    eventually(lambda: admitted(team) == {"child1": 2, "child2": 7}, what="what the parent has left")
    eventually(
        lambda: Counter(team.reason(f"child1-{number}") for number in range(4))["InsufficientQuota"] == 2,
        what="the rest to be told why they wait",
    )
    eventually(shows(team, "cohort", "root", {"total": "20", "used": "9"}), what="the status of the root")
    eventually(shows(team, "cohort", "parent", {"used": "9", "borrowed": "9"}), what="that of the parent")
    eventually(shows(team, "cq", "child1", {"used": "2"}), what="that of a queue that inherits")
    parent, third = f"{team.namespace}-parent", f"{team.namespace}-child3"
    eventually(lambda: team.active("cq", third).get("reason") == "ExceedsParent", what="the contradiction")
    assert team.active("cq", third)["status"] == "False"
    assert team.active("cq", third)["message"] == (
        f"the max of ClusterQueue {third} for cpu of {nodes.flavor} is 11, more than the max 9 of Cohort "
        f"{parent}, which counts"
    )
    eventually(lambda: team.active("lq", "child3").get("status") == "True", what="its LocalQueue to work")
    asks(team, "child3", 1)
    team.kubectl("delete", "job", "child2-0", "child2-1", "child2-2", "child2-3", "child2-4", "child2-5")
    eventually(lambda: admitted(team)["child3"] == 1, what="a child over its parent to work")
    cohort(team, "parent", "root", resources=cpus(nodes, max=12))
    eventually(lambda: team.active("cq", third).get("status") == "True", what="it to be no contradiction now")


def delay(team: Team, name: str, since: datetime) -> float:
    """How many seconds after a moment a Job was admitted; both are whole seconds."""
    return (
        datetime.fromisoformat(team.condition(name, "Admitted")["lastTransitionTime"]) - since
    ).total_seconds()


def test_nodes_that_join_leave_and_are_cordoned_count_at_once(team: Team, nodes: Nodes) -> None:
    nodes.join("one", 2)
    cohort(team, "root", capacityFrom="Nodes", resources=cpus(nodes))
    queue(team, "q", "root")
    kills = team.controller.kills
    asks(team, "q", 5)
    eventually(lambda: admitted(team) == {"q": 2}, what="what one node has")
    joined = nodes.join("two", 1)
    eventually(lambda: admitted(team) == {"q": 3}, what="what has joined to be used")
    newest = next(n for n in (f"q-{number}" for number in range(5)) if delayed(team, n, joined) >= 0)
    assert delayed(team, newest, joined) <= team.controller.soon(kills)
    nodes.leave("two")
    eventually(shows(team, "cohort", "root", {"total": "2", "used": "3"}), what="the node to be gone")
    nodes.cordon("one")
    eventually(shows(team, "cohort", "root", {"total": "0", "used": "3"}), what="the node to be cordoned")
    nodes.join("three", 3)
    eventually(shows(team, "cohort", "root", {"total": "3", "used": "3"}), what="another in its place")
    nodes.cordon("one", cordoned=False)
    eventually(lambda: admitted(team) == {"q": 5}, what="all to run")


def delayed(team: Team, name: str, since: datetime) -> float:
    return delay(team, name, since) if team.state(name) == "Admitted" else -1.0


def test_when_nodes_go_workloads_wait_or_are_evicted(team: Team, nodes: Nodes) -> None:
    nodes.join("one", 2)
    nodes.join("two", 2)
    cohort(team, "root", capacityFrom="Nodes", resources=cpus(nodes))
    queue(team, "own", "root", resources=cpus(nodes, min=1))
    queue(team, "borrows", "root")
    asks(team, "own", 1)
    asks(team, "borrows", 3)
    eventually(lambda: admitted(team) == {"own": 1, "borrows": 3}, what="all to run")
    nodes.cordon("two")
    eventually(shows(team, "cohort", "root", {"total": "2", "used": "4"}), what="too little to be seen")
    team.apply(job(team.namespace, "late", seconds=None, queue="own"))
    eventually(lambda: team.reason("late") == "InsufficientQuota", what="a newcomer to wait")
    assert admitted(team) == {"own": 1, "borrows": 3}, "with Wait no Workload is evicted"
    evicts = {"onShrink": "Evict", "evictAfter": "1s"}
    cohort(team, "root", capacityFrom="Nodes", resources=cpus(nodes), **evicts)
    eventually(lambda: admitted(team) == {"own": 1, "borrows": 1}, what="two that borrow to go")
    gone = [name for name in ("borrows-0", "borrows-1", "borrows-2") if team.state(name) != "Admitted"]
    for name in gone:
        eventually(
            lambda name=name: team.state(name) == "Pending",  # type: ignore[misc]
            what=f"{name} to have ended",
        )
        evicted = team.condition(name, "Evicted")
        assert (evicted["status"], evicted["reason"]) == ("True", "CapacityShrunk")
        assert evicted["message"] == f"Cohort {team.namespace}-root has less than is in use below it"
    eventually(shows(team, "cohort", "root", {"total": "2", "used": "2"}), what="it to be enough again")
    nodes.cordon("two", cordoned=False)
    eventually(lambda: admitted(team).total() == 4, what="as many to run as before")

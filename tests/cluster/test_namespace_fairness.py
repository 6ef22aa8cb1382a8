"""Namespaces that share queues: the first table, weights that are followed, turns by preemption.

Source: docs/namespace-fairness.md.
"""

from collections import Counter
from typing import Any

import pytest

from tests.cluster.objects import job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

SHARED = {"namespaceOrdering": "WeightedShare"}


def namespaces(team: Team, *names: str, queue: str) -> None:
    """Make namespaces of the team, each with a LocalQueue `main` to one of its ClusterQueues."""
    for name in names:
        full = f"{team.namespace}-{name}"
        metadata = {"name": full, "labels": {"team": team.namespace}}
        team.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        team.apply(local_queue(full, f"{team.namespace}-{queue}"))


def submit(team: Team, name: str, count: int, prefix: str = "job") -> None:
    team.apply(*(job(f"{team.namespace}-{name}", f"{prefix}-{n}", seconds=None) for n in range(count)))


def states(team: Team, name: str) -> Counter[str]:
    found = team.cluster.read("workloads.admitter.dev", f"--namespace={team.namespace}-{name}")["items"]
    return Counter(w.get("status", {}).get("state", "") for w in found)


def admitted(team: Team, *names: str) -> dict[str, int]:
    return {name: states(team, name)["Admitted"] for name in names}


def await_shares(team: Team, expected: dict[str, int], what: str) -> None:
    eventually(lambda: admitted(team, *expected) == expected, what=what)


def weighs(team: Team, name: str, hard: dict[str, Any]) -> None:
    metadata = {"name": "weight", "namespace": f"{team.namespace}-{name}"}
    team.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})


def test_two_queues_of_eight_cpus_each_shared_by_two_namespaces(team: Team) -> None:
    """Each namespace comes once the ones before it have their parts.

    If all come at once, a queue may evict more of one namespace than of another. What was evicted then takes
    nothing from another namespace until something ends (docs/design/preemption.md).
    """
    team.cohort("all", cpu="16", fairSharing={"enabled": True})
    preempts = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    team.shares(("q1", "0"), ("q2", "0"), preemption=preempts, **SHARED)
    namespaces(team, "ns1", "ns2", queue="q1")
    namespaces(team, "ns3", "ns4", queue="q2")
    steps = [
        ("ns2", 10, {"ns2": 10}),
        ("ns3", 10, {"ns2": 8, "ns3": 8}),
        ("ns1", 5, {"ns1": 4, "ns2": 4, "ns3": 8}),
        ("ns4", 2, {"ns1": 4, "ns2": 4, "ns3": 6, "ns4": 2}),
    ]
    for name, count, expected in steps:
        submit(team, name, count)
        await_shares(team, expected, f"the shares with {name}")


def test_weights_are_followed_and_the_namespace_with_less_takes_its_part(team: Team) -> None:
    team.shares(("q", "4"), preemption={"withinClusterQueue": "LowerPriority"}, **SHARED)
    namespaces(team, "ns1", "ns2", queue="q")
    submit(team, "ns2", 4)
    eventually(lambda: admitted(team, "ns2") == {"ns2": 4}, what="the first to have all")
    submit(team, "ns1", 4)
    expected = {"ns1": 2, "ns2": 2}
    eventually(lambda: admitted(team, "ns1", "ns2") == expected, what="both to have the same")
    weighs(team, "ns1", {"volcano.sh/namespace.weight": "3", "admitter.dev/namespace.weight": "2"})
    expected = {"ns1": 3, "ns2": 1}
    eventually(lambda: admitted(team, "ns1", "ns2") == expected, what="three to one, as the weights")


def test_priority_decides_only_within_a_namespace(team: Team) -> None:
    team.shares(("q", "2"), **SHARED)
    namespaces(team, "ns1", "ns2", queue="q")
    submit(team, "ns1", 1, "first")
    eventually(lambda: admitted(team, "ns1") == {"ns1": 1}, what="the first to run")
    team.patch("clusterqueue", f"{team.namespace}-q", {"spec": {"stopPolicy": "Hold"}})
    urgent = {"priorityClassName": team.priority_class("urgent", 1000)}
    team.apply(job(f"{team.namespace}-ns1", "next", seconds=None, pod=urgent))
    team.apply(job(f"{team.namespace}-ns2", "next", seconds=None))
    waiting = Counter({"ClusterQueueStopped": 2})

    def reasons() -> Counter[str]:
        spaces = [f"--namespace={team.namespace}-{name}" for name in ("ns1", "ns2")]
        found = [w for space in spaces for w in team.cluster.read("workloads.admitter.dev", space)["items"]]
        return Counter(w.get("status", {}).get("reason") for w in found if w.get("status", {}).get("reason"))

    eventually(lambda: reasons() == waiting, what="both to wait")
    team.patch("clusterqueue", f"{team.namespace}-q", {"spec": {"stopPolicy": "None"}})
    expected = {"ns1": 1, "ns2": 1}
    eventually(lambda: admitted(team, "ns1", "ns2") == expected, what="the other namespace to go first")

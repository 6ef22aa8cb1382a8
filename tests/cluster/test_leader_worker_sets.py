"""LeaderWorkerSets that name a queue, made by their own operator: each replica is a group."""

import json
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.auditor import Auditor
from tests.cluster.described import leader_worker_set
from tests.cluster.objects import Json, local_queue
from tests.cluster.people import Person
from tests.cluster.pods import GATE, GROUP, QUEUE, SIZE, gates
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MAKES = {"apiGroups": ["leaderworkerset.x-k8s.io"], "resources": ["leaderworkersets"], "verbs": ["*"]}


def pods(cluster: Cluster, namespace: str) -> list[Json]:
    found: dict[str, Any] = cluster.read("pods", f"--namespace={namespace}")
    return list(found["items"])


def groups(found: list[Json]) -> dict[str, set[str]]:
    """The names of pods by their group."""
    names: dict[str, set[str]] = {}
    for pod in found:
        names.setdefault(pod["metadata"]["labels"][GROUP], set()).add(pod["metadata"]["name"])
    return names


@pytest.mark.parametrize("leader", [False, True], ids=["one template", "a template for the leader"])
def test_pods_of_a_replica_are_gated_as_one_group(
    leader_worker_sets: Cluster, namespace: str, leader: bool
) -> None:
    queue = json.dumps(local_queue(namespace, "any"))
    leader_worker_sets.run_kubectl("create", "--filename=-", content=queue)
    bob = Person(leader_worker_sets, namespace, "bob").may(MAKES).submits_to("main")
    made = leader_worker_set(namespace, "serve")
    if leader:
        template = made["spec"]["leaderWorkerTemplate"]
        template["leaderTemplate"] = template["workerTemplate"]
    bob.makes(made)

    eventually(lambda: len(pods(leader_worker_sets, namespace)) == 6, what="its pods")
    found = pods(leader_worker_sets, namespace)
    assert groups(found) == {
        "serve-0": {"serve-0", "serve-0-1", "serve-0-2"},
        "serve-1": {"serve-1", "serve-1-1", "serve-1-2"},
    }
    for pod in found:
        assert gates(pod) == [GATE]
        assert (pod["metadata"]["labels"][QUEUE], pod["metadata"]["annotations"][SIZE]) == ("main", "3")


@pytest.mark.usefixtures("leader_worker_sets")
def test_a_replica_runs_as_a_whole_and_the_next_one_waits(team: Team) -> None:
    def running() -> set[str]:
        return {p["metadata"]["name"] for p in pods(team.cluster, team.namespace) if not gates(p)}

    def scales(replicas: int) -> None:
        team.patch("leaderworkerset", "serve", {"spec": {"replicas": replicas}})

    team.offers({"cpu": {"on-demand": "5"}})
    team.apply(leader_worker_set(team.namespace, "serve"))
    eventually(lambda: len(pods(team.cluster, team.namespace)) == 6, what="all of its pods")
    eventually(lambda: team.states() == {"Admitted": 1, "Pending": 1}, what="one replica that is admitted")
    eventually(lambda: len(running()) == 3, what="the pods of a replica")
    assert len(groups([p for p in pods(team.cluster, team.namespace) if not gates(p)])) == 1

    team.offers({"cpu": {"on-demand": "6"}})
    eventually(lambda: len(running()) == 6, what="the pods of both")
    scales(0)
    eventually(lambda: not pods(team.cluster, team.namespace), what="no pod")
    eventually(lambda: not team.states()["Admitted"], what="quota that is free")
    scales(1)
    eventually(lambda: running() == {"serve-0", "serve-0-1", "serve-0-2"}, what="a replica again")


@pytest.mark.usefixtures("leader_worker_sets")
def test_a_replica_beyond_those_that_there_are_asks_for_quota_in_a_rollout_and_frees_it(team: Team) -> None:
    def running(**annotations: str) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in pods(team.cluster, team.namespace)
            if each.get("status", {}).get("phase") == "Running"
            and annotations.items() <= each["metadata"].get("annotations", {}).items()
        }

    both = {f"serve-{n}{worker}" for n in (0, 1) for worker in ("", "-1")}
    surge = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}
    team.offers({"cpu": {"on-demand": "4"}})
    limits = {(team.flavor("on-demand"), "cpu"): 6.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(leader_worker_set(team.namespace, "serve", size=2, rolloutStrategy=surge))
        eventually(lambda: running() == both, what="both replicas to run")
        template = {"metadata": {"annotations": {"turn": "second"}}}
        team.patch(
            "leaderworkerset", "serve", {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
        )
        eventually(lambda: team.states() == {"Admitted": 2, "Pending": 1}, what="a third one to wait")
        assert running() == both
        team.offers({"cpu": {"on-demand": "6"}})
        eventually(lambda: running() == running(turn="second") == both, what="the rollout")
        eventually(lambda: team.states() == {"Admitted": 2}, what="the third one to be gone")
    assert auditor.excesses == []

"""JobSets that are not ready in time, and those in stages, with pods that are made late by design."""

from itertools import pairwise

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.described import job_set
from tests.cluster.objects import TOLERATES_SPOT, Json
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

RULES: Json = {"readyTimeout": "20s", "backoff": {"base": "1h", "max": "1h"}}


def stage(name: str, seconds: int, **more: str) -> Json:
    """A part of a JobSet with one pod that runs for some seconds; `more` are annotations of the pod."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    annotations = {"admitter.dev/simulated-runtime": str(seconds), **more}
    pod = {"restartPolicy": "OnFailure", "tolerations": TOLERATES_SPOT, "containers": [container]}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {"name": name, "replicas": 1, "template": {"spec": {"backoffLimit": 0, "template": template}}}


def staged(team: Team, name: str, *parts: Json) -> None:
    """A JobSet of which each part begins when the one before it has ended."""
    made = job_set(team.namespace, name)
    for before, part in pairwise(parts):
        part["dependsOn"] = [{"name": before["name"], "status": "Complete"}]
    made["spec"]["replicatedJobs"] = list(parts)
    team.apply(made)


def ended(team: Team, name: str) -> dict[str, str]:
    return {"state": team.state(name), "why": str(team.condition(name, "Evicted").get("message", ""))}


def test_a_jobset_in_stages_is_not_late_though_most_of_its_pods_come_after_the_deadline(
    described: Cluster, team: Team
) -> None:
    assert described is team.cluster
    team.offers({"cpu": {"on-demand": "2"}}, lifecycle=RULES)
    staged(team, "stages", stage("prepare", 40), stage("train", 5))
    eventually(
        lambda: team.state("stages") == "Finished" or team.condition("stages", "Evicted"),
        what="the end of both stages",
    )
    assert ended(team, "stages") == {"state": "Finished", "why": ""}
    assert "readyAt" in team.workload("stages")["status"]["readiness"]


def test_a_jobset_with_a_stage_that_never_gets_ready_is_evicted(described: Cluster, team: Team) -> None:
    assert described is team.cluster
    team.offers({"cpu": {"on-demand": "2"}}, lifecycle=RULES)
    trouble = {"admitter.dev/simulated-trouble": "image"}
    staged(team, "broken", stage("prepare", 1), stage("train", 5, **trouble))
    eventually(
        lambda: team.reason("broken") == "PodsNotReady" and team.state("broken") == "Pending",
        what="its eviction for the second stage",
    )
    assert "1 of 1 pods can't pull its image" in ended(team, "broken")["why"]
    staged(team, "next", stage("only", 1))
    eventually(lambda: team.state("next") == "Finished", what="its quota to be used again")

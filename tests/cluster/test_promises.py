"""Places that are promised while others end: a controller that starts keeps those, and no other."""

import pytest

from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.test_eviction import let_go, slow_to_end
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

LOWER = {"withinClusterQueue": "LowerPriority"}


def place(team: Team, name: str) -> Json:
    found: Json = team.workload(name).get("status", {}).get("place", {})
    return found


def test_a_place_that_was_taken_and_lost_again_is_not_promised_by_a_restart(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}}, preemption=LOWER)
    low, high = team.priority_class("low", -10), team.priority_class("high", 10)
    team.apply(job(team.namespace, "v", seconds=None, pod={"priorityClassName": low}))
    team.runs("v")
    team.apply(job(team.namespace, "p", seconds=None))
    team.runs("p")
    assert "admission" not in place(team, "p"), "it has taken its place"
    assert team.workload("v")["status"]["preemption"]["generation"] == place(team, "p")["generation"] == 1
    team.apply(job(team.namespace, "h1", seconds=None, pod={"priorityClassName": high}))
    team.runs("h1")
    team.apply(job(team.namespace, "h2", seconds=None, pod={"priorityClassName": high}))
    eventually(lambda: team.reason("h2") == "InsufficientQuota", what="h2 to wait")
    team.controller.kill()
    team.kubectl("delete", "job", "h1")
    team.runs("h2")
    assert team.state("p") == team.state("v") == "Pending"
    assert team.condition("p", "Preempted")["status"] == "True", "it has not been admitted since"
    assert team.condition("h2", "Evicted") == {}


def test_a_place_that_is_promised_still_is_kept_across_a_restart(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}}, preemption=LOWER)
    team.apply(slow_to_end(job(team.namespace, "v", seconds=None)))
    team.runs("v")
    urgent = {"priorityClassName": team.priority_class("urgent", 1000)}
    team.apply(job(team.namespace, "p", seconds=None, pod=urgent))
    eventually(lambda: team.reason("p") == "Preempting", what="v to be evicted")
    eventually(lambda: "admission" in place(team, "p"), what="the place to be written")
    before = place(team, "p")
    team.controller.restart()
    team.apply(job(team.namespace, "later", seconds=None))
    eventually(lambda: team.reason("later") != "", what="the new controller to decide")
    assert place(team, "p") == before
    let_go(team, "v")
    team.runs("p")
    assert "admission" not in place(team, "p")
    assert team.state("later") == "Pending"

"""Places that are promised while others end: a controller that starts keeps those, and no other."""

from functools import partial

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


def makes_room(team: Team, victim: str, name: str) -> bool:
    """Whether a Job's Workload says that it was evicted for that of another one."""
    uid = team.workload(name).get("metadata", {}).get("uid")
    return bool(uid) and team.workload(victim)["status"].get("preemption", {}).get("uid") == uid


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


def test_a_victim_is_told_for_which_workload_it_makes_room_now(team: Team) -> None:
    """A more important Job takes over a place that is being made; the victim's status follows."""
    team.offers({"cpu": {"on-demand": "1"}}, preemption=LOWER)
    team.apply(slow_to_end(job(team.namespace, "v", seconds=None)))
    team.runs("v")
    for name, priority in (("p", 1000), ("h", 2000)):
        urgent = {"priorityClassName": team.priority_class(name, priority)}
        team.apply(job(team.namespace, name, seconds=None, pod=urgent))
        eventually(partial(makes_room, team, "v", name), what=f"v to make room for {name}")
    eventually(lambda: "generation" in place(team, "h"), what="the place of h to be written")
    assert team.workload("v")["status"]["preemption"]["generation"] == place(team, "h")["generation"] == 1
    eventually(lambda: "admission" not in place(team, "p"), what="the place of p to be given up")
    let_go(team, "v")
    team.runs("h")
    assert team.state("p") == team.state("v") == "Pending"


def test_what_was_evicted_may_evict_again_once_something_near_it_ends(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "3"}}, preemption=LOWER)
    urgent = {"priorityClassName": team.priority_class("urgent", 1000)}
    top = {"priorityClassName": team.priority_class("top", 2000)}
    team.apply(job(team.namespace, "v", seconds=None, pods=2))
    team.apply(job(team.namespace, "x", seconds=None, pod=top))
    team.runs("v", pods=2)
    team.runs("x")
    team.apply(job(team.namespace, "h", seconds=None, pods=2, pod=urgent))
    team.runs("h", pods=2)
    assert makes_room(team, "v", "h")
    while not restored_by_an_end(team, "v", "x"):
        team.apply(job(team.namespace, "x", seconds=None, pod=top))
        team.runs("x")
    assert team.state("v") == "Pending", "1 of the 2 that it needs is free"


def restored_by_an_end(team: Team, evicted: str, running: str) -> bool:
    """Whether the end of a Job lets an evicted one evict again, as it must.

    False: the controller was killed meanwhile. What ends unseen restores none; the next end does.
    """
    kills = team.controller.kills

    def restored() -> bool:
        return "preemption" not in team.workload(evicted)["status"]

    team.kubectl("delete", "job", running)
    eventually(lambda: restored() or team.controller.kills != kills, what=f"{evicted} to be restored")
    return restored()

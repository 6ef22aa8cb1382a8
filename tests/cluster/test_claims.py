"""What an owner waits for is not borrowed again: a controller that starts in between keeps to that too."""

import pytest

from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.test_insight import ask
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def test_what_ends_is_kept_for_the_owner_that_waits(team: Team) -> None:
    team.shares(("a", "1"), ("b", "2"))
    for number in range(3):
        team.apply(job(team.namespace, f"early-{number}", seconds=None, queue="a"))
        team.runs(f"early-{number}")
    team.apply(job(team.namespace, "owner", pods=2, seconds=None, queue="b"))
    eventually(lambda: team.reason("owner") == "InsufficientQuota", what="the owner to wait")
    team.apply(job(team.namespace, "late-0", seconds=None, queue="a"))
    team.kubectl("delete", "job", "early-0")
    eventually(lambda: not team.pods("early-0"), what="the end of what was borrowed")
    team.controller.restart()
    team.apply(job(team.namespace, "late-1", seconds=None, queue="a"))
    eventually(lambda: team.reason("late-0") and team.reason("late-1"), what="the new controller to decide")
    assert team.state("late-0") == team.state("late-1") == "Pending"
    said = ask(team, "explain", "late-1", f"--namespace={team.namespace}")
    assert f"1 cpu are kept for {team.namespace}/owner, as ClusterQueue {team.namespace}-b owns them" in said
    team.kubectl("delete", "job", "early-1")
    team.runs("owner", pods=2)
    assert team.state("late-0") == team.state("late-1") == "Pending"

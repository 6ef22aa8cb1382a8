"""Many Jobs through one queue, while the controller is killed again and again."""

from functools import partial
from random import Random

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.kills import end_under_kills, none_lost_none_twice
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.scale import scaled

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

JOBS = scaled(60, 200)


def complete(team: Team) -> int:
    """How many Jobs are."""
    jobs = team.read("jobs")["items"]
    return sum(
        any(c["type"] == "Complete" and c["status"] == "True" for c in j["status"].get("conditions", ()))
        for j in jobs
    )


def test_jobs_finish_once_each_within_quota_while_the_controller_is_killed(
    team: Team,
) -> None:
    team.offers({"cpu": {"spot": "12", "on-demand": "6"}})
    limits = {(team.flavor("spot"), "cpu"): 12.0, (team.flavor("on-demand"), "cpu"): 6.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        names = [f"job-{number:03}" for number in range(JOBS)]
        submissions = [partial(team.apply, job(team.namespace, name, seconds=1)) for name in names]
        end_under_kills(team.controller, Random(8), submissions, lambda: len(auditor.finished), batch=25)
        assert team.states() == {"Finished": JOBS}
        assert complete(team) == JOBS
    none_lost_none_twice(auditor, JOBS, lambda _: [1])
    assert auditor.most_on["spot"] <= 12
    assert auditor.most_on["on-demand"] <= 6
    assert auditor.highest == limits, "the quota was used to the full"
    assert not auditor.preempted

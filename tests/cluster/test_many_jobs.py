"""Many Jobs through one queue, while the controller is killed again and again."""

from collections import Counter
from functools import partial
from random import Random

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

JOBS = 200
KILLS = 8


def finished(team: Team) -> int:
    jobs = team.read("jobs")["items"]
    return sum(
        any(c["type"] == "Complete" and c["status"] == "True" for c in j["status"].get("conditions", ()))
        for j in jobs
    )


def reached(team: Team, jobs: int) -> bool:
    return finished(team) >= jobs


def test_200_jobs_finish_once_each_within_quota_while_the_controller_is_killed(
    team: Team,
) -> None:
    team.offers({"cpu": {"spot": "12", "on-demand": "6"}})
    limits = {(team.flavor("spot"), "cpu"): 12.0, (team.flavor("on-demand"), "cpu"): 6.0}
    random = Random(8)
    kill_at = sorted(random.randrange(5, JOBS - 20) for _ in range(KILLS))
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(*(job(team.namespace, f"job-{number:03}", seconds=1) for number in range(JOBS)))
        for moment in kill_at:
            eventually(partial(reached, team, moment), timeout=600, what=f"{moment} Jobs done")
            team.controller.kill()
        eventually(lambda: finished(team) == JOBS, timeout=600, what="all Jobs done")
        eventually(lambda: team.states() == {"Finished": JOBS}, what="all Workloads finished")

    assert auditor.excesses == []
    assert auditor.most_pods <= 18
    assert auditor.highest == limits, "the quota was used to the full"
    assert set(auditor.admissions.values()) == {1}, "none was admitted twice"
    assert len(auditor.admissions) == JOBS
    pods = team.read("pods")["items"]
    per_job = Counter(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] for pod in pods)
    assert set(per_job.values()) == {1}, "none ran twice"
    assert len(per_job) == JOBS, "none was lost"

"""What runs is counted by the pods that there are, and by nothing that can be changed afterwards."""

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def halted(found: Json) -> bool:
    """Whether the Job controller has suspended a Job, so that its template may be changed."""
    status = found["status"]
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return (
        conditions.get("Suspended") == "True" and not status.get("active") and bool(status.get("terminating"))
    )


@pytest.mark.parametrize("asked", ["1000000", "1m"])
def test_pods_that_end_slowly_count_for_what_they_request_whatever_their_template_says_now(
    team: Team, attacker: Attacker, asked: str
) -> None:
    """Of 8 CPUs 4 are in use by pods that end; the other 4 are free, and no more."""
    team.offers({"cpu": {"on-demand": "8"}})
    slow = job(team.namespace, "slow", pods=4, seconds=None)
    slow["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
    attacker.create(slow)
    team.runs("slow", pods=4)
    name = team.workload("slow")["metadata"]["name"]
    attacker.patch("workload", name, {"spec": {"active": False}})
    eventually(lambda: halted(attacker.job("slow")), what="the Job to be suspended while its pods end")
    containers = attacker.job("slow")["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": asked}}
    attacker.patch("job", "slow", {"spec": {"template": {"spec": {"containers": containers}}}})
    attacker.kubectl("delete", "workload", name)
    team.controller.restart()
    attacker.create(job(team.namespace, "fits", pods=4, seconds=None))
    team.runs("fits", pods=4)
    attacker.create(job(team.namespace, "waits", pods=1))
    eventually(lambda: team.reason("waits") == "InsufficientQuota", what="a reason to wait")
    assert len([pod for pod in team.pods("slow") if pod["status"].get("phase") == "Running"]) == 4

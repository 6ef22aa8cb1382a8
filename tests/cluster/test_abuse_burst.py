"""Hundreds of tiny Jobs in a burst: every other user of the quota still gets its part."""

import time

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.scale import scaled

pytestmark = pytest.mark.cluster

JOBS = scaled(200, 1000)
SHARE_SECONDS = 120
"""In which ten Jobs of one second end, four at a time, beside the burst, that takes longer."""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_burst_takes_no_share_of_another_user(team: Team, attacker: Attacker) -> None:
    team.cohort("all", fairSharing={"enabled": True})
    team.shares(("greedy", "4"), ("modest", "4"))
    attacker.create(job(team.namespace, "first", pods=8, queue="greedy", seconds=None))
    team.runs("first", pods=8)
    attacker.create(*(job(team.namespace, f"burst-{n}", queue="greedy") for n in range(JOBS)))
    team.kubectl("delete", "job", "first")
    start = time.monotonic()
    modest = [f"modest-{n}" for n in range(10)]
    attacker.create(*(job(team.namespace, name, queue="modest") for name in modest))
    eventually(
        lambda: succeeded(team.read("jobs", "--selector=admitter.dev/queue-name=modest")) == len(modest),
        what="end of the modest Jobs",
        timeout=SHARE_SECONDS,
    )
    took = time.monotonic() - start
    done = succeeded(team.read("jobs")) - len(modest)
    assert done < JOBS / 2, f"the burst was over after {took:.0f} s, so no user had to share"
    attacker.kubectl("delete", "jobs", "--all")
    eventually(lambda: not team.read("jobs")["items"], what="deleted Jobs", timeout=120)


def succeeded(found: Json) -> int:
    """How many of some Jobs are complete."""
    return sum(bool(job["status"].get("completionTime")) for job in found["items"])

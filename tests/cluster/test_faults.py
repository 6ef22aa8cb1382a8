"""A short run of `make test-faults`: each kind of fault once, and the auditor finds nothing."""

from pathlib import Path

import pytest

from tests.faults.harness import play
from tests.faults.keeper import kept_control_plane
from tests.faults.loop import run
from tests.faults.plan import KINDS, OF_FOLLOWERS, failover, plan
from tests.faults.report import markdown, summary
from tests.scale import scaled

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(900),
    # A connection that is being opened when the API server is killed is closed when it is collected.
    pytest.mark.filterwarnings("ignore:unclosed (transport|<socket):ResourceWarning"),
]

SEED = 8
SECONDS = 45.0
JOBS = scaled(75, 150)
REPLICAS = 2
KILLS = scaled(2, 10)
JOBS_A_SECOND = scaled(15, 25)
KILL_SECONDS = 5.5
"""From one to the next: another replica leads after four, if the machine has nothing else to do."""


def test_a_short_run_of_faults_of_every_kind_breaks_no_rule(tmp_path: Path, owner: int) -> None:
    kinds = KINDS | OF_FOLLOWERS
    planned = plan(SEED, SECONDS, JOBS, len(kinds), REPLICAS)
    with kept_control_plane(tmp_path / "kept", owner) as plane:
        outcome = run(play(plane, tmp_path, planned, REPLICAS))
    told = markdown(summary(outcome, REPLICAS))
    assert outcome.findings == [], "\n\n".join((told, *outcome.trails))
    assert set(outcome.faults) | set(outcome.missed) == set(kinds), told
    assert sum(outcome.missed.values()) <= 3, told
    assert outcome.counts["created"] == len(planned.tasks) + planned.burst, told
    assert outcome.counts["finished"] >= len(planned.tasks), told
    assert outcome.counts["order checked"] > 0, told
    assert outcome.counts["releases"] > 0, "some Workload was preempted"
    assert outcome.counts["operations of tenants"] == planned.operations > 0, told
    assert outcome.counts["pods of tenants bound"] > 0, told
    assert outcome.counts["tasks of pods done"] == len(planned.pods) > 0, told
    assert outcome.counts["queued pods bound"] > outcome.counts["tasks of pods done"], told


def test_a_leader_that_is_killed_again_and_again_under_load_loses_and_doubles_nothing(
    tmp_path: Path, owner: int
) -> None:
    seconds = KILL_SECONDS * (KILLS + 1)
    jobs = round(JOBS_A_SECOND * seconds)
    planned = failover(SEED, seconds, jobs, KILLS)
    with kept_control_plane(tmp_path / "kept", owner) as plane:
        outcome = run(play(plane, tmp_path, planned, REPLICAS))
    told = markdown(summary(outcome, REPLICAS))
    assert outcome.findings == [], "\n\n".join((told, *outcome.trails))
    assert outcome.faults == {"leader killed": KILLS}, told
    assert outcome.counts["finished"] == jobs, told
    assert outcome.counts["admissions"] == jobs + outcome.counts["releases"], (
        "again only Workloads that were preempted"
    )
    assert len(outcome.take_overs) == KILLS, told

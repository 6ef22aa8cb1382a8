"""Which of several Jobs is evicted by its checkpoint, and how often one is at most, also after a restart."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

RECLAIM = {"reclaimWithinCohort": "Any"}
SPAN = 60


def evictions(team: Team, name: str) -> list[datetime]:
    """When a Job was evicted for others, as its Workload says."""
    times = team.workload(name)["status"].get("evictedAt") or []
    return [datetime.fromisoformat(time) for time in times]


def test_the_job_with_the_latest_checkpoint_is_evicted_and_not_the_newest(team: Team) -> None:
    team.shares(("a", "0"), ("b", "2"), preemption=RECLAIM)
    team.apply(job(team.namespace, "saves", seconds=None, queue="a"))
    team.runs("saves")
    team.apply(job(team.namespace, "newest", seconds=None, queue="a"))
    team.runs("newest")
    newest = datetime.fromisoformat(team.condition("newest", "Admitted")["lastTransitionTime"])
    eventually(lambda: datetime.now(UTC) > newest + timedelta(seconds=2), what="two seconds to pass")
    saved = (newest + timedelta(seconds=1)).isoformat()
    team.kubectl("annotate", "job", "saves", f"admitter.dev/checkpointed-at={saved}")
    team.apply(job(team.namespace, "owner", seconds=None, queue="b"))
    team.runs("owner")
    assert len(evictions(team, "saves")) == 1
    assert evictions(team, "newest") == []
    assert team.state("newest") == "Admitted"


@pytest.mark.timeout(600)
def test_no_job_is_evicted_more_often_than_its_queue_allows_also_after_a_restart(team: Team) -> None:
    limit = {"maxEvictionsPerWorkload": {"count": 1, "per": f"{SPAN}s"}, **RECLAIM}
    team.shares(("a", "0"), ("b", "1"), preemption=limit)
    team.apply(job(team.namespace, "train", seconds=None, queue="a"))
    team.runs("train")
    team.apply(job(team.namespace, "first", seconds=1, queue="b"))
    eventually(lambda: team.state("first") == "Finished", what="the first owner to finish")
    team.runs("train")
    assert len(evictions(team, "train")) == 1
    team.apply(job(team.namespace, "second", seconds=None, queue="b"))
    eventually(lambda: team.reason("second") == "EvictionsLimited", what="the second owner to wait")
    assert "was evicted 1 time within 1m: next at " in team.workload("second")["status"]["message"]
    team.controller.restart()
    team.runs("second")
    first, second = evictions(team, "train")
    assert second - first >= timedelta(seconds=SPAN)


@pytest.mark.timeout(600)
def test_a_cohort_has_no_more_evictions_than_it_allows_also_of_deleted_jobs_and_after_a_restart(
    team: Team,
) -> None:
    team.shares(("a", "0"), ("b", "2"), preemption=RECLAIM)
    team.cohort("all", preemption={"maxEvictions": {"count": 1, "per": f"{SPAN}s"}})
    for name in ("one", "two"):
        team.apply(job(team.namespace, name, seconds=None, queue="a"))
        team.runs(name)
    team.apply(job(team.namespace, "first", seconds=None, queue="b"))
    team.runs("first")
    (evicted,) = [name for name in ("one", "two") if evictions(team, name)]
    (begun,) = evictions(team, evicted)
    team.kubectl("delete", "job", evicted)
    team.apply(job(team.namespace, "second", seconds=None, queue="b"))
    eventually(lambda: team.reason("second") == "EvictionsLimited", what="the second owner to wait")
    title = f"Cohort {team.namespace}-all"
    words = f"{title} allows 1 eviction for others within 1m, and there were so many: next at "
    assert words in team.workload("second")["status"]["message"]
    team.controller.restart()
    team.runs("second")
    (last,) = evictions(team, "two" if evicted == "one" else "one")
    assert last - begun >= timedelta(seconds=SPAN)

"""What is said where limits on evictions of a queue or a Cohort keep owners waiting."""

from pathlib import Path
from typing import Any

import pytest

from admitter.insight.lint import lint
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.cluster.objects import job
from tests.insight.asking import Desk
from tests.insight.states import State, moment

Json = dict[str, Any]


def lending(limit: Json | None = None, above: Json | None = None) -> State:
    """Team b has lent its 4 CPUs to team a, of which one Workload was evicted ten minutes ago."""
    state = State()
    for name, minimum in (("a", "0"), ("b", "4")):
        preemption: Json = {"reclaimWithinCohort": "Any"}
        preemption |= {"maxEvictions": limit} if limit is not None and name == "a" else {}
        state.queue(f"team-{name}", {"cpu": {"default": {"min": minimum}}}, "all", preemption=preemption)
        state.namespace(name, f"team-{name}")
    if above is not None:
        state.put("cohorts", "all", spec={"preemption": {"maxEvictions": above}})
    for number in range(2):
        usage = {"cpu": ("2", "default")}
        state.holds("a", f"runs-{number}", usage, cluster_queue="team-a", since=-60 - number)
    (queue,) = [each for each in state.objects["clusterqueues"] if each["metadata"]["name"] == "team-a"]
    queue["status"] = {"evictions": [{"at": moment(-600), "uid": "gone"}]}
    return state


def waits(state: State) -> None:
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": "2"}}]
    spec = {"queueName": "main", "priority": 0, "podSets": pod_sets}
    state.put("workloads", "waits", "b", spec=spec, status={"state": "Pending"})


HOURLY: Json = {"count": 1, "per": "1h"}


@pytest.mark.parametrize(
    ("limits", "title"),
    [({"limit": HOURLY}, "ClusterQueue team-a"), ({"above": HOURLY}, "Cohort all")],
)
def test_an_explanation_names_the_limit_and_when_it_opens(
    limits: dict[str, Json], title: str, tmp_path: Path
) -> None:
    state = lending(**limits)
    waits(state)
    _, sentence, *_, start = Desk(state, tmp_path).tell("waits", "b")
    assert sentence == (
        "  asks for 2 cpu from ClusterQueue team-b: too much of the 4 cpu of default is in use; "
        f"{title} allows 1 eviction for others within 1h, and there were so many: next at {moment(3000)}"
    )
    assert start.startswith("Start: in 50 min")


@pytest.mark.parametrize(("count", "expected"), [(1, "waits"), (2, "admitted")])
def test_what_a_further_job_would_do(count: int, expected: str, tmp_path: Path) -> None:
    state = lending({"count": count, "per": "1h"})
    answer = Desk(state, tmp_path).what_if(job("b", "further", requests={"cpu": "1"}))
    (further,) = [each for each in answer["workloads"] if each["name"] == "further"]
    assert further["effect"] == expected
    assert ("ClusterQueue team-a allows 1 eviction" in str(further)) == (expected == "waits")


def findings(state: State) -> list[tuple[str, str]]:
    found = lint(Snapshot(facts(state.snapshot())))
    return [(each.object, each.message) for each in found if each.rule == "KeepsWhatItBorrows"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"limit": {"count": 0, "per": "1h"}}, ("ClusterQueue team-a", "until its Jobs end")),
        ({"limit": {"count": 5, "per": "2d"}}, ("ClusterQueue team-a", "up to 2d")),
        ({"above": {"count": 0, "per": "1h"}}, ("Cohort all", "until its Jobs end")),
        ({"above": {"count": 9, "per": "25h"}}, ("Cohort all", "up to 1d1h")),
    ],
)
def test_lint_names_limits_with_which_owners_wait_for_long(
    limits: dict[str, Json], expected: tuple[str, str]
) -> None:
    ((title, words),) = findings(lending(**limits))
    assert (title, expected[1] in words) == (expected[0], True), words
    assert "team-a" in title + words
    assert words.endswith(": maxEvictions")


@pytest.mark.parametrize("limits", [{}, {"limit": HOURLY}, {"above": {"count": 1, "per": "1d"}}])
def test_lint_leaves_other_limits_alone(limits: dict[str, Json]) -> None:
    assert findings(lending(**limits)) == []

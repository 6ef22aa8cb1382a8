"""`minRuntime` and `gracePeriod` on a timeline, with `admitter simulate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.elastic import asks, cap, created, events, priority_class, quota, rows, used
from tests.simulate.test_simulate import annotate, simulate, states

ALL = {"cpu": 4}


def lent(*more: Json, lasts: str | None = None, **terms: str) -> list[Json]:
    """What is A's is all used by B's Job from 0:00 on, and A asks for it at 0:10."""
    return [
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption=terms),
        asks("b", "guest", ALL, lasts=lasts),
        asks("a", "owner", ALL, 10),
        *more,
    ]


def test_without_either_it_goes_at_once(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent())
    assert events(result) == [(0, "Admitted", "guest"), (10, "Preempted", "guest"), (10, "Admitted", "owner")]


def test_it_is_told_and_goes_on_until_its_time_is_up(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(gracePeriod="30s"))
    assert events(result) == [
        (0, "Admitted", "guest"),
        (10, "EvictionPending", "guest"),
        (40, "Preempted", "guest"),
        (40, "Admitted", "owner"),
    ]
    told, preempted = (e for e in result["events"] if e["type"] in {"EvictionPending", "Preempted"})
    assert told["reason"] == preempted["reason"] == "Preempted"
    assert told["preemptor"] == preempted["preemptor"]
    assert told["preemptor"].startswith("a/job-owner-")
    assert told["clusterQueue"] == "eq_b_quota"


def test_meanwhile_it_is_admitted_and_the_other_one_has_a_place(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(gracePeriod="30s"), options=["--until", "20s"])
    assert states(result) == {"guest": "Admitted", "owner": "Pending"}
    assert rows(result)["owner"]["reason"] == "Preempting"
    assert used(result, "cpu") == {"eq_a_quota": "0", "eq_b_quota": "4"}


def test_before_it_has_run_for_so_long_it_is_not_even_told(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(minRuntime="1m"))
    assert events(result)[1:] == [(60, "Preempted", "guest"), (60, "Admitted", "owner")]
    result = simulate(tmp_path, *lent(minRuntime="1m"), options=["--until", "59s"])
    assert rows(result)["owner"]["reason"] == "InsufficientQuota"


def test_the_one_after_the_other(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(minRuntime="1m", gracePeriod="30s"))
    assert events(result)[1:] == [
        (60, "EvictionPending", "guest"),
        (90, "Preempted", "guest"),
        (90, "Admitted", "owner"),
    ]


def test_one_that_ends_in_time_is_not_evicted(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(gracePeriod="30s", lasts="20s"))
    assert events(result)[1:] == [
        (10, "EvictionPending", "guest"),
        (20, "Finished", "guest"),
        (20, "Admitted", "owner"),
    ]
    result = simulate(tmp_path, *lent(minRuntime="1h", lasts="20s"))
    assert events(result)[1:] == [(20, "Finished", "guest"), (20, "Admitted", "owner")]


def test_if_its_preemptor_goes_its_eviction_is_cancelled(tmp_path: Path) -> None:
    manifests = lent(gracePeriod="30s")
    annotate(manifests[-1], "simulated-until", "25s")
    result = simulate(tmp_path, *manifests)
    assert events(result)[1:] == [(10, "EvictionPending", "guest"), (25, "Spared", "guest")]
    assert result["events"][-1]["reason"] == "NotNeeded"
    assert states(result) == {"guest": "Admitted"}


def test_a_victim_of_a_cancelled_eviction_is_told_anew_for_the_next_preemptor(tmp_path: Path) -> None:
    """Ten seconds after the first was deleted: it has given its place back unused."""
    manifests = lent(asks("a", "next", ALL, 30), gracePeriod="30s")
    annotate(manifests[3], "simulated-until", "25s")
    result = simulate(tmp_path, *manifests)
    assert events(result)[1:] == [
        (10, "EvictionPending", "guest"),
        (25, "Spared", "guest"),
        (35, "EvictionPending", "guest"),
        (65, "Preempted", "guest"),
        (65, "Admitted", "next"),
    ]


def test_an_eviction_that_is_not_needed_since_others_ended_is_cancelled(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "1m"}),
        asks("b", "guest", {"cpu": 2}),
        asks("b", "short", {"cpu": 2}, lasts="30s"),
        asks("a", "owner", {"cpu": 2}, 10),
    )
    told = events(result, "EvictionPending")
    assert told == [(10, "EvictionPending", "short")], "of one age and size the later one"
    assert events(result)[-2:] == [(30, "Finished", "short"), (30, "Admitted", "owner")]
    result = simulate(
        tmp_path,
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "1m"}),
        asks("b", "short", {"cpu": 2}, lasts="30s"),
        asks("b", "guest", {"cpu": 2}),
        asks("a", "owner", {"cpu": 2}, 10),
    )
    assert events(result)[2:] == [
        (10, "EvictionPending", "guest"),
        (30, "Finished", "short"),
        (30, "Admitted", "owner"),
        (30, "Spared", "guest"),
    ]


def test_a_victim_of_two_preemptors_goes_when_the_first_grace_period_is_up(tmp_path: Path) -> None:
    """One large guest makes room for two; the second finds the place made already."""
    result = simulate(
        tmp_path,
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "30s"}),
        asks("b", "guest", ALL),
        asks("a", "first", {"cpu": 2}, 10),
        asks("a", "second", {"cpu": 2}, 20),
    )
    assert events(result)[1:] == [
        (10, "EvictionPending", "guest"),
        (40, "Preempted", "guest"),
        (40, "Admitted", "first"),
        (40, "Admitted", "second"),
    ]


def test_victims_of_one_have_each_their_own_time(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "30s"}),
        quota("c", {"cpu": 0}, preemption={"gracePeriod": "1m"}),
        asks("b", "of-b", {"cpu": 2}),
        asks("c", "of-c", {"cpu": 2}),
        asks("a", "owner", ALL, 10),
    )
    assert events(result)[4:] == [
        (40, "Preempted", "of-b"),
        (70, "Preempted", "of-c"),
        (70, "Admitted", "owner"),
    ]
    assert states(result)["of-b"] == "Pending", "its old place is kept for the other"


@pytest.mark.parametrize(
    ("terms", "caps", "expected"),
    [
        pytest.param({"gracePeriod": "10m"}, {"gracePeriod": "30s"}, (10, 40), id="grace"),
        pytest.param({"minRuntime": "10m"}, {"minRuntime": "1m"}, (60, 60), id="runtime"),
        pytest.param({"gracePeriod": "30s"}, {"gracePeriod": "10m"}, (10, 40), id="nothing to cut"),
        pytest.param(
            {"gracePeriod": "30s", "minRuntime": "1m"}, {"gracePeriod": 0}, (60, 60), id="no grace at all"
        ),
    ],
)
def test_the_cohort_of_all_elastic_quotas_caps_it(
    tmp_path: Path, terms: Mapping[str, str], caps: Mapping[str, Any], expected: tuple[int, int]
) -> None:
    result = simulate(tmp_path, cap(**caps), *lent(**terms))
    happened = events(result)[1:]
    assert (happened[0][0], happened[-1][0]) == expected
    assert happened[-1][1:] == ("Admitted", "owner")


def test_of_the_cohort_of_all_elastic_quotas_nothing_but_the_cap_counts(tmp_path: Path) -> None:
    cohorts = [cap(parent="all", gracePeriod="2m"), cap("all", gracePeriod="30s")]
    result = simulate(tmp_path, *cohorts, *lent(gracePeriod="1h"))
    assert events(result)[-1] == (130, "Admitted", "owner"), "it stands under no other one"


def test_a_cap_that_comes_later_shortens_the_wait_for_a_runtime(tmp_path: Path) -> None:
    later = annotate(cap(minRuntime="20s"), "simulated-at", "30s")
    result = simulate(tmp_path, later, *lent(minRuntime="1h"))
    assert events(result)[-2:] == [(30, "Preempted", "guest"), (30, "Admitted", "owner")]


def test_a_quota_that_grants_less_from_now_on(tmp_path: Path) -> None:
    less = annotate(quota("b", {"cpu": 0}, preemption={"minRuntime": "40s"}), "simulated-at", "30s")
    result = simulate(tmp_path, *lent(less, minRuntime="1h"))
    assert events(result)[-2:] == [(40, "Preempted", "guest"), (40, "Admitted", "owner")]


def test_its_own_important_jobs_wait_for_it_too(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        priority_class("high", 9),
        quota("a", ALL, preemption={"minRuntime": "1m", "gracePeriod": "30s"}),
        asks("a", "low", ALL),
        asks("a", "high", ALL, 10, priority="high"),
    )
    assert events(result)[1:] == [
        (60, "EvictionPending", "low"),
        (90, "Preempted", "low"),
        (90, "Admitted", "high"),
    ]


def test_a_victim_that_comes_back_has_all_of_its_time_again(tmp_path: Path) -> None:
    """The owner comes twice for half a minute; the guest is left alone for a minute each time."""
    manifests = [
        quota("a", ALL),
        quota("b", {"cpu": 0}, preemption={"minRuntime": "1m"}),
        asks("b", "guest", ALL),
        asks("a", "first", ALL, 10, lasts="30s"),
        asks("a", "second", ALL, 100, lasts="30s"),
    ]
    assert events(simulate(tmp_path, *manifests))[1:] == [
        (60, "Preempted", "guest"),
        (60, "Admitted", "first"),
        (90, "Finished", "first"),
        (90, "Admitted", "guest"),
        (150, "Preempted", "guest"),
        (150, "Admitted", "second"),
        (180, "Finished", "second"),
        (180, "Admitted", "guest"),
    ]


def test_queues_written_by_hand_grant_it_too(tmp_path: Path) -> None:
    terms = {"gracePeriod": "30s", "minRuntime": "1m"}
    total = cluster_queue(
        "total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority", **terms}
    )
    result = simulate(
        tmp_path,
        priority_class("high", 9),
        *(resource_flavor("default", {}), created(total, 0), local_queue("a", "total")),
        asks("a", "low", ALL, queue="main"),
        asks("a", "high", ALL, 10, queue="main", priority="high"),
    )
    assert events(result)[1:] == [
        (60, "EvictionPending", "low"),
        (90, "Preempted", "low"),
        (90, "Admitted", "high"),
    ]


def test_a_job_that_goes_while_it_is_told_leaves_its_place_at_once(tmp_path: Path) -> None:
    manifests = lent(gracePeriod="30s")
    annotate(manifests[2], "simulated-until", "20s")
    result = simulate(tmp_path, *manifests)
    assert events(result)[-1] == (20, "Admitted", "owner")
    assert states(result) == {"owner": "Admitted"}

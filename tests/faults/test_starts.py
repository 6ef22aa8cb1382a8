"""The check of queued pods finds each rule that is broken, and nothing in histories that are right."""

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.pods import PodTask, manifest
from tests.faults.starts import GATE, GRACE_SECONDS, ClaimFact, PodFact, Starts, read, scope
from tests.faults.timeline import Moment


class History:
    """Tells what becomes of a group of two, and of single pods, one version after the other."""

    def __init__(self) -> None:
        self.starts = Starts()
        self.version = 0
        self.now = 0.0

    def tell(self, uid: str, fact: PodFact | ClaimFact | None, *, exact: bool = True) -> None:
        self.version += 1
        self.starts.take(uid, fact, Moment(self.version, self.now, exact))

    def claim(self, places: int | None, uid: str = "w", *, exact: bool = True) -> None:
        self.tell(uid, ClaimFact("pods-a/work", places), exact=exact)

    def pod(self, number: int, state: str, size: int = 2, workload: str = "w", *, exact: bool = True) -> None:
        """A pod of a group, or by itself if the size is 1, as it is now."""
        fact = PodFact(
            f"pods-a/pod-{number}",
            "tune" if size > 1 else "",
            size,
            "" if state == "gated" else workload,
            gated=state == "gated",
            live=state in {"gated", "runs", "evicted"},
            succeeded=state == "succeeded",
            evicted=state == "evicted",
        )
        self.tell(f"p{number}", fact, exact=exact)

    def started(self) -> None:
        """The group is admitted, and both of its pods are started."""
        for number in range(2):
            self.pod(number, "gated")
        self.claim(None)
        self.claim(2)
        for number in range(2):
            self.pod(number, "runs")

    def settle(self) -> None:
        self.starts.settle(Moment(self.version, self.now, exact=False))

    @property
    def found(self) -> str:
        return "\n".join(self.starts.close())


@pytest.fixture
def history() -> History:
    return History()


def test_a_history_that_is_right_has_no_finding(history: History) -> None:
    history.started()
    history.pod(0, "failed")
    history.pod(2, "gated")
    history.pod(2, "runs")  # in its place
    for number in (1, 2):
        history.pod(number, "evicted")
        history.tell(f"p{number}", None)
    history.claim(None)
    for number in (3, 4):
        history.pod(number, "gated")
    history.claim(2)
    for number in (3, 4):
        history.pod(number, "runs")
        history.pod(number, "succeeded")
    history.claim(None)
    history.tell("w", None)
    assert history.found == ""
    assert history.starts.counts["starts of queued pods"] == 5
    assert history.starts.counts["admissions of queued pods"] == 2


def test_what_is_left_of_a_group_after_one_has_succeeded_is_whole(history: History) -> None:
    history.started()
    history.pod(0, "succeeded")
    history.pod(1, "evicted")
    history.tell("p1", None)
    history.claim(None)
    history.pod(2, "gated")
    history.claim(1)
    history.pod(2, "runs")
    history.pod(2, "succeeded")
    assert history.found == ""


@pytest.mark.parametrize("size", [1, 2])
def test_a_pod_that_runs_unmarked_is_found(history: History, size: int) -> None:
    history.pod(0, "gated", size)
    history.claim(size)
    history.pod(0, "runs", size, workload="")
    assert "pod pods-a/pod-0 runs without an admission: it is marked for no Workload" in history.found


def test_a_pod_that_never_had_its_gate_is_found(history: History) -> None:
    history.pod(0, "runs", 1, workload="")
    assert "pods-a/pod-0 runs without an admission" in history.found


def test_a_start_for_a_workload_that_holds_nothing_is_found(history: History) -> None:
    history.pod(0, "gated", 1)
    history.claim(None)
    history.pod(0, "runs", 1)
    assert "runs without an admission: its Workload holds no admission" in history.found


def test_a_start_for_an_earlier_workload_is_found(history: History) -> None:
    history.pod(0, "gated", 1)
    history.claim(1, "new")
    history.pod(0, "runs", 1, workload="old")
    assert "runs without an admission: its Workload is gone" in history.found


@pytest.mark.parametrize(("late", "found"), [(False, False), (True, True)])
def test_a_start_on_its_way_when_a_user_deletes_the_workload_is_none_for_a_while(
    history: History, *, late: bool, found: bool
) -> None:
    history.pod(0, "gated", 1)
    history.claim(1)
    history.tell("w", None)
    history.now += GRACE_SECONDS + late
    history.pod(0, "runs", 1)
    history.pod(0, "succeeded", 1)
    assert bool(history.found) is found


@pytest.mark.parametrize("places", [1, 3])
def test_a_group_that_was_not_admitted_as_a_whole_is_found(history: History, places: int) -> None:
    history.pod(0, "gated")
    history.claim(places)
    history.pod(0, "runs")
    assert f"was started on {places} places, and its group has 2 pods" in history.found


def test_more_pods_than_a_group_has_are_found_also_when_some_have_succeeded(history: History) -> None:
    history.started()
    history.pod(0, "succeeded")
    history.pod(2, "gated")
    assert not history.starts.findings
    history.pod(2, "runs")
    assert "2 pods of pods-a/tune run and 1 have succeeded, of 2" in history.found


def test_a_pod_that_has_failed_does_not_succeed_any_more(history: History) -> None:
    history.started()
    history.pod(0, "failed")
    history.pod(2, "gated")
    history.pod(2, "runs")
    history.pod(1, "succeeded")
    history.pod(0, "succeeded")
    assert "have succeeded" not in history.found
    assert not history.starts.is_done("pods-a", "tune")


def test_a_pod_that_failed_and_is_said_to_have_succeeded_may_count_as_either(history: History) -> None:
    history.started()
    history.pod(0, "failed")
    history.pod(0, "succeeded")
    history.pod(1, "failed")
    history.claim(None)
    for number in (2, 3):
        history.pod(number, "gated")
    history.claim(1)
    history.pod(2, "runs")
    assert not history.starts.findings
    history.claim(0)
    history.pod(3, "runs")
    assert "was started on 0 places, and its group has 2 pods" in history.found


def test_one_that_succeeded_and_was_deleted_may_be_forgotten(history: History) -> None:
    history.started()
    history.pod(0, "succeeded")
    history.tell("p0", None)
    history.pod(2, "gated")
    history.pod(2, "runs")
    assert not history.starts.findings
    assert not history.starts.is_done("pods-a", "tune")
    history.pod(2, "succeeded")
    assert history.starts.is_done("pods-a", "tune")
    assert not history.starts.is_done("pods-a", "other")


def test_quota_that_is_given_back_while_a_pod_may_run_is_found(history: History) -> None:
    history.started()
    history.pod(0, "failed")
    history.claim(None)
    assert "the quota of Workload pods-a/work was released while pods-a/pod-1 may run" in history.found


@pytest.mark.parametrize("state", ["gated", "runs"])
def test_a_pod_that_is_lost_is_found_unless_a_user_deleted_it(history: History, state: str) -> None:
    history.started()
    history.pod(1, state)
    history.tell("p1", None)
    assert "pod pods-a/pod-1 was lost" in history.found
    history.starts.findings.clear()
    history.starts.deleted.add("pods-a/pod-0")
    history.tell("p0", None)
    assert history.found == ""


def test_one_too_many_that_waits_may_be_deleted(history: History) -> None:
    history.started()
    history.pod(2, "gated")
    history.tell("p2", None)
    assert not history.starts.findings
    history.now += GRACE_SECONDS + 1
    history.pod(1, "failed")
    history.pod(3, "gated")
    history.tell("p3", None)
    assert "pod pods-a/pod-3 was lost" in history.found


def test_what_happened_in_an_unknown_order_is_checked_when_it_is_known(history: History) -> None:
    history.pod(0, "gated", 1)
    history.pod(0, "runs", 1, exact=False)
    history.claim(1, exact=False)
    history.settle()
    assert not history.starts.findings
    history.claim(None, exact=False)
    history.settle()
    assert "runs without an admission: its Workload holds no admission" in history.found


def test_pods_and_workloads_are_read_as_the_api_server_has_them() -> None:
    kinds = scope(("pods-a",)).paths
    assert set(kinds) == {"pods-a/pods", "pods-a/workloads"}
    pod: dict[str, Any] = manifest(PodTask(0.0, "pods-a", "tune", 2, 1, "low"), 0, 0)
    pod["metadata"]["namespace"] = "pods-a"
    pod["spec"]["schedulingGates"] = [GATE]
    waits = PodFact("pods-a/tune-0", "tune-0", 2, "", gated=True, live=True, succeeded=False, evicted=False)
    assert read("pods-a/pods", pod) == waits
    pod["metadata"]["labels"]["admitter.dev/workload"] = "work"
    pod["metadata"]["annotations"]["admitter.dev/workload-uid"] = "w"
    pod["spec"]["schedulingGates"] = []
    pod["status"] = {"phase": "Succeeded"}
    over = PodFact("pods-a/tune-0", "tune-0", 2, "w", gated=False, live=False, succeeded=True, evicted=False)
    assert read("pods-a/pods", pod) == over
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByAdmitter"}
    pod["status"]["conditions"] = [evicted]
    assert read("pods-a/pods", pod) == replace(over, succeeded=False, evicted=True)
    work: dict[str, Any] = {"metadata": {"namespace": "pods-a", "name": "work"}}
    assert read("pods-a/workloads", work) == ClaimFact("pods-a/work", None)
    work["status"] = {"admission": {"podSets": [{"count": 2}, {"count": 1}]}, "conditions": []}
    assert read("pods-a/workloads", work) == ClaimFact("pods-a/work", 3)
    work["status"]["conditions"] = [{"type": "Finished", "status": "True"}]
    assert read("pods-a/workloads", work) == ClaimFact("pods-a/work", None)

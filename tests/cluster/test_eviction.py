"""Taking an admission back: the Job stops, its pods go, and only then is its quota used again."""

import json
from contextlib import suppress

import pytest

from admitter.sandbox.cluster import KubectlError
from tests.cluster.auditor import Auditor
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually, have_ended

pytestmark = pytest.mark.cluster

ATTEMPTS = 20
"""So often a Job may be stopped before it has pods; as a rule one in four has some."""


def slow_to_end(manifest: Json) -> Json:
    """A Job with pods that, once deleted, end only when the test lets them."""
    manifest["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
    return manifest


def let_go(team: Team, name: str, phase: str = "Failed") -> None:
    """The containers of a Job's pods end."""
    for pod in team.pods(name):
        patch = json.dumps({"status": {"phase": phase}})
        with suppress(KubectlError):  # it has gone meanwhile
            team.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", f"--patch={patch}")


def deleting(team: Team, name: str) -> None:
    eventually(lambda: team.pods(name) and all_deleting(team, name), what="its pods to be deleted")


def all_deleting(team: Team, name: str) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in team.pods(name))


def test_an_evicted_job_is_admitted_again_to_another_flavor_with_nothing_left_of_the_first(
    team: Team,
) -> None:
    team.offers({"cpu": {"spot": "1", "on-demand": "1"}})
    limits = {(team.flavor("spot"), "cpu"): 1.0, (team.flavor("on-demand"), "cpu"): 1.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(slow_to_end(job(team.namespace, "moves", seconds=None)))
        team.runs("moves")
        assert team.node_types("moves") == ["spot"]
        team.patch("wl", team.workload("moves")["metadata"]["name"], {"spec": {"active": False}})
        eventually(
            lambda: team.read("job", "moves")["spec"]["suspend"] is True, what="the Job to be suspended"
        )
        deleting(team, "moves")

        team.apply(job(team.namespace, "next", seconds=None))  # would fit spot, if it were free
        eventually(lambda: team.state("next") == "Admitted", what="the next Job to be admitted")
        assert team.workload("next")["status"]["admission"]["podSets"][0]["flavors"] == {
            "cpu": team.flavor("on-demand")
        }
        assert team.state("moves") == "Evicted", "its quota is kept while its pod is there"
        assert team.condition("moves", "Evicted")["reason"] == "Deactivated"

        let_go(team, "moves")
        eventually(lambda: team.reason("moves") == "Inactive", what="its quota to be released")
        assert "admission" not in team.workload("moves")["status"]
        team.apply(job(team.namespace, "third", seconds=None))
        eventually(lambda: team.state("third") == "Admitted", what="its quota to be used again")
        assert team.workload("third")["status"]["admission"]["podSets"][0]["flavors"] == {
            "cpu": team.flavor("spot")
        }

        team.kubectl("delete", "job", "next")
        team.patch("wl", team.workload("moves")["metadata"]["name"], {"spec": {"active": True}})
        team.runs("moves")
        assert team.node_types("moves") == ["on-demand"]
        spec = team.read("job", "moves")["spec"]["template"]["spec"]
        assert spec["nodeSelector"] == {"instance-type": "on-demand"}
    assert auditor.excesses == []
    assert auditor.highest == limits, "the auditor saw both flavors used"
    let_go(team, "moves")


def test_pods_that_outlive_their_job_count_until_they_are_gone_also_across_a_restart(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(slow_to_end(job(team.namespace, "gone", seconds=None)))
    team.runs("gone")
    team.kubectl("delete", "job", "gone")
    deleting(team, "gone")
    eventually(lambda: team.workloads() == {}, what="its Workload to go")
    team.apply(job(team.namespace, "next"))
    eventually(lambda: team.reason("next") == "InsufficientQuota", what="the next Job to wait for the pod")
    eventually(
        lambda: '"used": "1"' in json.dumps(team.read("cq", team.cluster_queue).get("status")),
        what="the queue to show the pod's use",
    )
    team.controller.restart()
    team.apply(job(team.namespace, "after"))
    eventually(lambda: team.reason("after") == "InsufficientQuota", what="another Job to wait for the pod")
    assert team.state("next") == "Pending"
    let_go(team, "gone")
    eventually(lambda: team.states() == {"Finished": 2}, what="both Jobs to finish")


def test_a_running_job_counts_also_if_its_workload_was_deleted_while_no_controller_ran(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "runs", seconds=None, managedBy="example.com/absent"))
    eventually(lambda: team.read("job", "runs")["spec"]["suspend"] is False, what="its start")
    says(team, "runs", startTime="2026-01-01T00:00:00Z")
    name = team.workload("runs")["metadata"]["name"]
    restarts = team.controller.log.count('"event":"deciding"')
    team.controller.kill()
    team.kubectl("delete", "wl", name)
    urgent = {"priorityClassName": team.priority_class("urgent", 1000)}
    team.apply(job(team.namespace, "next", seconds=None, pod=urgent))
    eventually(
        lambda: team.controller.log.count('"event":"deciding"') > restarts, what="the controller to be back"
    )
    eventually(lambda: team.reason("next") == "InsufficientQuota", what="the next one to wait")
    eventually(lambda: team.read("job", "runs")["spec"]["suspend"] is True, what="the first to be stopped")
    assert team.state("next") == "Pending", "no controller has said that it has stopped"
    stopped = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "by its manager"}
    says(team, "runs", conditions=[stopped], startTime=None)
    eventually(lambda: team.state("next") == "Admitted", what="the next one to get its quota")


def says(team: Team, name: str, **status: object) -> None:
    """The manager of a Job writes its status."""
    patch = json.dumps({"status": status})
    team.kubectl("patch", "job", name, "--subresource=status", "--type=merge", f"--patch={patch}")


@pytest.mark.parametrize("kind", ["cq", "lq"])
def test_a_drained_queue_evicts_and_what_was_evicted_comes_back(team: Team, kind: str) -> None:
    team.offers({"cpu": {"spot": "1"}})
    name = team.cluster_queue if kind == "cq" else "main"
    team.apply(job(team.namespace, "runs", seconds=None))
    team.runs("runs")
    first = team.pods("runs")[0]["metadata"]["name"]
    team.patch(kind, name, {"spec": {"stopPolicy": "HoldAndDrain"}})
    reason = "ClusterQueueStopped" if kind == "cq" else "QueueStopped"
    eventually(
        lambda: (team.state("runs"), team.reason("runs")) == ("Pending", reason),
        what="its quota to be released",
    )
    have_ended(lambda: team.pods("runs"))
    team.patch(kind, name, {"spec": {"stopPolicy": "None"}})
    team.runs("runs")
    assert team.pods("runs")[0]["metadata"]["name"] != first


def test_a_held_queue_lets_run_what_runs(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "runs", seconds=None))
    team.runs("runs")
    team.patch("cq", team.cluster_queue, {"spec": {"stopPolicy": "Hold"}})
    eventually(lambda: team.active("cq", team.cluster_queue).get("reason") == "Stopped", what="the hold")
    team.apply(job(team.namespace, "next"))
    eventually(lambda: team.reason("next") == "ClusterQueueStopped", what="another one to be held")
    let_go(team, "runs", "Succeeded")
    eventually(lambda: team.state("runs") == "Finished", what="it to finish")
    assert len(team.pods("runs")) == 1


def test_a_paused_job_grows_and_gets_quota_for_all_of_it(team: Team) -> None:
    team.offers({"cpu": {"spot": "3"}})
    team.apply(job(team.namespace, "grows", seconds=None, completions=3))
    team.runs("grows")
    name = team.workload("grows")["metadata"]["name"]
    team.patch("wl", name, {"spec": {"active": False}})
    eventually(lambda: team.reason("grows") == "Inactive", what="it to be paused")
    team.patch("job", "grows", {"spec": {"parallelism": 3}})
    eventually(
        lambda: [s["count"] for s in team.workload("grows").get("spec", {}).get("podSets", ())] == [3],
        what="its Workload to follow",
    )
    team.patch("wl", name, {"spec": {"active": True}})
    eventually(lambda: len(team.pods("grows")) == 3, what="three pods")
    assert team.workload("grows")["status"]["admission"]["podSets"][0]["usage"] == {"cpu": "3"}


def test_a_workload_deleted_by_hand_stops_its_job_and_it_queues_again(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(slow_to_end(job(team.namespace, "runs", seconds=None)))
    team.runs("runs")
    uid = team.workload("runs")["metadata"]["uid"]
    team.kubectl("delete", "wl", team.workload("runs")["metadata"]["name"])
    deleting(team, "runs")
    eventually(
        lambda: team.workload("runs").get("metadata", {}).get("uid") not in {None, uid}, what="a new one"
    )
    team.apply(job(team.namespace, "next"))
    eventually(lambda: team.reason("next") == "InsufficientQuota", what="the pod to count all the while")
    let_go(team, "runs")
    eventually(lambda: team.state("runs") == "Admitted", what="it to be admitted again, being older")
    let_go(team, "runs")


def test_finished_and_failed_jobs_free_their_quota(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "fails", seconds=None, backoffLimit=0, activeDeadlineSeconds=2))
    team.apply(job(team.namespace, "next"))
    eventually(lambda: team.states() == {"Finished": 2}, what="both to end")
    assert team.condition("fails", "Finished")["reason"] == "JobFailed"
    assert team.condition("next", "Finished")["reason"] == "JobSucceeded"


def test_a_workload_that_is_deleted_as_its_job_starts_keeps_its_quota_until_the_job_has_stopped(
    team: Team,
) -> None:
    team.offers({"cpu": {"spot": "4"}})
    with Auditor(team.cluster, team.namespace, {(team.flavor("spot"), "cpu"): 4.0}) as auditor:
        had_pods: list[bool] = []
        while len(had_pods) < 4 or not (any(had_pods) or len(had_pods) == ATTEMPTS):
            number = len(had_pods)
            had_pods.append(deleted_as_it_starts(team, f"job-{number}", f"next-{number}"))
    assert any(had_pods), "each was stopped before it had any"
    assert auditor.most_pods <= 4
    assert auditor.excesses == []


def deleted_as_it_starts(team: Team, name: str, following: str) -> bool:
    """Delete the Workload of a Job when it is admitted; whether the Job had pods to wait for."""
    team.apply(slow_to_end(job(team.namespace, name, pods=4, seconds=None)))
    eventually(lambda: team.state(name) == "Admitted", what="an admission")
    team.kubectl("delete", "wl", team.workload(name)["metadata"]["name"])
    team.apply(job(team.namespace, following, pods=4, seconds=None))
    eventually(lambda: team.read("job", name)["spec"]["suspend"] is True, what="a stop")
    eventually(lambda: all_deleting(team, name), what="its pods to be deleted, if there are any")
    had_pods = bool(team.pods(name))
    assert not had_pods or team.state(following) != "Admitted", "pods of the first still run"
    team.kubectl("delete", "job", name, following)

    def gone() -> bool:
        let_go(team, name)  # also those that were made as the Job was being stopped
        return team.pods(name) == []

    eventually(gone, what="its pods to go")
    return had_pods

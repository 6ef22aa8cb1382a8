"""What is known by its name alone, and could be another object tomorrow: quota counts by UIDs."""

import json

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job, workload
from tests.cluster.team import Team
from tests.cluster.test_abuse_accounting import halted
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

PUT_IN = "put into pod templates, and taken out, by Admitter's controller alone"


def slow(team: Team, name: str, pods: int) -> Json:
    """A Job with pods that, once deleted, stay for as long as the test needs them."""
    made = job(team.namespace, name, pods=pods, seconds=None)
    made["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
    return made


@pytest.mark.parametrize("then", ["touched", "restarted"])
def test_pods_of_a_deleted_job_are_not_covered_by_a_workload_of_the_same_name(
    team: Team, attacker: Attacker, then: str
) -> None:
    """A Job of all 4 CPUs goes on without Job, under a Workload of its name that asks for next to nothing."""
    team.offers({"cpu": {"on-demand": "4"}})
    attacker.create(slow(team, "big", 4))
    team.runs("big", pods=4)
    pods = [pod["metadata"]["name"] for pod in team.pods("big")]
    name = team.workload("big")["metadata"]["name"]
    attacker.kubectl("delete", "job", "big", "--cascade=orphan")
    eventually(lambda: not team.workloads(), what="end of the Workload, by the controller")
    attacker.create(workload(team.namespace, name, "1m"))
    if then == "touched":
        for pod in pods:
            attacker.kubectl("annotate", "pod", pod, "touched=yes")
    else:
        team.controller.restart()
    attacker.create(slow(team, "next", 4))
    eventually(lambda: team.reason("next") == "InsufficientQuota", what="a reason to wait")
    running = [pod for pod in team.read("pods")["items"] if pod["status"].get("phase") == "Running"]
    assert sorted(pod["metadata"]["name"] for pod in running) == sorted(pods)
    for pod in pods:
        team.kubectl("patch", "pod", pod, "--subresource=status", '--patch={"status": {"phase": "Failed"}}')
    attacker.kubectl("delete", "workload", name)
    team.runs("next", pods=4)


def test_the_marks_by_which_pods_are_counted_are_the_controllers_in_every_phase(
    team: Team, attacker: Attacker
) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    attacker.create(slow(team, "work", 4))
    team.runs("work", pods=4)
    uid = team.workload("work")["metadata"]["uid"]
    assert {pod["metadata"]["annotations"]["admitter.dev/workload-uid"] for pod in team.pods("work")} == {uid}
    for pod in team.pods("work"):
        with attacker.refused("quota is counted by the labels"):
            change = {"metadata": {"annotations": {"admitter.dev/workload-uid": "other"}}}
            attacker.patch("pod", pod["metadata"]["name"], change)
    attacker.patch("workload", team.workload("work")["metadata"]["name"], {"spec": {"active": False}})
    eventually(lambda: halted(attacker.job("work")), what="the Job controller to have suspended the Job")
    spoilt: tuple[Json, ...] = (
        {"annotations": {"admitter.dev/flavors": "{}"}},
        {"annotations": {"admitter.dev/flavors": None}},
        {"annotations": {"admitter.dev/counted": json.dumps({"admitter.dev/gpu-memory": "9" * 5000})}},
        {"annotations": {"admitter.dev/workload-uid": "other"}},
        {"labels": {"admitter.dev/workload": None}},
        {"labels": {"admitter.dev/cluster-queue": "other"}},
    )
    for metadata in spoilt:
        with attacker.refused(PUT_IN):
            attacker.patch("job", "work", {"spec": {"template": {"metadata": metadata}}})
    forged = job(team.namespace, "forged")
    forged["spec"]["template"]["metadata"]["annotations"]["admitter.dev/workload-uid"] = uid
    with attacker.refused(PUT_IN):
        attacker.create(forged)

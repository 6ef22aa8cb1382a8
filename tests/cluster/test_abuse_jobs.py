"""Jobs that try to run unadmitted, or to run more than was admitted."""

import json

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, elastic_quota, job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

QUEUE = "admitter.dev/queue-name"
CAN_T_GROW = "parallelism of an admitted Job can't grow"
WITHOUT_QUEUE = {"metadata": {"labels": {QUEUE: None}}}
UNSUSPENDED = {"spec": {"suspend": False}}


def offers(team: Team, cpu: str = "1") -> None:
    team.offers({"cpu": {"on-demand": cpu}})


def busy(team: Team) -> None:
    """All quota is in use."""
    offers(team)
    team.apply(job(team.namespace, "holder", seconds=None))
    team.runs("holder")


def waits(team: Team, name: str) -> None:
    eventually(lambda: team.reason(name) == "InsufficientQuota", what="a reason to wait")


def never_ran(team: Team, name: str) -> None:
    assert team.read("job", name)["spec"]["suspend"] is True
    assert team.pods(name) == []
    assert "startTime" not in team.read("job", name).get("status", {})


def test_unsuspending_a_waiting_job_has_no_effect(team: Team, attacker: Attacker) -> None:
    busy(team)
    attacker.create(job(team.namespace, "eager", seconds=None))
    attacker.patch("job", "eager", UNSUSPENDED)
    eventually(lambda: team.reason("eager") == "InsufficientQuota", what="a reason to wait")
    never_ran(team, "eager")


def test_a_job_created_running_is_suspended(team: Team, attacker: Attacker) -> None:
    busy(team)
    unset = job(team.namespace, "unset", seconds=None)
    del unset["spec"]["suspend"]
    attacker.create(job(team.namespace, "eager", seconds=None, suspend=False), unset)
    for name in ("eager", "unset"):
        waits(team, name)
        never_ran(team, name)


def test_an_admitted_job_does_not_leave_its_queue(team: Team, attacker: Attacker) -> None:
    offers(team)
    team.apply(local_queue(team.namespace, team.cluster_queue, "other"))
    attacker.create(job(team.namespace, "work", seconds=None))
    team.runs("work")
    for label in ("other", "", None):
        with attacker.refused("an admitted Job stays in its queue"):
            attacker.patch("job", "work", {"metadata": {"labels": {QUEUE: label}}})
    with attacker.refused("an admitted Job stays in its queue"):
        attacker.patch("job", "work", WITHOUT_QUEUE | {"spec": {"suspend": True}})
    team.runs("work")


def test_a_job_that_was_admitted_does_not_run_on_without_its_queue(team: Team, attacker: Attacker) -> None:
    """Its pods would be counted by their labels, without end and without admission."""
    offers(team)
    attacker.create(job(team.namespace, "work", seconds=None))
    team.runs("work")
    attacker.patch("wl", team.workload("work")["metadata"]["name"], {"spec": {"active": False}})
    eventually(lambda: team.reason("work") == "Inactive", what="paused Job")
    for label in ("", None):
        with attacker.refused("stays in some queue, since its pods are counted"):
            attacker.patch("job", "work", {"metadata": {"labels": {QUEUE: label}}})
    with attacker.refused("stays in some queue, since its pods are counted"):
        attacker.patch("job", "work", WITHOUT_QUEUE | UNSUSPENDED)
    team.apply(local_queue(team.namespace, team.cluster_queue, "other"))
    attacker.patch("job", "work", {"metadata": {"labels": {QUEUE: "other"}}})
    eventually(
        lambda: team.workload("work").get("spec", {}).get("queueName") == "other",
        what="Workload of the other",
    )


def test_a_waiting_job_that_drops_its_queue_is_not_started_in_the_same_step(
    team: Team, attacker: Attacker
) -> None:
    """Afterwards it is a Job that names no queue; where that is not allowed: tests of managed namespaces."""
    busy(team)
    attacker.create(job(team.namespace, "eager", seconds=None))
    attacker.patch("job", "eager", WITHOUT_QUEUE | UNSUSPENDED)
    never_ran(team, "eager")
    attacker.undone(lambda: not team.workload("eager"), "end of its Workload")


def test_a_running_job_that_joins_a_queue_is_stopped_until_it_is_admitted(
    team: Team, attacker: Attacker
) -> None:
    busy(team)
    attacker.create(job(team.namespace, "late", queue=None, suspend=False, seconds=None))
    team.runs("late")
    attacker.patch("job", "late", {"metadata": {"labels": {QUEUE: "main"}}})
    assert team.read("job", "late")["spec"]["suspend"] is True, "in the same request"
    attacker.undone(lambda: not team.pods("late"), "end of pods that were not admitted")


def test_a_job_does_not_join_a_queue_and_start_in_the_same_step(team: Team, attacker: Attacker) -> None:
    busy(team)
    attacker.create(job(team.namespace, "outside", queue=None, suspend=True, seconds=None))
    attacker.patch("job", "outside", {"metadata": {"labels": {QUEUE: "main"}}, "spec": {"suspend": False}})
    assert team.read("job", "outside")["spec"]["suspend"] is True
    eventually(lambda: team.reason("outside") == "InsufficientQuota", what="the Job to wait in its queue")
    assert not team.pods("outside")


def test_an_admitted_job_gets_no_more_pods(team: Team, attacker: Attacker) -> None:
    offers(team, "2")
    indexed: Json = {"completionMode": "Indexed", "parallelism": 4, "completions": 2}
    attacker.create(job(team.namespace, "elastic", seconds=None, **indexed))
    team.runs("elastic", pods=2)
    for spec in ({"parallelism": 5}, {"completions": 4}, {"parallelism": 3, "completions": 3}):
        with attacker.refused(CAN_T_GROW):
            attacker.patch("job", "elastic", {"spec": spec})
    assert len(team.pods("elastic")) == 2
    assert team.workload("elastic")["status"]["admission"]["podSets"][0]["count"] == 2


def test_what_an_admitted_job_uses_and_where_stays(team: Team, attacker: Attacker) -> None:
    """Kubernetes itself keeps the template of a Job that is not suspended."""
    offers(team)
    attacker.create(job(team.namespace, "work", seconds=None))
    team.runs("work")
    container = team.read("job", "work")["spec"]["template"]["spec"]["containers"][0]
    more = {**container, "resources": {"requests": {"cpu": "8"}}}
    changes: tuple[Json, ...] = (
        {"nodeSelector": {"instance-type": "spot"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"schedulingGates": [{"name": "later"}]},
        {"priorityClassName": "system-cluster-critical"},
        {"affinity": {"nodeAffinity": {}}},
        {"containers": [more]},
    )
    for pod in changes:
        with attacker.refused("field is immutable"):
            attacker.patch("job", "work", {"spec": {"template": {"spec": pod}}})


def test_a_pod_that_takes_its_time_to_end_is_not_replaced(team: Team, attacker: Attacker) -> None:
    """Or its user would have two where one was admitted, for as long as its grace period says."""
    offers(team)
    slow = job(team.namespace, "work", seconds=None, podReplacementPolicy="TerminatingOrFailed")
    slow["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
    attacker.create(slow)
    team.runs("work")
    with attacker.refused("podReplacementPolicy of an admitted Job is Failed"):
        attacker.patch("job", "work", {"spec": {"podReplacementPolicy": "TerminatingOrFailed"}})
    (pod,) = team.pods("work")
    attacker.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=1000000")
    eventually(
        lambda: team.read("job", "work")["status"].get("terminating") == 1, what="Job that counts the pod"
    )
    assert [p["metadata"]["name"] for p in team.pods("work")] == [pod["metadata"]["name"]]
    failed = '{"status": {"phase": "Failed"}}'
    team.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", f"--patch={failed}")
    team.runs("work")


def test_a_job_made_again_under_its_name_waits_for_the_pods_of_the_first(
    team: Team, attacker: Attacker
) -> None:
    offers(team)
    slow = job(team.namespace, "work", seconds=None, suspend=False)
    slow["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
    attacker.create(slow)
    team.runs("work")
    first = attacker.job("work")["metadata"]["uid"]
    attacker.kubectl("delete", "job", "work", "--cascade=orphan")
    eventually(lambda: not team.read("jobs")["items"], what="end of the Job")
    attacker.create(slow)
    eventually(lambda: team.reason("work") == "InsufficientQuota", what="a reason to wait")
    assert attacker.job("work")["metadata"]["uid"] != first
    assert attacker.job("work")["spec"]["suspend"] is True


def test_a_job_with_pods_of_another_controller_is_counted_until_that_reports_its_stop(
    team: Team, attacker: Attacker
) -> None:
    """Such quota is not taken back while the user says nothing: it stays counted, and is no gain."""
    offers(team)
    attacker.create(job(team.namespace, "foreign", managedBy="example.com/mine", suspend=False))
    eventually(lambda: team.state("foreign") == "Admitted", what="the Job to be admitted")
    eventually(lambda: not attacker.job("foreign")["spec"]["suspend"], what="the Job to be started")
    team.patch("workload", team.workload("foreign")["metadata"]["name"], {"spec": {"active": False}})
    eventually(lambda: team.state("foreign") == "Evicted", what="the Job to be stopped")
    assert team.workload("foreign")["status"]["admission"], "it is counted"
    team.kubectl("delete", "job", "foreign")
    eventually(lambda: not team.workload("foreign"), what="the quota to be free")


def test_a_queued_job_has_no_selector_of_its_own(team: Team, attacker: Attacker) -> None:
    own: Json = {"manualSelector": True, "selector": {"matchLabels": {"app": "mine"}}}
    manifest = job(team.namespace, "mine", **own)
    manifest["spec"]["template"]["metadata"]["labels"] = {"app": "mine"}
    with attacker.refused("spec.manualSelector: a queued Job has the selector that Kubernetes gives it"):
        attacker.create(manifest)
    manifest["metadata"]["labels"] = {}
    attacker.create(manifest)
    with attacker.refused("spec.manualSelector: a queued Job has the selector that Kubernetes gives it"):
        attacker.patch("job", "mine", {"metadata": {"labels": {QUEUE: "main"}}})


@pytest.mark.parametrize("cpu", ["1", "0"], ids=["runs", "waits"])
def test_a_queued_job_gets_no_selector_of_its_own(team: Team, attacker: Attacker, cpu: str) -> None:
    offers(team, cpu)
    attacker.create(job(team.namespace, "work", seconds=None))
    if cpu == "1":
        team.runs("work")
    with attacker.refused("spec.manualSelector: a queued Job has the selector that Kubernetes gives it"):
        attacker.patch("job", "work", {"spec": {"manualSelector": True}})
    if cpu == "1":
        attacker.patch("wl", team.workload("work")["metadata"]["name"], {"spec": {"active": False}})
        eventually(lambda: team.reason("work") == "Inactive", what="paused Job")
        with attacker.refused("spec.manualSelector: a queued Job has the selector that Kubernetes gives it"):
            attacker.patch("job", "work", {"spec": {"manualSelector": True}})


def test_a_job_with_a_selector_of_its_own_that_gets_a_queue_all_the_same_is_not_admitted(
    team: Team, attacker: Attacker
) -> None:
    """Policies do not see the controller's own writes, nor what was there before them."""
    team.apply(
        elastic_quota(team.namespace, namespaces=[team.namespace], min={"cpu": "1"}, manageAllJobs=True)
    )
    eventually(lambda: team.active("ceq", "quota").get("status") == "True", what="a quota")
    own: Json = {"manualSelector": True, "selector": {"matchLabels": {"app": "mine"}}}
    manifest = job(team.namespace, "mine", queue=None, seconds=None, **own)
    manifest["spec"]["template"]["metadata"]["labels"] = {"app": "mine"}
    attacker.create(manifest)
    eventually(lambda: team.reason("mine") == "ManualSelector", what="a reason to wait")
    never_ran(team, "mine")
    eventually(
        lambda: "spec.manualSelector" in team.events("mine").get("ManualSelector", ""),
        what="an event that names the field",
    )
    attacker.patch("job", "mine", {"metadata": {"annotations": {"mine": "too"}}})


def test_a_job_says_nothing_of_its_own_status(team: Team, attacker: Attacker) -> None:
    offers(team)
    attacker.create(job(team.namespace, "work", seconds=None))
    team.runs("work")
    done = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    with attacker.refused("forbidden"):
        attacker.patch("job", "work", done, "--subresource=status")


def test_no_users_record_of_what_the_last_admission_put_in_is_believed(
    team: Team, attacker: Attacker
) -> None:
    """A user that forges the record has its own selector taken for injected, and gains no other node."""
    team.offers({"cpu": {"spot": "1"}})
    injected = {"nodeSelector": {"instance-type": "on-demand"}, "tolerations": []}
    manifest = job(team.namespace, "work", pod={"nodeSelector": {"instance-type": "on-demand"}}, seconds=None)
    manifest["metadata"]["annotations"] = {"admitter.dev/injected": json.dumps(injected)}
    attacker.create(manifest)
    team.runs("work")
    assert team.node_types("work") == ["spot"]

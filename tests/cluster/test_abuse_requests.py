"""Requests that would count for less than they are; and priority that is not the namespace's to use."""

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import ADMITTER, Json, elastic_quota, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

GPU = "nvidia.com/gpu"


def waits(team: Team, attacker: Attacker, name: str, reason: str) -> None:
    attacker.undone(lambda: team.reason(name) == reason, f"{name} waits as {reason}")
    assert attacker.job(name)["spec"]["suspend"] is True
    assert team.pods(name) == []


def asking(team: Team, name: str, requests: dict[str, str], **limits: str) -> Json:
    """A Job of one pod, of which the limits are its requests but for those given."""
    manifest = job(team.namespace, name, requests=requests, seconds=None)
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    extended = {resource: amount for resource, amount in requests.items() if "/" in resource}
    container["resources"]["limits"] = extended | limits
    return manifest


def test_zero_never_slips_by(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    attacker.create(
        asking(team, "nothing", {}),
        asking(team, "zero", {"cpu": "0"}),
    )
    for name in ("nothing", "zero"):
        waits(team, attacker, name, "NothingRequested")


def test_a_limit_counts_as_a_request(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    attacker.create(asking(team, "limited", {}, cpu="2"))
    team.runs("limited")
    assert team.workload("limited")["status"]["admission"]["podSets"][0]["usage"] == {"cpu": "2"}


def test_defaults_of_a_limit_range_count(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    limits = [{"type": "Container", "defaultRequest": {"cpu": "1500m"}}]
    metadata = {"name": "limits", "namespace": team.namespace}
    team.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}})
    attacker.create(asking(team, "first", {}))
    team.runs("first")
    attacker.create(asking(team, "second", {}))
    waits(team, attacker, "second", "InsufficientQuota")
    with attacker.refused("forbidden"):
        attacker.kubectl("delete", "limitrange", "limits")


def test_work_in_init_containers_counts(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    manifest = asking(team, "hidden", {"cpu": "1"})
    work = {"name": "work", "image": "work", "resources": {"requests": {"cpu": "8"}}}
    manifest["spec"]["template"]["spec"]["initContainers"] = [work]
    attacker.create(manifest)
    waits(team, attacker, "hidden", "NeverFits")


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        pytest.param({"cpu": "-1"}, "must be greater than or equal to 0", id="negative"),
        pytest.param({GPU: "-1"}, "must be greater than or equal to 0", id="negative-devices"),
        pytest.param({GPU: "500m"}, "must be an integer", id="half-a-device"),
        pytest.param({"cpu": "many"}, "quantities must match", id="no-number"),
    ],
)
def test_quantities_that_kubernetes_refuses(
    team: Team, attacker: Attacker, requests: dict[str, str], words: str
) -> None:
    with attacker.refused(words):
        attacker.create(asking(team, "wrong", requests))


def test_giant_quantities_and_counts_wait(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    giants = {"exa": "9E", "digits": "9" * 18}
    attacker.create(*(asking(team, name, {"cpu": amount}) for name, amount in giants.items()))
    many = asking(team, "many", {"cpu": "1"})
    many["spec"] |= {"parallelism": 2**31 - 1, "completions": 2**31 - 1}
    attacker.create(many)
    for name in (*giants, "many"):
        waits(team, attacker, name, "NeverFits")
    attacker.create(asking(team, "sound", {"cpu": "2"}))
    team.runs("sound")


def test_devices_that_no_quota_counts_wait(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    attacker.create(asking(team, "device", {"cpu": "1", GPU: "8"}))
    waits(team, attacker, "device", "ResourceNotCovered")
    attacker.create(asking(team, "no-device", {"cpu": "1", GPU: "0"}))
    team.runs("no-device")


def test_memory_of_gpus_is_not_asked_for_beside_them(team: Team, attacker: Attacker) -> None:
    team.offers({"admitter.dev/gpu-memory": {"on-demand": "64"}})
    attacker.create(asking(team, "both", {GPU: "1", "admitter.dev/gpu-memory": "1"}))
    waits(team, attacker, "both", "InvalidRequests")


def test_an_elastic_quota_limits_what_it_names_and_admits_no_job_without_requests(
    team: Team, attacker: Attacker
) -> None:
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}, max={"cpu": "1"}))
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    asked: dict[str, dict[str, str]] = {"nothing": {}, "zero": {"cpu": "0"}, "other": {"memory": "1Gi"}}
    for name, requests in asked.items():
        manifest = asking(team, name, requests)
        manifest["metadata"]["labels"] = {"admitter.dev/queue-name": "elastic-quota"}
        attacker.create(manifest)
    waits(team, attacker, "nothing", "NothingRequested")
    waits(team, attacker, "zero", "NothingRequested")
    team.runs("other")
    team.kubectl("delete", "elasticquota", "quota")


def test_a_namespace_uses_the_priority_classes_that_its_queue_takes(team: Team, attacker: Attacker) -> None:
    usual, urgent = team.priority_class("usual", 10), team.priority_class("urgent", 1000)
    team.offers({"cpu": {"on-demand": "3"}}, priorityClasses=[usual])
    for name, chosen in (("calm", usual), ("jumps", urgent), ("plain", "")):
        pod = {"priorityClassName": chosen} if chosen else {}
        attacker.create(job(team.namespace, name, pod=pod, seconds=None))
    waits(team, attacker, "jumps", "PriorityClassNotAllowed")
    assert team.workload("jumps")["status"]["message"] == (
        f"its PriorityClass is {urgent}, but ClusterQueue {team.cluster_queue} takes only {usual}"
    )
    team.runs("calm")
    team.runs("plain")
    team.patch("cq", team.cluster_queue, {"spec": {"priorityClasses": None}})
    team.runs("jumps")
    team.patch("lq", "main", {"spec": {"priorityClasses": []}})
    attacker.create(job(team.namespace, "late", pod={"priorityClassName": usual}, seconds=None))
    waits(team, attacker, "late", "PriorityClassNotAllowed")
    assert "LocalQueue main takes none" in team.workload("late")["status"]["message"]
    team.runs("jumps")


def test_the_classes_of_kubernetes_itself_are_taken_only_where_they_are_listed(
    team: Team, attacker: Attacker
) -> None:
    """With the largest priority that there is, a tenant's Job would evict everything."""
    team.offers({"cpu": {"on-demand": "1"}}, preemption={"withinClusterQueue": "LowerPriority"})
    attacker.create(job(team.namespace, "calm", seconds=None))
    team.runs("calm")
    critical = {"priorityClassName": "system-node-critical"}
    attacker.create(job(team.namespace, "jumps", pod=critical, seconds=None))
    waits(team, attacker, "jumps", "PriorityClassNotAllowed")
    assert team.workload("jumps")["status"]["message"] == (
        "its PriorityClass system-node-critical is for Kubernetes' own pods, and ClusterQueue "
        f"{team.cluster_queue} does not list it"
    )
    team.patch("cq", team.cluster_queue, {"spec": {"priorityClasses": ["system-node-critical"]}})
    eventually(lambda: team.state("jumps") == "Admitted", what="the listed class to be taken")


def test_a_workload_by_hand_has_no_priority_of_its_own_choice(team: Team, attacker: Attacker) -> None:
    urgent = team.priority_class("urgent", 1000)
    team.offers({"cpu": {"on-demand": "1"}}, priorityClasses=[])
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]
    for name, more in (
        ("number", {"priority": 1000}),
        ("class", {"priority": 1000, "priorityClassName": urgent}),
    ):
        metadata = {"name": name, "namespace": team.namespace}
        spec = {"queueName": "main", "podSets": pod_sets, **more}
        attacker.create({"apiVersion": ADMITTER, "kind": "Workload", "metadata": metadata, "spec": spec})
    attacker.undone(lambda: team.reason("number") == "PriorityMismatch", "a priority by hand")
    attacker.undone(lambda: team.reason("class") == "PriorityClassNotAllowed", "a class by hand")


def test_a_scheduler_that_there_is_not_is_named(team: Team, attacker: Attacker) -> None:
    """Its pods wait for ever, and hold their quota; what can be scheduled is told nothing."""
    team.offers({"cpu": {"on-demand": "2"}})
    attacker.create(
        job(team.namespace, "lost", seconds=None, pod={"schedulerName": "of-nobody"}),
        job(team.namespace, "sound", seconds=None),
    )
    team.runs("sound")
    eventually(
        lambda: "their schedulerName is of-nobody" in team.events("lost").get("NoScheduler", ""),
        timeout=150,  # half a minute, and the start of a successor where another test kills the controller
        what="an event that names the scheduler",
    )
    assert team.state("lost") == "Admitted"
    assert "NoScheduler" not in team.events("sound")

"""Whatever a Job waits for is named, and when it comes the Job starts by itself."""

import json

import pytest

from tests.cluster.objects import cluster_queue, job, local_queue, resource_flavor
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def waits(team: Team, reason: str, name: str = "job") -> None:
    eventually(lambda: team.reason(name) == reason, what=f"{name} to wait with reason {reason}")


def starts(team: Team, name: str = "job") -> None:
    eventually(lambda: team.state(name) in {"Admitted", "Finished"}, what=f"{name} to be admitted")


def test_a_queue_label_that_names_nothing(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "job", queue="absent"))
    waits(team, "QueueNotFound")
    assert team.workload("job")["status"]["message"] == (
        f"there is no LocalQueue absent in namespace {team.namespace}"
    )
    team.apply(local_queue(team.namespace, team.cluster_queue, "absent"))
    starts(team)


def test_a_job_that_is_moved_to_another_queue(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "job", queue="absent"))
    waits(team, "QueueNotFound")
    team.kubectl("label", "job", "job", "admitter.dev/queue-name=main", "--overwrite")
    starts(team)


def test_a_cluster_queue_that_is_missing(team: Team) -> None:
    team.apply(local_queue(team.namespace, team.cluster_queue), job(team.namespace, "job"))
    waits(team, "ClusterQueueNotFound")
    eventually(
        lambda: team.active("lq", "main").get("reason") == "ClusterQueueNotFound",
        what="the LocalQueue to say so too",
    )
    team.offers({"cpu": {"spot": "1"}})
    starts(team)


def test_a_flavor_that_is_missing(team: Team) -> None:
    flavor, kills = team.flavor("spot"), team.controller.kills
    team.apply(
        cluster_queue(team.cluster_queue, {"cpu": {flavor: "1"}}),
        local_queue(team.namespace, team.cluster_queue),
        job(team.namespace, "job"),
    )
    waits(team, "ClusterQueueInactive")
    eventually(
        lambda: team.active("cq", team.cluster_queue).get("reason") == "FlavorNotFound",
        what="the ClusterQueue to say so too",
    )
    condition = team.active("cq", team.cluster_queue)
    assert condition["status"] == "False"
    assert condition["message"] == (
        f"spec.resources[0].flavors names {flavor}: there is no such ResourceFlavor"
    )
    found = f"--field-selector=involvedObject.kind=ClusterQueue,involvedObject.name={team.cluster_queue}"

    def told() -> dict[str, str]:
        """The types of events about the queue, by reason."""
        events = team.cluster.read("events", found, "--namespace=default")["items"]
        return {event["reason"]: event["type"] for event in events}

    team.hears(lambda: told().get("FlavorNotFound") == "Warning", kills, "the event that says so")
    assert told().keys() <= {"FlavorNotFound"}
    kills = team.controller.kills
    team.apply(resource_flavor(flavor, {"nodeLabels": {"instance-type": "spot"}}))
    starts(team)
    team.hears(lambda: told().get("Ready") == "Normal", kills, "the event that it works again")


def test_a_namespace_that_is_not_selected(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}}, namespaceSelector={"matchLabels": {"pays": "yes"}})
    team.apply(job(team.namespace, "job"))
    waits(team, "NamespaceNotSelected")
    team.kubectl("label", "namespace", team.namespace, "pays=yes")
    starts(team)


@pytest.mark.parametrize("kind", ["cq", "lq"])
def test_a_stopped_queue(team: Team, kind: str) -> None:
    team.offers({"cpu": {"spot": "1"}})
    name = team.cluster_queue if kind == "cq" else "main"
    team.patch(kind, name, {"spec": {"stopPolicy": "Hold"}})
    eventually(
        lambda: team.active(kind, name).get("reason") == "Stopped",
        what="the queue to show that it is stopped",
    )
    team.apply(job(team.namespace, "job"))
    waits(team, "ClusterQueueStopped" if kind == "cq" else "QueueStopped")
    team.patch(kind, name, {"spec": {"stopPolicy": "None"}})
    starts(team)


def test_a_request_larger_than_the_quota_until_the_quota_grows(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "job", pods=3))
    waits(team, "NeverFits")
    resources = [{"name": "cpu", "flavors": [{"name": team.flavor("spot"), "quota": {"min": 3}}]}]
    team.patch("cq", team.cluster_queue, {"spec": {"resources": resources}})
    starts(team)


def test_a_pod_larger_than_each_node_until_nodes_are_made_on_demand(team: Team) -> None:
    """Quota for it would be held for ever: nodes of the sandbox have 64 CPUs at the most."""
    team.offers({"cpu": {"on-demand": "9999"}})
    team.apply(job(team.namespace, "large", requests={"cpu": "999"}))
    eventually(lambda: team.reason("large") == "NeverFits", what="the reason")
    message = team.workload("large")["status"]["message"]
    assert "the largest node of" in message
    assert "and a pod needs 999 cpu" in message
    team.patch("resourceflavor", team.flavor("on-demand"), {"spec": {"nodeProvisioning": "OnDemand"}})
    eventually(lambda: team.state("large") == "Admitted", what="the admission")


def test_a_resource_that_the_queue_does_not_cover(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "job", requests={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"}))
    waits(team, "ResourceNotCovered")
    assert team.workload("job")["status"]["message"] == (
        f"asks for ephemeral-storage and memory, which ClusterQueue {team.cluster_queue} does not cover"
    )


def test_a_job_that_requests_nothing_until_a_limit_range_gives_it_a_default(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "job", requests={}))
    waits(team, "NothingRequested")
    assert team.workload("job")["status"]["message"] == (
        f"requests none of what ClusterQueue {team.cluster_queue} covers: cpu"
    )
    limits = [{"type": "Container", "default": {"cpu": "500m"}}]
    kind = {"apiVersion": "v1", "kind": "LimitRange"}
    team.apply(
        {**kind, "metadata": {"name": "limits", "namespace": team.namespace}, "spec": {"limits": limits}}
    )
    starts(team)
    assert team.workload("job")["status"]["admission"]["podSets"][0]["usage"] == {"cpu": "500m"}


def test_no_flavor_that_suits(team: Team) -> None:
    team.offers({"cpu": {"spot": "1", "on-demand": "1"}})
    team.apply(job(team.namespace, "job", pod={"nodeSelector": {"instance-type": "other"}}))
    waits(team, "NoMatchingFlavor")
    assert "does not match instance-type=other" in team.workload("job")["status"]["message"]


def test_resource_claims(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    pod = {"resourceClaims": [{"name": "card", "resourceClaimName": "card"}]}
    team.apply(job(team.namespace, "job", pod=pod))
    waits(team, "ResourceClaims")


def test_a_priority_class_that_is_deleted_and_made_again(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}}, stopPolicy="Hold")
    name = team.priority_class("temporary", 7)
    team.apply(job(team.namespace, "job", pod={"priorityClassName": name}))
    waits(team, "ClusterQueueStopped")
    team.kubectl("delete", "priorityclass", name)
    waits(team, "PriorityClassNotFound")
    team.priority_class("temporary", 7)
    team.patch("cq", team.cluster_queue, {"spec": {"stopPolicy": "None"}})
    starts(team)


def test_a_workload_made_by_hand_is_counted_and_its_end_frees_the_quota(team: Team) -> None:
    team.offers({"cpu": {"spot": "2"}})
    pod_set = {
        "name": "main",
        "count": 2,
        "requests": {"cpu": "1"},
        "nodeSelector": {"instance-type": "spot"},
    }
    spec = {"queueName": "main", "podSets": [pod_set | {"tolerations": [{"operator": "Exists"}]}]}
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    team.apply({**kind, "metadata": {"name": "by-hand", "namespace": team.namespace}, "spec": spec})
    starts(team, "by-hand")
    team.apply(job(team.namespace, "job"))
    waits(team, "InsufficientQuota")
    team.kubectl("delete", "wl", "by-hand")
    starts(team)


def test_a_poisoned_workload_made_by_hand_harms_no_other(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "9e99"}}
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    spec = {"queueName": "main", "podSets": [pod_set]}
    team.apply({**kind, "metadata": {"name": "huge", "namespace": team.namespace}, "spec": spec})
    team.apply(job(team.namespace, "job"))
    waits(team, "InvalidRequests", "huge")
    assert "'9e99' is larger than 2^63-1" in team.workload("huge")["status"]["message"]
    starts(team)


def test_a_workload_made_by_hand_does_not_choose_its_priority(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}})
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    spec = {"queueName": "main", "priority": 2**31 - 1, "podSets": [{"name": "main", "count": 1}]}
    team.apply({**kind, "metadata": {"name": "greedy", "namespace": team.namespace}, "spec": spec})
    waits(team, "PriorityMismatch", "greedy")


def test_a_job_that_is_deleted_without_its_workload_leaves_nothing(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}})
    team.apply(job(team.namespace, "job"), job(team.namespace, "waits", requests={"cpu": "9"}))
    starts(team)
    waits(team, "NeverFits", "waits")
    for name in ("job", "waits"):
        team.kubectl("delete", "job", name, "--cascade=orphan")
    eventually(lambda: team.workloads() == {}, what="the Workloads to go")


def test_an_empty_queue_label_is_told(team: Team) -> None:
    team.apply(job(team.namespace, "job", queue=""))
    team.kubectl("label", "job", "job", "admitter.dev/queue-name=", "--overwrite")
    eventually(lambda: "QueueNotFound" in team.events("job"), what="an event that says so")


def test_a_job_deleted_while_it_is_being_admitted_leaves_nothing(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    for number in range(5):
        team.apply(job(team.namespace, f"brief-{number}", seconds=None))
        team.kubectl("delete", "job", f"brief-{number}")
    team.apply(job(team.namespace, "job"))
    eventually(lambda: team.state("job") == "Finished", what="the Job that stays to finish")
    eventually(lambda: list(team.workloads()) == ["job"], what="the other Workloads to go")


def test_what_waits_settles(team: Team) -> None:
    """A Job that waits is written once: nothing spins."""
    team.offers({"cpu": {"spot": "1"}})
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "instance-type", "operator": "In", "values": ["spot"]}]}
                ]
            }
        }
    }
    pod = {
        "affinity": affinity,
        "nodeSelector": {"instance-type": "spot"},
        "tolerations": [
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"operator": "Exists"},
        ],
    }
    team.apply(job(team.namespace, "job", pods=3, requests={"cpu": "1500m"}, pod=pod))
    waits(team, "NeverFits")
    version = team.workload("job")["metadata"]["resourceVersion"]
    team.apply(job(team.namespace, "later"))
    eventually(lambda: team.state("later") == "Finished", what="another Job to come and go")
    assert team.workload("job")["metadata"]["resourceVersion"] == version
    assert json.dumps(team.namespace) not in "".join(
        line for line in team.controller.log.splitlines() if '"level":"error"' in line
    )

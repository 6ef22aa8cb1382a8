"""Forged owners, Workloads, labels and statuses, and pods that are taken from their Job."""

import json

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, cluster_queue, elastic_quota, job, workload
from tests.cluster.people import Person
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MARKS = {"admitter.dev/workload": "x", "admitter.dev/cluster-queue": "x"}


def made_by_hand(team: Team, name: str = "forged", **metadata: object) -> Json:
    return workload(team.namespace, name, metadata=metadata)


def owner(manifest: Json) -> Json:
    kind = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
    return {
        **kind,
        "name": manifest["metadata"]["name"],
        "uid": manifest["metadata"]["uid"],
        "controller": True,
    }


def running(team: Team, attacker: Attacker) -> Json:
    """The pod of a Job that uses all of the quota."""
    team.offers({"cpu": {"on-demand": "1"}})
    attacker.create(job(team.namespace, "work", seconds=None))
    team.runs("work")
    (pod,) = team.pods("work")
    return pod


def test_a_workload_with_an_owner_is_the_controllers(team: Team, attacker: Attacker) -> None:
    """Else a Job would run on what was booked for another, or its Workload would go with something else."""
    attacker.create(job(team.namespace, "work", queue="absent"))
    whose = owner(attacker.job("work"))
    with attacker.refused("a Workload with an owner is made by Admitter's controller alone"):
        attacker.create(made_by_hand(team, ownerReferences=[whose]))
    with attacker.refused("admitter.dev/job-uid is set by Admitter's controller alone"):
        attacker.create(made_by_hand(team, labels={"admitter.dev/job-uid": whose["uid"]}))
    attacker.create(made_by_hand(team))
    eventually(lambda: team.workload("work"), what="the Workload of the Job")
    for name in ("forged", team.workload("work")["metadata"]["name"]):
        for owners in ([whose | {"name": "other", "uid": "other"}], None if name != "forged" else [whose]):
            with attacker.refused("a Workload with an owner is made by Admitter's controller alone"):
                attacker.patch("wl", name, {"metadata": {"ownerReferences": owners}})


def test_a_user_may_not_book_quota_for_itself(team: Team, attacker: Attacker) -> None:
    attacker.create(made_by_hand(team))
    admission = {"clusterQueue": team.cluster_queue, "podSets": []}
    with attacker.refused("forbidden"):
        attacker.patch("wl", "forged", {"status": {"admission": admission}}, "--subresource=status")
    attacker.create(made_by_hand(team, "with-status") | {"status": {"admission": admission}})
    assert "admission" not in team.workload("with-status").get("status", {})


def test_a_jobs_workload_asks_for_what_its_job_asks(team: Team, attacker: Attacker) -> None:
    pod = running(team, attacker)
    name = team.workload("work")["metadata"]["name"]
    for spec in ({"priority": 9}, {"queueName": "x"}, {"podSets": [{"name": "main", "count": 1}]}):
        with attacker.refused("only active can be changed"):
            attacker.patch("wl", name, {"spec": spec})
    assert [p["metadata"]["uid"] for p in team.pods("work")] == [pod["metadata"]["uid"]]


def test_marks_of_counted_pods_are_the_controllers(team: Team, attacker: Attacker) -> None:
    pod = running(team, attacker)
    name = pod["metadata"]["name"]
    words = "only Jobs that are admitted have pods with them"
    for labels in (dict.fromkeys(MARKS, "other"), dict.fromkeys(MARKS)):
        with attacker.refused(words):
            attacker.patch("pod", name, {"metadata": {"labels": labels}})
    with attacker.refused(words):
        attacker.patch("pod", name, {"metadata": {"annotations": {"admitter.dev/flavors": "{}"}}})
    marked = job(team.namespace, "marked", queue=None)
    marked["spec"]["template"]["metadata"]["labels"] = MARKS
    with attacker.refused("put into pod templates, and taken out, by Admitter's controller alone"):
        attacker.create(marked)


def test_a_counted_pod_is_not_taken_from_its_job(team: Team, attacker: Attacker) -> None:
    """The Job controller would let go of it and start another one, and both would run."""
    pod = running(team, attacker)
    name = pod["metadata"]["name"]
    words = "a pod that uses quota stays its Job's"
    for label in ("batch.kubernetes.io/controller-uid", "controller-uid"):
        for value in ("other", None):
            with attacker.refused(words):
                attacker.patch("pod", name, {"metadata": {"labels": {label: value}}})
    for owners in (None, [owner(attacker.job("work")) | {"controller": False}]):
        with attacker.refused(words):
            attacker.patch("pod", name, {"metadata": {"ownerReferences": owners}})
    attacker.patch("pod", name, {"metadata": {"labels": {"mine": "yes"}}})
    assert [p["metadata"]["uid"] for p in team.pods("work")] == [pod["metadata"]["uid"]]


def test_a_counted_pod_does_not_grow_in_place(installed: Cluster, team: Team, attacker: Attacker) -> None:
    """The role `edit` may not resize pods at all; a role of its own does not get past it."""
    pod = running(team, attacker)
    name = pod["metadata"]["name"]
    with attacker.refused("forbidden"):
        attacker.patch("pod", name, resized("2"), "--subresource=resize")
    person = Person(installed, team.namespace, f"{team.namespace}-resizer").edits()
    person.may({"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["*"]})
    resizer = Attacker(As(installed, person), team.namespace)
    is_able = [{"op": "add", "path": "/status/containerStatuses/0/resources", "value": {}}]
    team.kubectl(
        "patch", "pod", name, "--type=json", "--subresource=status", f"--patch={json.dumps(is_able)}"
    )
    with resizer.refused("requests of a pod that uses quota can't grow"):
        resizer.patch("pod", name, resized("2"), "--subresource=resize")
    with resizer.refused("requests of a pod that uses quota can't grow"):
        resizer.patch("pod", name, resized("1", memory="1Gi"), "--subresource=resize")
    resizer.patch("pod", name, resized("500m"), "--subresource=resize")
    with resizer.refused("requests of a pod that uses quota can't grow"):
        resizer.patch("pod", name, resized("1"), "--subresource=resize")


def resized(cpu: str, **more: str) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, **more}}}
    return {"spec": {"containers": [container]}}


class As(Cluster):
    """The cluster as seen by a user with a role of its own."""

    def __init__(self, cluster: Cluster, person: Person) -> None:
        super().__init__(kubectl=cluster.kubectl, kubeconfig=cluster.kubeconfig, context=cluster.context)
        object.__setattr__(self, "_person", person)

    def run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        """Run kubectl as the user."""
        return super().run_kubectl(*arguments, f"--as={self._person.name}", content=content)  # type: ignore[attr-defined]


def test_labels_of_capacity_are_output(team: Team, attacker: Attacker) -> None:
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}))
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    attacker.create(job(team.namespace, "work", queue="elastic-quota", seconds=None))
    team.runs("work")
    (pod,) = team.pods("work")
    forged = {"admitter.dev/capacity": "over-quota", "nos.nebuly.com/capacity": "over-quota"}
    attacker.patch("pod", pod["metadata"]["name"], {"metadata": {"labels": forged}})
    attacker.patch("wl", team.workload("work")["metadata"]["name"], {"metadata": {"labels": forged}})
    attacker.undone(
        lambda: {labels(pod).get(k) for pod in team.pods("work") for k in forged} == {"in-quota"},
        "label of the pod",
    )
    attacker.undone(
        lambda: labels(team.workload("work"))["admitter.dev/capacity"] == "in-quota", "label of the Workload"
    )
    team.kubectl("delete", "elasticquota", "quota")


def labels(manifest: Json) -> dict[str, str]:
    return dict(manifest["metadata"]["labels"])


def test_not_even_an_administrator_forges_what_the_controller_makes(team: Team, attacker: Attacker) -> None:
    manifest = cluster_queue(f"{team.namespace}-forged", {"cpu": {"default": "1"}})
    manifest["metadata"]["labels"] = {"admitter.dev/generated-for": team.namespace}
    administrator = Attacker(team.cluster, team.namespace)
    with administrator.refused("given by Admitter's controller alone"):
        administrator.create(manifest)
    team.offers({"cpu": {"on-demand": "1"}})
    for kind, name in (("cq", team.cluster_queue), ("lq", "main")):
        with administrator.refused("given by Admitter's controller alone"):
            administrator.patch(kind, name, {"metadata": {"labels": {"admitter.dev/generated-by": "person"}}})
    with attacker.refused("forbidden"):
        attacker.patch("lq", "main", {"spec": {"clusterQueue": "other"}})


def test_quota_and_weights_are_not_the_tenants(team: Team, attacker: Attacker) -> None:
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}))
    hard = {"hard": {"admitter.dev/namespace.weight": "100"}}
    metadata = {"name": "weight", "namespace": team.namespace}
    with attacker.refused("forbidden"):
        attacker.patch("elasticquota", "quota", {"spec": {"min": {"cpu": "100"}}})
    with attacker.refused("forbidden"):
        attacker.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": hard})
    quota = {"admitter.dev/namespace.quota": json.dumps({"cpu": "100"})}
    with attacker.refused("forbidden"):
        attacker.patch("namespace", team.namespace, {"metadata": {"annotations": quota}})
    with attacker.refused("forbidden"):
        attacker.patch("namespace", team.namespace, {"metadata": {"labels": {"team": "other"}}})
    team.kubectl("delete", "elasticquota", "quota")

"""The default queue of a namespace, by its label: a new team needs that and nothing else."""

import json
from functools import partial

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, elastic_quota, job, local_queue
from tests.cluster.people import JOBS, Person
from tests.cluster.pods import GATE, gates, pod
from tests.cluster.team import Team
from tests.cluster.test_abuse_manage_all import KUEUE_QUEUE, QUEUE, UNSUSPENDED, eager, is_queued
from tests.cluster.test_elastic_policies import queued
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

DEFAULT, BY_DEFAULT = "admitter.dev/default-queue", "admitter.dev/queue-by-default"


def defaults(team: Team, queue: str = "main", *more: str) -> None:
    """Label the namespace, and wait until the API server knows it."""
    team.kubectl("label", "namespace", team.namespace, f"{DEFAULT}={queue}", *more)
    eventually(partial(_is_known, team, queue), what="a label of the namespace that the API server knows")


def _is_known(team: Team, queue: str) -> bool:
    tried = team.cluster.run_kubectl(
        *("create", "--dry-run=server", "--output=json", "--filename=-"),
        content=json.dumps(eager(team.namespace, "tried")),
    )
    return is_queued(json.loads(tried), queue)


def cron_job(namespace: str, name: str) -> Json:
    """A CronJob of which the Jobs name no queue."""
    template = {"spec": eager(namespace, name)["spec"]}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": template}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def test_a_new_team_needs_a_label_on_its_namespace_and_nothing_else(team: Team, attacker: Attacker) -> None:
    name = f"q{team.namespace[-6:]}"
    expression = {"key": DEFAULT, "operator": "In", "values": [name]}
    rule = {"name": name, "namespaceSelector": {"matchExpressions": [expression]}}
    queue = team.offers({"cpu": {"on-demand": "1"}}, localQueues=rule)
    team.kubectl("delete", "localqueue", "main")  # that of `offers`
    defaults(team, name)
    attacker.create(job(team.namespace, "train", queue=None, suspend=False))
    eventually(lambda: team.state("train") == "Finished", what="a Job that has run")
    made = attacker.job("train")
    assert made["metadata"]["labels"][QUEUE] == made["metadata"]["annotations"][BY_DEFAULT] == name
    assert team.workload("train")["status"]["clusterQueue"] == queue
    attacker.create(pod(team.namespace, "free", None))
    assert gates(team.read("pod", "free")) == [], "pods without a queue run where it is not managed"
    team.kubectl("label", "namespace", team.namespace, "admitter.dev/managed=true")
    eventually(lambda: _is_gated(team), what="a managed namespace that the API server knows")
    attacker.create(pod(team.namespace, "counted", None))
    counted = team.read("pod", "counted")["metadata"]
    assert (counted["labels"][QUEUE], counted["annotations"][BY_DEFAULT]) == (name, name)
    eventually(lambda: team.state("counted") == "Admitted", what="a pod that was admitted")


def _is_gated(team: Team) -> bool:
    tried = ("create", "--dry-run=server", "--output=json", "--filename=-")
    made = json.loads(
        team.cluster.run_kubectl(*tried, content=json.dumps(pod(team.namespace, "tried", None)))
    )
    return GATE in gates(made)


def test_a_tenant_does_not_get_out_of_it_nor_into_another_queue(
    team: Team, attacker: Attacker, user: Cluster
) -> None:
    team.offers({"cpu": {"on-demand": "1"}})
    defaults(team)
    for name, labels in (("plain", {}), ("kueues", {KUEUE_QUEUE: "nope"}), ("empty", {QUEUE: ""})):
        attacker.create(eager(team.namespace, name, **labels))
        assert is_queued(attacker.job(name), "main")
        attacker.patch("job", name, UNSUSPENDED | {"metadata": {"labels": {QUEUE: None}}})
        assert is_queued(attacker.job(name), "main"), "put on again in the same request"
    for refused in ("other", ""):
        with pytest.raises(KubectlError, match="forbidden"):
            user.run_kubectl("label", "namespace", team.namespace, f"{DEFAULT}={refused}", "--overwrite")
    poor = Person(team.cluster, team.namespace, f"poor-{team.namespace}").may(JOBS)
    for manifest in (eager(team.namespace, "denied"), cron_job(team.namespace, "denied")):
        with pytest.raises(KubectlError, match="may not submit to queue main"):
            poor.makes(manifest)
    poor.submits_to("main").makes(cron_job(team.namespace, "taken"))
    assert is_queued(poor.makes(eager(team.namespace, "taken")), "main")


def test_what_a_job_names_and_a_quota_that_manages_all_come_before_it(team: Team, attacker: Attacker) -> None:
    queue = team.offers({"cpu": {"on-demand": "1"}})
    team.apply(local_queue(team.namespace, queue, "other"))
    defaults(team)
    attacker.create(
        eager(team.namespace, "named", **{QUEUE: "other"}),
        eager(team.namespace, "both", **{QUEUE: "main", KUEUE_QUEUE: "other"}),
    )
    assert [attacker.job(name)["metadata"]["labels"][QUEUE] for name in ("named", "both")] == [
        "other",
        "main",
    ]

    def by_kueues_label() -> bool:
        tried = ("create", "--dry-run=server", "--output=json", "--filename=-")
        asked = json.dumps(eager(team.namespace, "tried", **{KUEUE_QUEUE: "other"}))
        return is_queued(json.loads(attacker.kubectl(*tried, content=asked)), "other")

    eventually(by_kueues_label, what="a policy that knows the LocalQueue")
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}, manageAllJobs=True))
    eventually(lambda: queued(attacker.user, team.namespace), what="a policy that knows the quota")
    eventually(by_kueues_label, what="Kueue's label before both")
    attacker.patch("job", "both", {"metadata": {"labels": {"seen": "yes"}}})
    assert attacker.job("both")["metadata"]["labels"][QUEUE] == "main", "what is queued stays where it is"

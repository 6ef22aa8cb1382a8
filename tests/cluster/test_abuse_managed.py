"""Managed namespaces, where only what was admitted runs; and all others, which Admitter leaves alone."""

import json
from collections.abc import Callable

import pytest

from admitter.sandbox.cluster import KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, elastic_quota, job
from tests.cluster.pods import GATE, gates, maker, pod
from tests.cluster.team import Team
from tests.cluster.test_elastic_policies import queued
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MANAGED = "admitter.dev/managed=true"
QUEUE = "admitter.dev/queue-name"
MARK = "admitter.dev/workload"
NAMES_ITS_QUEUE = "is managed: a Job there names its queue in the label admitter.dev/queue-name"
NEVER_STARTS = "is managed: a Job without the label admitter.dev/queue-name neither starts there nor grows"


def plain(team: Team, name: str = "plain", **spec: object) -> Json:
    """A Job that names no queue."""
    return job(team.namespace, name, queue=None, seconds=None, **spec)  # type: ignore[arg-type]


def manage(team: Team) -> None:
    """Label the namespace, and wait until the API server knows it."""
    team.cluster.run_kubectl("label", "namespace", team.namespace, MANAGED)
    eventually(lambda: not allowed(team, plain(team, "tried")), what="a managed namespace")


def allowed(team: Team, manifest: Json) -> bool:
    """Whether the administrator could create something now."""
    administrator = Attacker(team.cluster, team.namespace)
    return tried(
        lambda: administrator.kubectl("create", "--filename=-", "--dry-run=server", content=text(manifest))
    )


def tried(action: Callable[[], object]) -> bool:
    """Whether an action is not refused."""
    try:
        action()
    except KubectlError:
        return False
    return True


def text(manifest: Json) -> str:
    return json.dumps(manifest)


@pytest.fixture
def managed(team: Team) -> Team:
    """A managed namespace with a queue."""
    team.offers({"cpu": {"on-demand": "2"}})
    manage(team)
    return team


def test_every_job_of_a_managed_namespace_has_a_queue(managed: Team, attacker: Attacker) -> None:
    for manifest in (plain(managed), plain(managed, suspend=False)):
        with attacker.refused(NAMES_ITS_QUEUE):
            attacker.create(manifest)
    empty = plain(managed)
    empty["metadata"]["labels"] = {QUEUE: ""}
    with attacker.refused(NAMES_ITS_QUEUE):
        attacker.create(empty)
    attacker.create(job(managed.namespace, "work", seconds=None, suspend=False))
    managed.runs("work")


def test_suspended_without_label_and_unsuspended_is_no_way_out(managed: Team, attacker: Attacker) -> None:
    attacker.create(job(managed.namespace, "waits", pods=9))
    for label in (None, ""):
        with attacker.refused("is managed: a Job there stays in a queue"):
            attacker.patch("job", "waits", {"metadata": {"labels": {QUEUE: label}}})


def test_jobs_from_before_end_but_neither_start_nor_grow(team: Team, attacker: Attacker) -> None:
    attacker.create(plain(team, "runs", suspend=False, completions=2), plain(team, "waits"))
    team.runs("runs")
    manage(team)
    with attacker.refused(NEVER_STARTS):
        attacker.patch("job", "waits", {"spec": {"suspend": False}})
    with attacker.refused(NEVER_STARTS):
        attacker.patch("job", "runs", {"spec": {"parallelism": 2}})
    team.runs("runs")
    attacker.patch("job", "runs", {"spec": {"suspend": True}})
    with attacker.refused(NEVER_STARTS):
        attacker.patch("job", "runs", {"spec": {"suspend": False}})
    team.offers({"cpu": {"on-demand": "2"}})
    attacker.patch("job", "runs", {"metadata": {"labels": {QUEUE: "main"}}})
    team.runs("runs")
    attacker.kubectl("delete", "job", "waits", "runs")
    attacker.undone(lambda: not team.read("jobs")["items"], "deleted Jobs")


def test_an_elastic_quota_takes_jobs_that_name_no_queue(team: Team, attacker: Attacker) -> None:
    team.apply(elastic_quota(team.namespace, min={"cpu": "1"}, manageAllJobs=True))
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    eventually(lambda: queued(team.cluster, team.namespace), what="API server that knows the quota")
    team.cluster.run_kubectl("label", "namespace", team.namespace, MANAGED)
    eventually(lambda: not allowed(team, pod(team.namespace, "pod", None)), what="a managed namespace")
    attacker.create(plain(team, suspend=False))
    team.runs("plain")
    assert attacker.job("plain")["metadata"]["labels"] == {QUEUE: "elastic-quota"}
    team.kubectl("delete", "elasticquota", "quota")


def test_a_cronjobs_jobs_need_a_queue_too(managed: Team, attacker: Attacker) -> None:
    """Whether a rule takes them is only known when they are made, so it is the Job that is refused."""
    for name, queue in (("queued", "main"), ("plain", None)):
        made = job(managed.namespace, name, queue=queue, seconds=None)
        template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
        spec = {"schedule": "0 0 1 1 *", "jobTemplate": template}
        metadata = {"name": name, "namespace": managed.namespace}
        attacker.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec})
    attacker.kubectl("create", "job", "from-queued", "--from=cronjob/queued")
    managed.runs("from-queued")
    with attacker.refused(NAMES_ITS_QUEUE):
        attacker.kubectl("create", "job", "from-plain", "--from=cronjob/plain")
    every_minute = {"spec": {"schedule": "* * * * *"}}
    attacker.patch("cronjob", "plain", every_minute)
    eventually(
        lambda: any(
            NAMES_ITS_QUEUE in e["message"]
            for e in managed.read("events", "--field-selector=involvedObject.name=plain")["items"]
        ),
        what="an event on the CronJob",
        timeout=200,
    )
    assert managed.pods("plain") == []


def test_pods_that_name_no_queue_are_made_by_jobs_alone(managed: Team, attacker: Attacker) -> None:
    words = "pods are made there by Jobs in queues, or name their queue"
    for queue in (None, ""):
        with attacker.refused(words):
            attacker.create(pod(managed.namespace, "pod", queue))
    for kind in ("ReplicaSet", "Deployment"):
        attacker.create(maker(managed.namespace, kind, kind.lower(), None))
    eventually(
        lambda: any(words in e["message"] for e in managed.read("events")["items"]),
        what="an event of the ReplicaSet",
    )
    assert managed.read("pods")["items"] == []


def test_a_pod_there_that_names_a_queue_is_gated(managed: Team, attacker: Attacker) -> None:
    attacker.create(pod(managed.namespace, "work"), maker(managed.namespace, "ReplicaSet", "set"))
    attacker.create(pod(managed.namespace, "waits"))
    eventually(lambda: len(pods(managed)) == 3, what="a pod of the ReplicaSet")
    assert all(GATE in gates(each) or MARK in each["metadata"]["labels"] for each in pods(managed))
    eventually(lambda: sum(GATE in gates(each) for each in pods(managed)) == 1, what="two that are admitted")


def test_a_queued_pod_there_chooses_neither_node_nor_scheduler(managed: Team, attacker: Attacker) -> None:
    with attacker.refused("does not name its node, since it would run before it is admitted"):
        attacker.create(pod(managed.namespace, "bound", nodeName="absent"))
    with attacker.refused(
        "is bound by the scheduler of the cluster, and spec.schedulerName of this one is own"
    ):
        attacker.create(pod(managed.namespace, "bound", schedulerName="own"))
    assert pods(managed) == []


def pods(team: Team) -> list[Json]:
    return list(team.read("pods")["items"])


def test_the_namespace_lists_other_users_that_make_pods(managed: Team, attacker: Attacker) -> None:
    makers = f"carol, system:serviceaccount:{managed.namespace}:user"
    with attacker.refused("forbidden"):
        attacker.patch(
            "namespace",
            managed.namespace,
            {"metadata": {"annotations": {"admitter.dev/pod-makers": makers}}},
        )
    managed.patch(
        "namespace",
        managed.namespace,
        {"metadata": {"annotations": {"admitter.dev/pod-makers": makers}}},
    )
    eventually(
        lambda: tried(lambda: attacker.create(pod(managed.namespace, "pod", None))),
        what="a pod of a listed user",
    )


def test_a_user_that_may_not_write_namespaces_does_not_manage_them(managed: Team, attacker: Attacker) -> None:
    for value in ("false", None):
        with attacker.refused("forbidden"):
            attacker.patch(
                "namespace", managed.namespace, {"metadata": {"labels": {"admitter.dev/managed": value}}}
            )

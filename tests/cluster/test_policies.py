"""What a user with the role `edit` may do to queued Jobs, and what is kept from such a user."""

import json

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json, job, local_queue
from tests.cluster.team import Team

pytestmark = pytest.mark.cluster

WORKLOAD = "workloads.admitter.dev"


def apply(cluster: Cluster, manifest: Json) -> None:
    cluster.run_kubectl("apply", "-f-", content=json.dumps(manifest))


def patch(cluster: Cluster, namespace: str, spec: Json, *, name: str = "work") -> None:
    text = json.dumps({"spec": spec})
    cluster.run_kubectl("patch", "job", name, f"--namespace={namespace}", "--type=merge", f"--patch={text}")


def spec_of(cluster: Cluster, namespace: str, name: str = "work") -> Json:
    spec: Json = cluster.read("job", name, f"--namespace={namespace}")["spec"]
    return spec


def test_a_queued_job_is_suspended_however_it_is_created(user: Cluster, namespace: str) -> None:
    apply(user, job(namespace, "work", suspend=False))
    assert spec_of(user, namespace)["suspend"] is True
    unset = job(namespace, "unset")
    del unset["spec"]["suspend"]
    apply(user, unset)
    assert spec_of(user, namespace, "unset")["suspend"] is True


def test_unsuspending_by_hand_changes_nothing(user: Cluster, namespace: str) -> None:
    apply(user, job(namespace, "work", queue="absent"))
    patch(user, namespace, {"suspend": False})
    assert spec_of(user, namespace)["suspend"] is True


def test_applying_the_manifest_again_does_not_stop_a_running_job(user: Cluster, team: Team) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    manifest = job(team.namespace, "work", pods=2, seconds=None)
    apply(user, manifest)
    team.runs("work", pods=2)
    apply(user, manifest)
    assert spec_of(user, team.namespace)["suspend"] is False


def test_an_admitted_job_may_shrink_but_not_grow(user: Cluster, team: Team) -> None:
    apply(user, job(team.namespace, "work", pods=2, seconds=None))
    patch(user, team.namespace, {"parallelism": 3})  # while it waits it may ask for what it likes
    team.offers({"cpu": {"on-demand": "3"}})
    team.runs("work", pods=2)  # that many completions are left
    with pytest.raises(KubectlError, match=r"can't grow: pause it by its Workload's spec.active=false"):
        patch(user, team.namespace, {"parallelism": 4})
    patch(user, team.namespace, {"parallelism": 1})
    assert spec_of(user, team.namespace)["parallelism"] == 1


def test_jobs_that_are_not_queued_are_nobodys_business(user: Cluster, namespace: str) -> None:
    apply(user, job(namespace, "work", queue=None, suspend=False, seconds=None))
    assert spec_of(user, namespace)["suspend"] is False
    patch(user, namespace, {"suspend": True})
    assert spec_of(user, namespace)["suspend"] is True
    patch(user, namespace, {"suspend": False, "parallelism": 3})
    assert spec_of(user, namespace)["parallelism"] == 3


def test_a_user_pauses_a_workload_but_does_not_write_its_status(user: Cluster, namespace: str) -> None:
    pod_sets = [{"name": "main", "count": 1}]
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    metadata = {"name": "work", "namespace": namespace}
    apply(user, {**kind, "metadata": metadata, "spec": {"queueName": "absent", "podSets": pod_sets}})
    scope = f"--namespace={namespace}"
    user.run_kubectl("patch", WORKLOAD, "work", scope, "--type=merge", '-p={"spec": {"active": false}}')
    forged = json.dumps({"status": {"admission": {"clusterQueue": "x", "podSets": []}}})
    change = ["patch", WORKLOAD, "work", scope, "--type=merge", "--subresource=status", f"-p={forged}"]
    with pytest.raises(KubectlError, match="forbidden"):
        user.run_kubectl(*change)


def test_not_even_an_administrator_writes_a_workloads_status(installed: Cluster, namespace: str) -> None:
    pod_sets = [{"name": "main", "count": 1}]
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    metadata = {"name": "work", "namespace": namespace}
    apply(installed, {**kind, "metadata": metadata, "spec": {"queueName": "absent", "podSets": pod_sets}})
    change = ["patch", WORKLOAD, "work", f"--namespace={namespace}", "--type=merge", "--subresource=status"]
    with pytest.raises(KubectlError, match="written by Admitter's controller alone"):
        installed.run_kubectl(*change, '-p={"status": {"state": "Finished"}}')


def test_quota_is_the_administrators(user: Cluster, namespace: str) -> None:
    assert user.read("localqueues", f"--namespace={namespace}")["items"] == []
    with pytest.raises(KubectlError, match="forbidden"):
        apply(user, local_queue(namespace, "total"))
    for kind in ("clusterqueues", "resourceflavors"):
        with pytest.raises(KubectlError, match="forbidden"):
            user.run_kubectl("delete", kind, "--all")


def test_a_fresh_workload_shows_as_pending(installed: Cluster, namespace: str) -> None:
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    metadata = {"name": "fresh", "namespace": namespace}
    pod_sets = [{"name": "main", "count": 1}]
    apply(installed, {**kind, "metadata": metadata, "spec": {"queueName": "main", "podSets": pod_sets}})
    row = installed.run_kubectl("get", "wl", "fresh", f"--namespace={namespace}").splitlines()[1].split()
    assert row[:4] == ["fresh", "main", "0", "Pending"]


FORGED = {"admitter.dev/workload": "x", "admitter.dev/cluster-queue": "total"}


def test_pods_are_not_counted_on_anybodys_word(user: Cluster, namespace: str) -> None:
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1000000"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "forged", "namespace": namespace, "labels": FORGED},
        "spec": {"containers": [container]},
    }
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        apply(user, pod)
    del pod["metadata"]["labels"]  # type: ignore[attr-defined]
    apply(user, pod)
    labels = json.dumps({"metadata": {"labels": FORGED}})
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        user.run_kubectl("patch", "pod", "forged", f"--namespace={namespace}", f"--patch={labels}")


def test_a_user_may_not_mark_a_template_as_admitted(user: Cluster, namespace: str) -> None:
    forged = job(namespace, "forged", queue=None)
    forged["spec"]["template"]["metadata"]["labels"] = FORGED
    with pytest.raises(KubectlError, match="put into pod templates, and taken out, by Admitter's"):
        apply(user, forged)


def test_of_a_workload_a_user_changes_only_whether_it_is_active(user: Cluster, namespace: str) -> None:
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    metadata = {"name": "work", "namespace": namespace}
    apply(user, {**kind, "metadata": metadata, "spec": {"queueName": "absent", "podSets": pod_sets}})
    change = ["patch", WORKLOAD, "work", f"--namespace={namespace}", "--type=merge"]
    for spec in ({"priority": 9}, {"queueName": "other"}, {"podSets": [{"name": "main", "count": 2}]}):
        with pytest.raises(KubectlError, match="only active can be changed"):
            user.run_kubectl(*change, f"-p={json.dumps({'spec': spec})}")
    user.run_kubectl(*change, '-p={"spec": {"active": false}}')

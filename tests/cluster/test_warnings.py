"""What is taken and probably not meant, kubectl says (manifests/38-warning-policy.yaml)."""

import json
import subprocess
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json, cluster_queue, elastic_quota, job
from tests.cluster.pods import GATE, maker, pod

pytestmark = pytest.mark.cluster


def warned(cluster: Cluster, *arguments: str, content: Json | None = None) -> list[str]:
    """The warnings that kubectl prints for a command that succeeds."""
    command = [str(cluster.kubectl), f"--kubeconfig={cluster.kubeconfig}"]
    command += [f"--context={cluster.context}"] if cluster.context else []
    done = subprocess.run(
        [*command, *arguments], input=json.dumps(content or {}), capture_output=True, text=True, check=True
    )
    return [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]


def applied(cluster: Cluster, made: Json, *options: str) -> list[str]:
    return warned(cluster, "apply", "--filename=-", *options, content=made)


def cron_job(
    namespace: str, *, labels: Json | None = None, jobs: Json | None = None, pods: Json | None = None
) -> Json:
    made = job(namespace, "often", queue=None)
    made["spec"]["template"].setdefault("metadata", {})["labels"] = pods or {}
    template = {"metadata": {"labels": jobs or {}}, "spec": made["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "often", "namespace": namespace, "labels": labels or {}},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template},
    }


QUEUE = {"admitter.dev/queue-name": "main"}
TINY: dict[str, Json] = {
    "requests": {"requests": {"memory": "128"}, "limits": {"memory": "1Gi"}},
    "limits": {"limits": {"memory": "128"}},
}
"""Resources of a container that requests 128 bytes: by themselves, and by their limits alone."""
MAKERS = ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ReplicationController")


def test_a_user_that_sets_suspend_is_told_each_time_that_it_has_no_effect(
    user: Cluster, namespace: str
) -> None:
    assert applied(user, job(namespace, "work", queue="absent")) == []
    patch = ["patch", "job", "work", f"--namespace={namespace}", "--type=merge"]
    for _ in range(2):
        (told,) = warned(user, *patch, '-p={"spec": {"suspend": false}}')
        assert "spec.suspend of a queued Job is set by Admitter alone, and stays true" in told
    assert warned(user, *patch, '-p={"metadata": {"labels": {"x": "y"}}}') == []
    assert user.read("job", "work", f"--namespace={namespace}")["spec"]["suspend"] is True


def test_a_queue_that_is_named_where_nothing_reads_it_is_told(user: Cluster, namespace: str) -> None:
    (told,) = applied(user, cron_job(namespace, labels=QUEUE))
    assert "queues none of its Jobs: put it into spec.jobTemplate.metadata.labels" in told
    (told,) = applied(user, cron_job(namespace, pods=QUEUE))
    assert "spec.jobTemplate.spec.template.metadata.labels: the label" in told
    made = job(namespace, "work", queue=None)
    made["metadata"]["labels"] = {"app": "work"}  # a Job without any gets those of its pods
    made["spec"]["template"].setdefault("metadata", {})["labels"] = QUEUE
    (told,) = applied(user, made)
    assert "spec.template.metadata.labels: the label admitter.dev/queue-name of pods queues no Job" in told


def test_a_queue_or_group_of_pods_that_nothing_reads_is_told(user: Cluster, namespace: str) -> None:
    for kind in MAKERS[2:]:
        made = maker(namespace, kind, kind.lower(), None)
        made["metadata"]["labels"] = QUEUE
        (told,) = applied(user, made)
        assert f"of a {kind} queues none of its pods: put it into spec.template.metadata.labels" in told
    made = maker(namespace, "ReplicaSet", "fine", "main")
    made["metadata"]["labels"] = QUEUE
    assert applied(user, made) == []
    (told,) = applied(user, pod(namespace, "alone", None, labels={"admitter.dev/pod-group": "team"}))
    assert "of a pod that names no queue groups nothing" in told
    small = pod(namespace, "small")
    small["spec"]["containers"][0]["resources"]["requests"]["memory"] = "128m"
    words = "requests memory 128m, which is less than one MiB"
    assert any(words in line for line in applied(user, small)), "Kubernetes warns of the fraction too"
    assert applied(user, pod(namespace, "fine")) == []


@pytest.mark.parametrize(
    ("memory", "suspicious"), [("128", True), ("128m", True), ("1Mi", False), (0, False)]
)
def test_memory_in_bytes_is_told(user: Cluster, namespace: str, memory: str | int, suspicious: bool) -> None:
    told = applied(user, job(namespace, "work", queue="absent", requests={"cpu": "1", "memory": str(memory)}))
    words = f"requests memory {memory}, which is less than one MiB"
    assert any(words in line for line in told) is suspicious


def with_container(made: Json, field: str, resources: Json) -> Json:
    """What has a pod template, or the pod, with one more container of a field."""
    template = made["spec"].get("jobTemplate", made)["spec"].get("template", made)
    template["spec"].setdefault(field, []).append({"name": "more", "image": "work", "resources": resources})
    return made


def asks_in_bytes(told: list[str]) -> bool:
    """Whether warnings say that the container asks for 128 bytes."""
    return any("container more requests memory 128, which is less than one MiB" in line for line in told)


@pytest.mark.parametrize("part", TINY)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_memory_in_bytes_of_any_container_is_told(
    user: Cluster, namespace: str, field: str, part: str
) -> None:
    def told(made: Json) -> bool:
        return asks_in_bytes(applied(user, with_container(made, field, TINY[part]), "--dry-run=server"))

    assert told(job(namespace, "work", queue="absent"))
    assert told(cron_job(namespace, jobs=QUEUE))
    assert told(pod(namespace, "work", schedulingGates=[{"name": GATE}]))
    assert [kind for kind in MAKERS if not told(maker(namespace, kind, "work"))] == []
    unqueued = (job(namespace, "work", queue=None), pod(namespace, "work", None))
    assert not any(told(made) for made in (*unqueued, maker(namespace, "Deployment", "work", None)))


def test_memory_in_bytes_is_told_of_one_of_more_containers_than_can_be_stored(
    user: Cluster, namespace: str
) -> None:
    """The API server looks through them all, though it bounds what a policy may cost."""
    made = job(namespace, "work", queue="absent", requests={"cpu": "1", "memory": "1Gi"})
    pod = made["spec"]["template"]["spec"]
    pod["containers"] = [{**pod["containers"][0], "name": f"c{number}"} for number in range(12000)]
    with_container(made, "initContainers", TINY["limits"])
    assert asks_in_bytes(applied(user, made, "--server-side", "--dry-run=server"))


def test_quota_of_memory_in_bytes_is_told(installed: Cluster, namespace: str) -> None:
    def tried(made: Json) -> list[str]:
        return warned(installed, "create", "--dry-run=server", "--filename=-", content=made)

    (told,) = tried(cluster_queue(namespace, {"memory": {"a": "64"}}))
    assert "resource memory, flavor a: quota.min is 64, which is less than one MiB" in told
    (told,) = tried(cluster_queue(namespace, {}, limits={"memory": "5"}))
    assert "limits.memory is 5" in told
    (told,) = tried(elastic_quota(namespace, min={"cpu": "1", "memory": "64"}))
    assert "min.memory is 64" in told
    fine: tuple[Any, ...] = (
        cluster_queue(namespace, {"memory": {"a": "64Gi"}}),
        elastic_quota(namespace, min={"cpu": 1}),
    )
    assert [tried(made) for made in fine] == [[], []]

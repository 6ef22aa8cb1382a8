"""How pods live on the simulated nodes: with the real scheduler, Job controller and API server."""

import json
import uuid
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from admitter.names import SIMULATED_RUNTIME_ANNOTATION
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.sandbox.helpers import eventually

pytestmark = pytest.mark.cluster

NODE_KINDS = [pytest.param("spot", id="tainted node"), pytest.param("on-demand", id="untainted node")]
TOLERATIONS = {"spot": [{"key": "spot", "value": "true", "effect": "NoSchedule"}], "on-demand": []}


@pytest.fixture
def namespace(sandbox: Cluster) -> Iterator[str]:
    name = f"simulation-{uuid.uuid4().hex[:8]}"
    sandbox.run_kubectl("create", "namespace", name)
    yield name
    sandbox.run_kubectl("delete", "namespace", name, "--wait=false")


def pod_template(kind: str, runtime: str | None) -> dict[str, Any]:
    return {
        "metadata": {"annotations": {SIMULATED_RUNTIME_ANNOTATION: runtime} if runtime else {}},
        "spec": {
            "nodeSelector": {"instance-type": kind},
            "tolerations": TOLERATIONS[kind],
            "restartPolicy": "Never",
            "initContainers": [
                {"name": "prepare", "image": "none"},
                {"name": "beside", "image": "none", "restartPolicy": "Always"},
            ],
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "second", "image": "none"},
            ],
        },
    }


def create_job(cluster: Cluster, namespace: str, kind: str, runtime: str | None) -> str:
    name = f"job-{uuid.uuid4().hex[:8]}"
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": 2, "completions": 2, "template": pod_template(kind, runtime)},
    }
    create(cluster, namespace, job)
    return name


def create(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> None:
    cluster.run_kubectl("create", f"--namespace={namespace}", "--filename=-", content=json.dumps(manifest))


def read_pods(cluster: Cluster, namespace: str, job: str) -> list[dict[str, Any]]:
    pods = cluster.read("pods", f"--namespace={namespace}", f"--selector=job-name={job}")["items"]
    assert isinstance(pods, list)
    return pods


def phases(cluster: Cluster, namespace: str, job: str) -> list[str]:
    return [pod["status"]["phase"] for pod in read_pods(cluster, namespace, job)]


def both_run(cluster: Cluster, namespace: str, job: str) -> bool:
    return phases(cluster, namespace, job) == ["Running", "Running"]


def succeeded(cluster: Cluster, namespace: str, job: str) -> bool:
    status = cluster.read("job", job, f"--namespace={namespace}")["status"]
    return bool(status.get("succeeded") == 2)


@pytest.mark.parametrize("kind", NODE_KINDS)
def test_a_job_completes_after_its_runtime_and_one_without_runs_on(
    sandbox: Cluster, namespace: str, kind: str
) -> None:
    endless = create_job(sandbox, namespace, kind, None)
    eventually(lambda: both_run(sandbox, namespace, endless), "the endless Job's pods run")
    short = create_job(sandbox, namespace, kind, "1")
    eventually(lambda: succeeded(sandbox, namespace, short), "the short Job has succeeded")

    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in sandbox.read("nodes")["items"]}
    for pod in read_pods(sandbox, namespace, short):
        assert labels[pod["spec"]["nodeName"]]["instance-type"] == kind
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        ran = datetime.fromisoformat(ended["finishedAt"]) - datetime.fromisoformat(ended["startedAt"])
        assert 1 <= ran.total_seconds() <= 10
    assert both_run(sandbox, namespace, endless)


def test_a_runtime_is_seconds_or_a_duration_and_anything_else_is_none(
    sandbox: Cluster, namespace: str
) -> None:
    wrong = [create_job(sandbox, namespace, "on-demand", value) for value in ("soon", "-1", "1 s", "0x1s")]
    for job in wrong:
        eventually(partial(both_run, sandbox, namespace, job), "the pods run")
    right = [create_job(sandbox, namespace, "on-demand", value) for value in ("0.5", "600ms", "0m0.5s")]
    for job in right:
        eventually(partial(succeeded, sandbox, namespace, job), "the Job has succeeded")
    for job in wrong:
        assert both_run(sandbox, namespace, job)


@pytest.mark.parametrize("kind", NODE_KINDS)
def test_a_suspended_jobs_pods_go(sandbox: Cluster, namespace: str, kind: str) -> None:
    job = create_job(sandbox, namespace, kind, None)
    eventually(lambda: both_run(sandbox, namespace, job), "the pods run")
    sandbox.run_kubectl(
        "patch", "job", job, f"--namespace={namespace}", "--type=merge", '--patch={"spec":{"suspend":true}}'
    )
    eventually(lambda: not read_pods(sandbox, namespace, job), "the suspended Job has no pods")
    status = sandbox.read("job", job, f"--namespace={namespace}")["status"]
    assert not status.get("failed")


def test_a_deleted_pod_fails_first_and_stays_as_long_as_it_has_a_finalizer(
    sandbox: Cluster, namespace: str
) -> None:
    template = pod_template("on-demand", None)
    metadata = {"name": "kept", "finalizers": ["example.com/keep"]}
    create(sandbox, namespace, {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata})

    def read() -> dict[str, Any]:
        return sandbox.read("pod", "kept", f"--namespace={namespace}")

    eventually(lambda: read()["status"]["phase"] == "Running", "the pod runs")
    sandbox.run_kubectl("delete", "pod", "kept", f"--namespace={namespace}", "--wait=false")
    eventually(lambda: read()["metadata"].get("deletionGracePeriodSeconds") == 0, "the node lets go of it")
    assert read()["status"]["phase"] == "Failed"

    sandbox.run_kubectl(
        "patch",
        "pod",
        "kept",
        f"--namespace={namespace}",
        "--type=merge",
        '--patch={"metadata":{"finalizers":null}}',
    )
    with pytest.raises(KubectlError, match="not found"):
        eventually(lambda: read() is None, "it is gone")


def test_a_pod_is_ready_as_a_kubelet_would_report_it(sandbox: Cluster, namespace: str) -> None:
    job = create_job(sandbox, namespace, "on-demand", None)
    eventually(lambda: both_run(sandbox, namespace, job), "the pods run")
    status = read_pods(sandbox, namespace, job)[0]["status"]

    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Ready"] == conditions["ContainersReady"] == conditions["PodScheduled"] == "True"
    assert [list(each["state"]) for each in status["containerStatuses"]] == [["running"], ["running"]]
    assert [list(each["state"]) for each in status["initContainerStatuses"]] == [["terminated"], ["running"]]
    assert status["podIP"].startswith("10.244.")

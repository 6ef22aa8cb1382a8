"""Snapshots: what they keep, what they leave out, and what is wrong with a file."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from admitter.cache.node_views import parse_node
from admitter.cache.pod_views import parse_pod
from admitter.cache.views import parse_job, parse_workload
from admitter.client.store import key_of
from admitter.convert.gpus import GpuSettings
from admitter.convert.settings import Settings
from admitter.convert.workloads import RequeueBy
from admitter.documents import ManifestError
from admitter.insight.snapshot_file import dump, facts, load, reduced
from tests.insight.states import NOW, State

SECRET = "hunter2"


def whole_job() -> dict[str, Any]:
    """A Job with all that no other user is to read."""
    container = {
        "name": "main",
        "image": f"registry.example.com/{SECRET}",
        "command": [SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
        "envFrom": [{"secretRef": {"name": SECRET}}],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
        "imagePullSecrets": [{"name": SECRET}],
        "nodeSelector": {"kind": "gpu"},
    }
    metadata = {
        "name": "train",
        "namespace": "a",
        "uid": "1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"admitter.dev/queue-name": "main", "note": SECRET},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET},
    }
    return {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": pod}}, "status": {}}


def test_nothing_secret_is_kept_and_all_that_is_read() -> None:
    job = whole_job()
    kept = reduced("jobs", job)
    assert SECRET not in orjson.dumps(kept).decode()
    assert parse_job(kept) == parse_job(job)


def test_pods_and_nodes_keep_what_is_read() -> None:
    pod = whole_job()
    pod["metadata"]["labels"] |= {"admitter.dev/workload": "w", "admitter.dev/cluster-queue": "q"}
    notes = {"admitter.dev/flavors": '{"cpu": "default"}', "admitter.dev/workload-uid": "u"}
    pod["metadata"]["annotations"] |= notes
    pod = {
        "metadata": pod["metadata"],
        "spec": {**pod["spec"]["template"]["spec"], "nodeName": "n"},
        "status": {
            "phase": "Running",
            "hostIP": SECRET,
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True", "message": SECRET},
                {"type": SECRET, "status": "True"},
            ],
        },
    }
    kept = reduced("pods", pod)
    assert SECRET not in orjson.dumps(kept).decode()
    assert parse_pod(kept) == parse_pod(pod)
    assert (parse_pod(kept).node, parse_pod(kept).trouble) == ("n", None)
    node = {
        "metadata": {"name": "n", "uid": "1", "resourceVersion": "1", "labels": {"kind": "gpu"}},
        "spec": {
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "unschedulable": True,
            "podCIDR": SECRET,
        },
        "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
            "images": [{"names": [SECRET]}],
        },
    }
    kept = reduced("nodes", node)
    assert SECRET not in orjson.dumps(kept).decode()
    assert parse_node(kept) == parse_node(node)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total", team="x")
    held = state.holds("a", "runs", {"cpu": ("2", "default")}, cluster_queue="total")
    settings = Settings(RequeueBy.EVICTION, GpuSettings(80, {"example.com/gpu": None}))
    path = tmp_path / "state.json"
    path.write_bytes(dump(state.snapshot(settings)))
    known = facts(load(path))
    assert (known.taken, known.settings) == (NOW, settings)
    assert known.views["workloads"] == {key_of(held["metadata"]): parse_workload(held)}
    assert set(known.views["clusterqueues"]) == {("", "total")}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "is no Snapshot"),
        ('{"kind": "List", "apiVersion": "v1"}', "admitter snapshot makes them"),
        (
            '{"kind": "Snapshot", "apiVersion": "admitter.dev/v1alpha1"}',
            "is no whole Snapshot: taken: is missing",
        ),
    ],
    ids=["no-json", "no-object", "another-kind", "cut"],
)
def test_what_is_none_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(ManifestError, match=words):
        load(path)


def test_an_object_that_can_not_be_read_harms_no_other() -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.holds("a", "runs", {"cpu": ("2", "default")}, cluster_queue="total")
    state.put("workloads", "invalid", "a", spec={}, metadata={"resourceVersion": "none"})
    assert set(facts(state.snapshot()).views["workloads"]) == {("a", "runs")}

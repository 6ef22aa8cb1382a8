"""`admitter lint` of pods that name a queue."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import Json, cluster_queue, elastic_quota, local_queue, resource_flavor
from tests.cluster.pods import GROUP, group_pod, pod

QUEUE = [
    resource_flavor("default", {}),
    cluster_queue("total", {"cpu": {"default": "9"}}),
    local_queue("team", "total"),
]


def found(tmp_path: Path, *manifests: Json, exit_code: int = 1) -> dict[tuple[str, str], str]:
    """Severity and message by rule and object, without what is said of queues."""
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump_all([*QUEUE, *manifests]))
    answer = CliRunner().invoke(app, ["lint", str(path), "-o", "json", "--min-severity", "warning"])
    assert answer.exit_code == exit_code, answer.output
    return {(each["rule"], each["object"]): each["message"] for each in json.loads(answer.stdout)}


def test_pods_that_are_as_they_should_be_are_left_alone(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{n}", "tune") for n in range(2)]
    of_quota = [elastic_quota("lab", min={"cpu": "4"}), pod("lab", "probe", "elastic-quota")]
    assert found(tmp_path, *pods, pod("team", "train"), *of_quota, exit_code=0) == {}


def test_a_queue_that_is_not_there(tmp_path: Path) -> None:
    alias = pod("team", "foreign", None, labels={"kueue.x-k8s.io/queue-name": "gone"})
    pods = [pod("team", "lost", "gone"), pod("lab", "probe", "elastic-quota"), alias]
    assert found(tmp_path, *pods) == {
        ("NoSuchQueue", "Pod team/lost"): "names LocalQueue gone, which does not exist: it waits for ever",
        ("NoSuchQueue", "Pod lab/probe"): "names the elastic quota of namespace lab, which has none",
        ("InvalidSpec", "Pod team/foreign"): (
            "its label kueue.x-k8s.io/queue-name names LocalQueue gone, which is not there: it is not queued"
        ),
    }


def test_a_class_that_is_not_there(tmp_path: Path) -> None:
    classes = {"apiVersion": "admitter.dev/v1alpha1", "kind": "WorkloadPriorityClass"}
    urgent = {**classes, "metadata": {"name": "urgent"}, "spec": {"value": 5}}
    named = {"admitter.dev/priority-class": "urgent"}, {"kueue.x-k8s.io/priority-class": "gone"}
    pods = [pod("team", f"pod-{n}", labels=labels) for n, labels in enumerate(named)]
    words = "names WorkloadPriorityClass gone, which does not exist: it waits until it does"
    assert found(tmp_path, urgent, *pods) == {("NoSuchClass", "Pod team/pod-1"): words}


def test_a_group_without_a_size(tmp_path: Path) -> None:
    words = "is of group tune, without a whole number in annotation admitter.dev/pod-group-size"
    pods = [pod("team", "none", labels={GROUP: "tune"}), group_pod("team", "word", "tune", "many")]
    assert found(tmp_path, *pods) == {
        ("GroupWithoutSize", "Pod team/none"): words,
        ("GroupWithoutSize", "Pod team/word"): words,
    }


def test_sizes_that_differ(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{n}", "tune", n) for n in (2, 3)]
    words = "its pods say that it has 2 pods, and 3: it waits until they agree"
    assert found(tmp_path, *pods, exit_code=0) == {("GroupSizesDiffer", "PodGroup team/tune"): words}


def test_more_shapes_than_a_workload_has_pod_sets(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{n}", "tune", 9) for n in range(9)]
    for number, each in enumerate(pods):
        each["spec"]["nodeSelector"] = {"rack": str(number)}
    message = found(tmp_path, *pods)["TooManyShapes", "PodGroup team/tune"]
    assert message == (
        "its pods have 9 shapes (requests, node selectors, tolerations), and at most 8 are counted"
    )


def test_a_pod_that_asks_for_more_time_than_its_queue_allows(tmp_path: Path) -> None:
    short = cluster_queue("short", {"cpu": {"default": "9"}}, lifecycle={"maxRuntime": "1h"})
    texts = {"less": "30m", "more": "3h", "wrong": "soon"}
    pods = [pod("team", name, "short") for name in texts]
    for each in pods:
        asked = {"admitter.dev/max-runtime": texts[each["metadata"]["name"]]}
        each["metadata"].setdefault("annotations", {}).update(asked)
    more = "asks for 3h in annotation admitter.dev/max-runtime, and ClusterQueue short allows 1h"
    wrong = (
        "asks in annotation admitter.dev/max-runtime for a time that can't be read: 'soon' is not a duration"
    )
    assert found(tmp_path, short, local_queue("team", "short", "short"), *pods) == {
        ("MoreThanMaximum", "Pod team/more"): more,
        ("UnreadableMaximum", "Pod team/wrong"): f"{wrong} such as 30, 500ms, 90s or 1h30m",
    }

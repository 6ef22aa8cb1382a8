"""What `admitter simulate` says of each workload, beside where it is in the end."""

from pathlib import Path
from typing import Any

from tests.cluster.objects import cluster_queue, job, local_queue, workload
from tests.commands import admitter
from tests.simulate.test_simulate import QUEUES, annotate, asks, simulate

PREEMPTING = cluster_queue(
    "total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority"}
)
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 9,
}


def table(tmp_path: Path) -> list[str]:
    """The lines that the last simulation prints, with single spaces."""
    answer = admitter("simulate", str(tmp_path / "manifests.yaml"))
    return [" ".join(line.split()) for line in answer.stdout.splitlines()]


def evicted_once(tmp_path: Path) -> Any:
    """A Job of two pods runs for 1 of its 5 minutes, makes way for 2 minutes, and runs again."""
    low = job("team", "low", pods=2, requests={"cpu": "2"}, seconds=None)
    high = annotate(asks("high", 4, lasts="2m", pod={"priorityClassName": "high"}), "simulated-at", "1m")
    del high["metadata"]["creationTimestamp"]
    return simulate(
        tmp_path, QUEUES[0], PREEMPTING, QUEUES[2], CLASS, annotate(low, "simulated-runtime", "5m"), high
    )


def test_a_workload_that_was_evicted(tmp_path: Path) -> None:
    result = evicted_once(tmp_path)
    high, low = result["workloads"]
    facts = ("queued", "waited", "started", "ended", "pods", "evictions")
    assert [low[fact] for fact in facts] == [
        *("2000-01-01T00:00:00Z", 120, "2000-01-01T00:03:00Z", "2000-01-01T00:08:00Z", 2, 1),
    ]
    assert (high["queued"], high["waited"], high["evictions"]) == ("2000-01-01T00:01:00Z", 0, 0)
    assert (result["start"], result["end"]) == ("2000-01-01T00:00:00Z", "2000-01-01T00:08:00Z")
    assert result["makespan"] == 480
    shown = table(tmp_path)
    assert shown[0].endswith(" STATUS QUEUED WAITED STARTED FLAVORS PODS EVICTIONS")
    assert "team high total Finished 1m 0s 1m default 1" in shown
    assert "team low total Finished 0s 2m 3m default 2 1" in shown
    assert "Makespan: 8m, until all of 2 workloads have finished" in shown


def test_what_never_ends_has_no_makespan(tmp_path: Path) -> None:
    waits = asks("waits", 1, created="2026-01-01T00:01:00Z", pods=3)
    result = simulate(tmp_path, *QUEUES, asks("runs", 3), waits)
    first, second = result["workloads"]
    assert result["makespan"] is None
    assert (first["started"], first["ended"]) == ("2026-01-01T00:00:00Z", None)
    assert (second["started"], second["pods"]) == (None, 3)
    shown = table(tmp_path)
    assert "No makespan: not all workloads finish; after 1m: 1 Admitted, 1 Pending" in shown
    assert "NAMESPACE NAME CLUSTERQUEUE POSITION WHY IT WAITS" in shown
    assert any(line.startswith("team waits total 1 asks for 3 cpu from ClusterQueue total") for line in shown)
    later = simulate(tmp_path, *QUEUES, asks("runs", 3), waits, options=["--until", "1h"])
    assert [row["waited"] for row in later["workloads"]] == [0, 3540]
    assert later["end"] == "2026-01-01T01:00:00Z"


def test_nothing_to_do(tmp_path: Path) -> None:
    assert simulate(tmp_path, *QUEUES)["makespan"] is None
    assert table(tmp_path)[2] == "No makespan: no workload ran; after 0s: no workloads"


def test_what_ended_before_has_no_makespan(tmp_path: Path) -> None:
    over = workload("team", "over")
    over["status"] = {"conditions": [{"type": "Finished", "status": "True", "reason": "Succeeded"}]}
    assert simulate(tmp_path, *QUEUES, over)["makespan"] is None
    assert "No makespan: no workload ran; after 0s: 1 Finished" in table(tmp_path)


def test_an_end_at_the_beginning_of_time_is_one(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, asks("one", 1, created="1970-01-01T00:00:00Z", lasts="0"))
    assert (result["makespan"], result["end"]) == (0, "1970-01-01T00:00:00Z")


def test_jobs_without_a_name_are_numbered(tmp_path: Path) -> None:
    jobs = [asks("", 1, lasts="1m") for _ in range(2)]
    for each in jobs:
        each["metadata"] |= {"generateName": "train-"}
        del each["metadata"]["name"]
    result = simulate(
        tmp_path, *QUEUES, *jobs, local_queue("team", "total", name="other"), asks("train-2", 1)
    )
    assert [row["job"] for row in result["workloads"]] == ["train-1", "train-2", "train-3"]


def test_one_object_of_a_list_that_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(
        "kind: List\nitems:\n"
        "- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"
        "- {apiVersion: batch/v1, kind: Job, metadata: {namespace: a, name: b}, spec: {parallelism: .inf}}\n"
        "- {apiVersion: admitter.dev/v1alpha1, kind: ClusterQueue, metadata: {name: q}, spec: {}}\n"
    )
    answer = admitter("simulate", str(path))
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1].split() == ["q", "0", "0"]
    said = "items[1] (Job a/b): spec.parallelism: line 4: is no float: JSON has no such number"
    assert answer.stderr == f"{path}: document 1: {said}\n"

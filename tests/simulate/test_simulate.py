"""`admitter simulate`: manifests in, decisions out."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.documents import bundled
from tests.cluster.objects import Json, cluster_queue, job, local_queue, resource_flavor
from tests.commands import admitter

QUEUES = [
    resource_flavor("default", {}),
    cluster_queue("total", {"cpu": {"default": "4"}}),
    local_queue("team", "total"),
]


def simulate(tmp_path: Path, *manifests: Json, options: list[str] | None = None, exit_code: int = 0) -> Any:
    """The JSON result for some manifests."""
    path = tmp_path / "manifests.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    answer = CliRunner().invoke(app, ["simulate", str(path), "-o", "json", *(options or [])])
    assert answer.exit_code == exit_code, answer.stderr
    return json.loads(answer.stdout)


def asks(
    name: str, cpu: int, *, created: str = "2026-01-01T00:00:00Z", lasts: str | None = None, **more: Any
) -> Json:
    made = job("team", name, requests={"cpu": str(cpu)}, seconds=None, **more)
    made["metadata"]["creationTimestamp"] = created
    if lasts is not None:
        annotate(made, "simulated-runtime", lasts)
    return made


def annotate(manifest: Json, name: str, value: str) -> Json:
    manifest["metadata"].setdefault("annotations", {})[f"admitter.dev/{name}"] = value
    return manifest


def states(result: Json) -> dict[str, str]:
    return {row["job"] or row["name"]: row["state"] for row in result["workloads"]}


def happened(result: Json) -> list[tuple[str, str, str]]:
    return [(e["time"][11:19], e["type"], e["name"].split("-")[1]) for e in result["events"]]


def test_the_examples_of_the_demo_get_what_the_cluster_gives_them() -> None:
    examples = bundled("manifests") / "examples"
    answer = admitter("simulate", str(examples / "queues.yaml"), str(examples / "jobs.yaml"), "-o", "json")
    result = json.loads(answer.stdout)
    assert set(states(result).values()) == {"Finished"}
    flavors = {row["job"]: row["podSets"][0]["flavors"] for row in result["workloads"]}
    assert flavors["sweep-1"] == {"cpu": "spot", "memory": "spot"}
    assert flavors["report-1"] == {"cpu": "on-demand", "memory": "on-demand"}
    assert flavors["train-1"] == {"cpu": "spot", "memory": "spot", "nvidia.com/gpu": "vendor1"}
    assert flavors["train-3"] == {"cpu": "on-demand", "memory": "on-demand", "nvidia.com/gpu": "vendor2"}


def test_what_runs_ends_and_lets_the_next_in(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, asks("one", 3, lasts="90s"), asks("two", 3, lasts="1m"))
    assert happened(result) == [
        ("00:00:00", "Admitted", "one"),
        ("00:01:30", "Finished", "one"),
        ("00:01:30", "Admitted", "two"),
        ("00:02:30", "Finished", "two"),
    ]


def test_a_pending_workload_says_why_and_where_it_waits(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, asks("one", 3), asks("two", 3), asks("three", 3))
    rows = {row["job"]: row for row in result["workloads"]}
    assert (rows["two"]["state"], rows["two"]["reason"]) == ("Pending", "InsufficientQuota")
    assert rows["two"]["message"] == (
        "asks for 3 cpu from ClusterQueue total: too much of the 4 cpu of default is in use"
    )
    assert [rows[name]["position"] for name in ("one", "two", "three")] == [None, 1, 2]
    (queue,) = result["clusterQueues"]
    assert queue == {
        "name": "total",
        "cohort": None,
        "usage": {"default": {"cpu": {"used": "3", "borrowed": "0"}}},
        "pending": 2,
        "admitted": 1,
    }


PREEMPTING = cluster_queue(
    "total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority"}
)
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 9,
}


def preemption() -> list[Json]:
    late = asks("urgent", 3, created="2026-01-01T00:01:00Z", lasts="30s", pod={"priorityClassName": "urgent"})
    return [QUEUES[0], PREEMPTING, QUEUES[2], URGENT, asks("long", 3, lasts="10m"), late]


def test_one_cycle_shows_a_preemption_under_way(tmp_path: Path) -> None:
    result = simulate(tmp_path, *preemption(), options=["--cycles", "2"])
    assert states(result) == {"long": "Preempted", "urgent": "Pending"}
    assert result["events"][-1]["preemptor"].startswith("team/job-urgent-")


def test_a_victim_waits_in_its_old_place_and_starts_anew(tmp_path: Path) -> None:
    result = simulate(tmp_path, *preemption())
    assert happened(result) == [
        ("00:00:00", "Admitted", "long"),
        ("00:01:00", "Preempted", "long"),
        ("00:01:00", "Admitted", "urgent"),
        ("00:01:30", "Finished", "urgent"),
        ("00:01:30", "Admitted", "long"),
        ("00:11:30", "Finished", "long"),
    ]


def test_a_policy_that_changes_on_the_way(tmp_path: Path) -> None:
    larger = annotate(cluster_queue("total", {"cpu": {"default": "6"}}), "simulated-at", "45s")
    result = simulate(tmp_path, *QUEUES, asks("one", 3), asks("two", 3), larger)
    assert happened(result)[-1] == ("00:00:45", "Admitted", "two")


def test_an_object_that_goes_and_comes_back(tmp_path: Path) -> None:
    gone = annotate(local_queue("team", "total"), "simulated-until", "1m")
    back = annotate(local_queue("team", "total"), "simulated-at", "3m")
    late = asks("late", 1, created="2026-01-01T00:02:00Z")
    result = simulate(tmp_path, *QUEUES[:2], gone, back, asks("early", 1), late)
    assert happened(result) == [("00:00:00", "Admitted", "early"), ("00:03:00", "Admitted", "late")]


def test_until_stops_the_clock(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, asks("one", 3, lasts="90s"), options=["--until", "1m"])
    assert states(result) == {"one": "Admitted"}


def test_a_workload_that_is_admitted_already_counts(tmp_path: Path) -> None:
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Workload"}
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "2"}}
    admission = {
        "clusterQueue": "total",
        "podSets": [{"name": "main", "count": 1, "flavors": {"cpu": "default"}, "usage": {"cpu": "2"}}],
    }
    running = {
        **kind,
        "metadata": {"name": "runs", "namespace": "team"},
        "spec": {"queueName": "main", "podSets": [pod_set]},
        "status": {"admission": admission},
    }
    result = simulate(tmp_path, *QUEUES, running, asks("one", 3))
    assert states(result) == {"runs": "Admitted", "one": "Pending"}


def test_a_pods_runtime_counts_once_for_each_wave_of_pods(tmp_path: Path) -> None:
    waves = job("team", "waves", pods=2, seconds=10, completions=5)
    result = simulate(tmp_path, *QUEUES, waves)
    assert happened(result)[-1] == ("00:00:30", "Finished", "waves")


def test_what_its_user_expects_counts_if_nothing_else_says_how_long_a_job_runs(tmp_path: Path) -> None:
    expects = annotate(asks("expects", 1), "expected-runtime", "90s")
    both = annotate(asks("both", 1, lasts="30s"), "expected-runtime", "90s")
    result = simulate(tmp_path, *QUEUES, expects, both)
    assert [each for each in happened(result) if each[1] == "Finished"] == [
        ("00:00:30", "Finished", "both"),
        ("00:01:30", "Finished", "expects"),
    ]


@pytest.mark.parametrize(
    ("manifest", "named", "words"),
    [
        (cluster_queue("bad", {"cpu": {"default": "-1"}}), "ClusterQueue bad", "quota.min"),
        (annotate(asks("bad", 1), "simulated-runtime", "soon"), "Job team/bad", "'soon' is not a duration"),
        (annotate(asks("bad", 1), "simulated-at", "-3s"), "Job team/bad", "simulated-at]: '-3s'"),
        (asks("bad", 1, created="yesterday"), "Job team/bad", "'yesterday' is no time"),
        ({**asks("bad", 1), "spec": {}}, "Job team/bad", "spec.template: is missing"),
    ],
    ids=["a quantity", "a runtime", "a time of change", "a time", "a template"],
)
def test_an_invalid_object_is_named_and_the_rest_goes_on(
    manifest: Json, named: str, words: str, tmp_path: Path
) -> None:
    result = simulate(tmp_path, *QUEUES, asks("good", 1), manifest, exit_code=1)
    (error,) = result["errors"]
    assert error["object"] == named
    assert words in error["message"]
    assert states(result)["good"] == "Admitted"


def test_standard_input_and_bad_usage() -> None:
    answer = admitter("simulate", "-", "-o", "events", content=yaml.safe_dump_all([*QUEUES, asks("one", 1)]))
    (event,) = [json.loads(line) for line in answer.stdout.splitlines()]
    assert event["type"] == "Admitted"
    assert admitter("simulate", "-", "--until", "soon").returncode == 2
    missing = admitter("simulate", "nowhere.yaml")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: nowhere.yaml: can't be read")
    broken = admitter("simulate", "-", content="a: [")
    assert broken.stderr.startswith("standard input: document 1: is no YAML: line 2, column 1")


def test_what_is_borrowed_is_shared_by_weight(tmp_path: Path) -> None:
    cohort = {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "Cohort",
        "metadata": {"name": "all"},
        "spec": {
            "fairSharing": {"enabled": True},
            "resources": [{"name": "cpu", "flavors": [{"name": "default", "quota": {"min": 6}}]}],
        },
    }
    common: Json = {"cohort": "all", "preemption": {"reclaimWithinCohort": "Any"}}
    queues = [
        cluster_queue(name, {"cpu": {"default": "0"}}, **common, fairSharing={"weight": weight})
        for name, weight in (("light", "500m"), ("heavy", 1))
    ]
    first = [asks(f"first{n}", 1, queue="light") for n in range(6)]
    second = [asks(f"second{n}", 1, queue="heavy", created="2026-01-01T00:00:09Z") for n in range(6)]
    result = simulate(
        tmp_path,
        resource_flavor("default", {}),
        cohort,
        *queues,
        *(local_queue("team", name, name) for name in ("light", "heavy")),
        *first,
        *second,
    )
    used = {queue["name"]: queue["usage"]["default"]["cpu"]["used"] for queue in result["clusterQueues"]}
    assert used == {"heavy": "4", "light": "2"}


LOWER = {"withinClusterQueue": "LowerPriority"}
PRIORITIES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        pytest.param("creation", ["low", "later"], id="old-place"),
        pytest.param("eviction", ["later", "low"], id="behind"),
    ],
)
def test_where_the_preempted_wait(tmp_path: Path, by: str, order: list[str]) -> None:
    total = cluster_queue(
        "total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority"}
    )
    flavor, _, local = QUEUES
    result = simulate(
        tmp_path,
        *(flavor, total, local, *PRIORITIES),
        asks("low", 4, lasts="1h"),
        asks("later", 4, created="2026-01-01T00:00:05Z", lasts="1h"),
        asks("high", 4, created="2026-01-01T00:00:10Z", lasts="1m", pod={"priorityClassName": "high"}),
        options=["--requeue-by", by],
    )
    admitted = [name for _, kind, name in happened(result) if kind == "Admitted"]
    assert admitted == ["low", "high", *order]


def test_a_cycle_in_which_no_workload_waits_is_not_counted(tmp_path: Path) -> None:
    later = "2026-01-01T00:01:00Z"
    early = annotate(cluster_queue("early", {"cpu": {"default": "1"}}), "simulated-at", "0s")
    early["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    result = simulate(
        tmp_path,
        *QUEUES,
        early,
        asks("one", 3, created=later),
        asks("two", 3, created=later),
        options=["--cycles", "1"],
    )
    assert states(result) == {"one": "Admitted", "two": "Pending"}


def workload(name: str, cpu: str, *, priority: int = 0, admitted: bool = True, **status: Any) -> Json:
    """A Workload of its own, as in a dump of a cluster."""
    admission = {
        "clusterQueue": "total",
        "podSets": [{"name": "main", "count": 1, "flavors": {"cpu": "default"}, "usage": {"cpu": cpu}}],
    }
    spec: Json = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {"cpu": cpu}}]}
    return {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec | ({"priority": priority, "priorityClassName": "high"} if priority else {}),
        "status": ({"admission": admission} if admitted else {}) | status,
    }


def test_what_is_admitted_already_neither_competes_nor_evicts(tmp_path: Path) -> None:
    flavor, _, local = QUEUES
    total = cluster_queue(
        "total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority"}
    )
    high = workload("high", "2", priority=1000)
    result = simulate(tmp_path, *(flavor, total, local, *PRIORITIES), workload("low", "2"), high)
    assert result["events"] == []
    assert states(result) == {"low": "Admitted", "high": "Admitted"}


def test_what_has_finished_holds_nothing(tmp_path: Path) -> None:
    over = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    done = workload("done", "4", conditions=[over | {"reason": "JobSucceeded", "message": ""}])
    result = simulate(tmp_path, *QUEUES, done, asks("next", 4))
    assert states(result) == {"done": "Finished", "next": "Admitted"}
    later = annotate(done, "simulated-at", "1m")
    result = simulate(tmp_path, *QUEUES, workload("done", "4"), later, asks("next", 4))
    assert states(result) == {"done": "Finished", "next": "Admitted"}
    assert [(event["time"], event["type"]) for event in result["events"]] == [
        ("2026-01-01T00:01:00Z", "Admitted")
    ]


def test_what_is_borrowed_and_which_workload_is_in_which_place(tmp_path: Path) -> None:
    cohort = {"cohort": "all"}
    result = simulate(
        tmp_path,
        resource_flavor("default", {}),
        cluster_queue("total", {"cpu": {"default": "4"}}, **cohort),
        cluster_queue("lends", {"cpu": {"default": "2"}}, **cohort),
        local_queue("team", "total"),
        asks("own", 4),
        asks("borrowed", 2, created="2026-01-01T00:00:01Z"),
        asks("lost", 1, queue="absent", created="2026-01-01T00:00:02Z"),
        asks("waits", 1, created="2026-01-01T00:00:03Z"),
    )
    found = {row["job"]: (row["borrowing"], row["position"]) for row in result["workloads"]}
    assert found == {
        "own": (False, None),
        "borrowed": (True, None),
        "lost": (False, None),
        "waits": (False, 1),
    }


def without_requests(name: str) -> Json:
    manifest = asks(name, 1)
    del manifest["spec"]["template"]["spec"]["containers"][0]["resources"]
    return manifest


@pytest.mark.parametrize(
    ("limit", "used"),
    [
        pytest.param({"default": {"cpu": "3"}}, "3", id="default limit"),
        pytest.param({"max": {"cpu": "2"}}, "2", id="maximum"),
        pytest.param({"min": {"cpu": "1"}}, "1", id="minimum"),
        pytest.param(
            {"min": {"cpu": "1"}, "max": {"cpu": "4"}, "defaultRequest": {"cpu": "2"}}, "2", id="request"
        ),
    ],
)
def test_limit_ranges_default_as_in_a_cluster(tmp_path: Path, limit: Json, used: str) -> None:
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": "team"},
        "spec": {"limits": [{"type": "Container", **limit}]},
    }
    result = simulate(tmp_path, *QUEUES, limits, without_requests("job"))
    assert result["clusterQueues"][0]["usage"]["default"]["cpu"]["used"] == used


def test_the_example_of_sharing_by_weight() -> None:
    example = bundled("manifests") / "examples" / "sharing.yaml"
    result = json.loads(admitter("simulate", str(example), "-o", "json").stdout)
    assert {queue["name"]: queue["admitted"] for queue in result["clusterQueues"]} == {
        "team-a": 2,
        "team-b": 4,
    }
    assert result["errors"] == []


def test_a_folder_without_manifests_and_a_file_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("nothing")
    answer = admitter("simulate", str(tmp_path))
    assert (answer.returncode, "has no manifests in it" in " ".join(answer.stderr.split())) == (1, True)
    answer = admitter("simulate", str(tmp_path / "missing.yaml"))
    assert answer.returncode == 1
    assert answer.stderr.strip().endswith("missing.yaml: can't be read: No such file or directory")

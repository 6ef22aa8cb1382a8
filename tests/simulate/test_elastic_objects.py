"""Which elastic quota is in force, for which Jobs, and what it counts, with `admitter simulate`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import Json, elastic_quota, local_queue, resource_flavor
from tests.simulate.elastic import (
    ALIAS,
    GPU,
    GPU_MEMORY,
    SLICE,
    asks,
    capacities,
    created,
    events,
    quota,
    rows,
    used,
)
from tests.simulate.test_simulate import annotate, simulate, states

ONE = {"cpu": 1}


def composite(name: str, *namespaces: str, second: int = 0, **spec: object) -> Json:
    return created(elastic_quota("ops", name, namespaces=list(namespaces), **spec), second)


def reason(result: Json, name: str) -> tuple[str, str]:
    row = rows(result)[name]
    return row["reason"], row["message"]


def test_namespaces_of_a_composite_share_one_quota(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        composite("research", "a", "b", min={"cpu": 2}, max={"cpu": 3}),
        quota("c", {"cpu": 2}),
        *(asks(namespace, f"{namespace}{n}", ONE, n) for n in range(2) for namespace in "ab"),
    )
    assert used(result, "cpu") == {"ceq_ops_research": "3", "eq_c_quota": "0"}
    assert states(result) == {"a0": "Admitted", "a1": "Admitted", "b0": "Admitted", "b1": "Pending"}
    assert capacities(result) == {"a0": "in-quota", "b0": "in-quota", "a1": "over-quota", "b1": None}
    assert {row["clusterQueue"] for row in result["workloads"]} == {"ceq_ops_research"}
    assert reason(result, "b1") == (
        "InsufficientQuota",
        (
            "asks for 1 cpu from CompositeElasticQuota ops/research: too much of the 3 cpu (of which 2 are "
            "its own) is in use; no workload that it may preempt would make room"
        ),
    )


def test_of_two_for_one_namespace_the_older_is_in_force(tmp_path: Path) -> None:
    older = created(elastic_quota("a", "older", min={"cpu": 1}), 0)
    newer = created(elastic_quota("a", "newer", min={"cpu": 9}), 5)
    result = simulate(tmp_path, newer, older, asks("a", "one", ONE), asks("a", "two", ONE))
    assert states(result) == {"one": "Admitted", "two": "Pending"}
    assert [row["name"] for row in result["clusterQueues"]] == ["eq_a_older"]


def test_a_composite_with_one_namespace_that_is_taken_works_nowhere(tmp_path: Path) -> None:
    taken = composite("both", "a", "b", second=5, min={"cpu": 9})
    result = simulate(tmp_path, taken, quota("a", {"cpu": 1}), asks("a", "fits", ONE), asks("b", "lost", ONE))
    assert states(result) == {"fits": "Admitted", "lost": "Pending"}
    assert reason(result, "lost") == (
        "QuotaInactive",
        "CompositeElasticQuota ops/both: namespace a is governed by ElasticQuota a/quota, which is older",
    )


def test_when_the_older_goes_the_composite_works_everywhere(tmp_path: Path) -> None:
    gone = annotate(quota("a", {"cpu": 1}), "simulated-until", "1m")
    both = composite("both", "a", "b", second=5, min={"cpu": 3})
    result = simulate(
        tmp_path, gone, both, asks("a", "old", ONE), asks("b", "lost", ONE), asks("a", "late", ONE, 120)
    )
    assert events(result) == [(0, "Admitted", "old"), (60, "Admitted", "lost"), (120, "Admitted", "late")]
    assert {name: row["clusterQueue"] for name, row in rows(result).items()} == {
        "old": "eq_a_quota",
        "lost": "ceq_ops_both",
        "late": "ceq_ops_both",
    }


def test_what_runs_when_its_quota_goes_still_counts(tmp_path: Path) -> None:
    gone = annotate(quota("a", {"cpu": 2}), "simulated-until", "1m")
    result = simulate(
        tmp_path,
        gone,
        quota("b", {"cpu": 2}),
        asks("a", "stays", {"cpu": 2}, lasts="2m"),
        asks("b", "own", {"cpu": 1}),
        asks("b", "more", {"cpu": 1}, 90),
    )
    assert events(result)[-2:] == [(90, "Preempted", "stays"), (90, "Admitted", "more")]
    assert reason(result, "stays") == (
        "QueueNotFound",
        "no ElasticQuota or CompositeElasticQuota is for namespace a",
    )


def test_without_any_quota_the_name_of_the_queue_means_nothing(tmp_path: Path) -> None:
    result = simulate(tmp_path, quota("a", {"cpu": 1}), asks("b", "lost", ONE))
    assert reason(result, "lost") == (
        "QueueNotFound",
        "no ElasticQuota or CompositeElasticQuota is for namespace b",
    )


def test_a_local_queue_of_that_name_gives_way_to_the_quota(tmp_path: Path) -> None:
    local = local_queue("a", "nowhere", name="elastic-quota")
    result = simulate(tmp_path, local, quota("a", {"cpu": 1}), asks("a", "one", ONE))
    assert rows(result)["one"]["clusterQueue"] == "eq_a_quota"
    assert states(result) == {"one": "Admitted"}


def test_a_quota_that_is_made_later(tmp_path: Path) -> None:
    late = annotate(elastic_quota("a", min={"cpu": 1}), "simulated-at", "1m")
    result = simulate(tmp_path, late, asks("a", "one", ONE))
    assert events(result) == [(60, "Admitted", "one")]


def test_a_quota_that_is_changed(tmp_path: Path) -> None:
    larger = annotate(quota("a", {"cpu": 2}), "simulated-at", "1m")
    smaller = annotate(quota("a", {"cpu": 1}), "simulated-at", "2m")
    result = simulate(
        tmp_path, quota("a", {"cpu": 1}), larger, smaller, *(asks("a", f"j{n}", ONE) for n in range(3))
    )
    assert events(result) == [(0, "Admitted", "j0"), (60, "Admitted", "j1")]
    assert capacities(result) == {"j0": "in-quota", "j1": "over-quota", "j2": None}


def test_a_quota_that_is_changed_gets_no_younger_by_it(tmp_path: Path) -> None:
    """None of these says when it was made: that is when it came first."""
    first, second = elastic_quota("a", min={"cpu": 1}), elastic_quota("ops", namespaces=["a"], min={"cpu": 9})
    changed = annotate(elastic_quota("a", min={"cpu": 2}), "simulated-at", "20s")
    annotate(second, "simulated-at", "10s")
    result = simulate(tmp_path, first, second, changed, asks("a", "early", ONE), asks("a", "late", ONE, 30))
    assert {row["clusterQueue"] for row in result["workloads"]} == {"eq_a_quota"}


def test_a_flavor_that_is_missing_is_the_reason(tmp_path: Path) -> None:
    flavors = ["h100", "t4"]
    t4 = annotate(resource_flavor("t4", {"gpuMemoryGB": 16}), "simulated-at", "1m")
    result = simulate(
        tmp_path,
        resource_flavor("h100", {"gpuMemoryGB": 80}),
        t4,
        quota("a", {GPU_MEMORY: 96}, flavors=flavors),
        *(asks("a", f"j{n}", {GPU: 1}, n) for n in range(2)),
        options=["--until", "30s"],
    )
    assert reason(result, "j0") == (
        "QuotaInactive",
        "ElasticQuota a/quota: spec.flavors[1] names t4: there is no such ResourceFlavor",
    )


def test_once_the_flavor_is_there_it_works(tmp_path: Path) -> None:
    t4 = annotate(resource_flavor("t4", {"gpuMemoryGB": 16}), "simulated-at", "1m")
    result = simulate(
        tmp_path,
        resource_flavor("h100", {"gpuMemoryGB": 80}),
        t4,
        quota("a", {GPU_MEMORY: 96}, flavors=["h100", "t4"]),
        *(asks("a", f"j{n}", {GPU: 1}, n) for n in range(2)),
    )
    assert events(result) == [(60, "Admitted", "j0"), (60, "Admitted", "j1")]
    found = {name: row["podSets"][0] for name, row in rows(result).items()}
    assert {name: (row["flavors"], row["usage"]) for name, row in found.items()} == {
        "j0": ({GPU_MEMORY: "h100"}, {GPU_MEMORY: "80"}),
        "j1": ({GPU_MEMORY: "t4"}, {GPU_MEMORY: "16"}),
    }
    assert used(result, GPU_MEMORY) == {"eq_a_quota": "96"}


def test_a_quota_that_does_not_work_still_lends_its_minimum(tmp_path: Path) -> None:
    broken = quota("a", {"cpu": 2}, flavors=["absent"])
    result = simulate(tmp_path, broken, quota("b", {"cpu": 1}), asks("b", "three", {"cpu": 3}))
    assert states(result) == {"three": "Admitted"}


# Which Jobs.


def test_only_jobs_with_the_label_are_its_own(tmp_path: Path) -> None:
    result = simulate(
        tmp_path, quota("a", {"cpu": 9}), asks("a", "asks", ONE), asks("a", "else", ONE, queue=None)
    )
    assert states(result) == {"asks": "Admitted"}, "the other one does not matter"


@pytest.mark.parametrize("quota_first", [True, False], ids=["quota first", "Jobs first"])
def test_manage_all_jobs_takes_those_that_came_since(tmp_path: Path, *, quota_first: bool) -> None:
    made = created(elastic_quota("a", min={"cpu": 9}, manageAllJobs=True), 30)
    manifests = [
        asks("a", "before", ONE, 0, queue=None),
        asks("a", "at-once", ONE, 30, queue=None),
        asks("a", "after", ONE, 60, queue=None),
        asks("a", "labelled", ONE, 0),
        asks("a", "elsewhere", ONE, 60, queue="other"),
        asks("b", "not-here", ONE, 60, queue=None),
    ]
    result = simulate(tmp_path, *([made, *manifests] if quota_first else [*manifests, made]))
    assert states(result) == {
        "at-once": "Admitted",
        "after": "Admitted",
        "labelled": "Admitted",
        "elsewhere": "Pending",
    }


def test_manage_all_jobs_of_a_composite_is_for_all_of_its_namespaces(tmp_path: Path) -> None:
    made = composite("all", "a", "b", min={"cpu": 1}, manageAllJobs=True)
    result = simulate(tmp_path, asks("a", "one", ONE, queue=None), made, asks("b", "two", ONE, 5, queue=None))
    assert states(result) == {"one": "Admitted", "two": "Pending"}


def test_a_quota_that_conflicts_manages_nothing(tmp_path: Path) -> None:
    second = composite("second", "a", second=5, min={"cpu": 9}, manageAllJobs=True)
    result = simulate(tmp_path, quota("a", {"cpu": 9}), second, asks("a", "one", ONE, 20, queue=None))
    assert states(result) == {}


# What is counted.


def test_what_a_quota_does_not_name_is_not_limited(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("a", {"cpu": 1}),
        asks("a", "large", {"cpu": 1, "memory": "900Ti", GPU: 1000}),
        asks("a", "second", {"cpu": 1}),
    )
    (pod_set,) = rows(result)["large"]["podSets"]
    assert (pod_set["flavors"], pod_set["usage"]) == ({"cpu": "any_node"}, {"cpu": "1"})
    assert states(result) == {"large": "Admitted", "second": "Pending"}


def test_a_job_that_requests_nothing_of_it_runs_at_once(tmp_path: Path) -> None:
    free = asks("a", "free", {"memory": "1Gi"}, 10)
    result = simulate(tmp_path, quota("a", {"cpu": 1}, {"cpu": 1}), asks("a", "full", ONE), free)
    assert events(result) == [(0, "Admitted", "full"), (10, "Admitted", "free")]
    assert rows(result)["free"]["podSets"] == [{"name": "main", "count": 1, "flavors": {}, "usage": {}}]
    assert used(result, "cpu") == {"eq_a_quota": "1"}


@pytest.mark.parametrize("requests", [{}, {"cpu": 0}], ids=["nothing", "no CPU"])
def test_a_job_that_requests_nothing_at_all_waits(tmp_path: Path, requests: dict[str, object]) -> None:
    """Whatever it uses would be counted nowhere."""
    result = simulate(tmp_path, quota("a", {"cpu": 1}, {"cpu": 1}), asks("a", "hidden", requests))
    assert rows(result)["hidden"]["reason"] == "NothingRequested"
    assert rows(result)["hidden"]["message"] == "requests none of what ElasticQuota a/quota covers: cpu"


def test_a_quota_that_names_nothing_limits_nothing(tmp_path: Path) -> None:
    result = simulate(tmp_path, quota("a"), asks("a", "large", {"cpu": 10_000}))
    assert states(result) == {"large": "Admitted"}
    assert result["clusterQueues"] == [
        {"name": "eq_a_quota", "cohort": "elastic-quota", "usage": {}, "pending": 0, "admitted": 1}
    ]


def test_only_a_maximum_may_be_borrowed_up_to_it(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("a", None, {"cpu": 2}),
        quota("b", {"cpu": 9}),
        *(asks("a", f"j{n}", ONE, n) for n in range(3)),
    )
    assert states(result) == {"j0": "Admitted", "j1": "Admitted", "j2": "Pending"}
    assert capacities(result)["j0"] == "over-quota"


@pytest.mark.parametrize("name", [GPU_MEMORY, ALIAS], ids=["own name", "alias"])
def test_gpu_memory_has_the_same_meaning_by_both_names(tmp_path: Path, name: str) -> None:
    other = {GPU_MEMORY: ALIAS, ALIAS: GPU_MEMORY}[name]
    result = simulate(
        tmp_path,
        quota("a", {name: 40}, {name: 60}),
        quota("b", {other: 30}),
        asks("a", "devices", {SLICE: 3}),
        asks("a", "asked-for", {name: 10}, 1),
        asks("a", "other-name", {other: 20}, 2),
        asks("a", "too-much", {SLICE: 1}, 3),
    )
    assert used(result, GPU_MEMORY) == {"eq_a_quota": "60", "eq_b_quota": "0"}
    assert states(result)["too-much"] == "Pending"
    assert rows(result)["asked-for"]["podSets"][0]["usage"] == {GPU_MEMORY: "10"}


@pytest.mark.parametrize("name", [GPU_MEMORY, ALIAS], ids=["own name", "alias"])
@pytest.mark.parametrize("quantity", ["40Gi", "40G", "40e9", "0.5"])
def test_gpu_memory_in_other_units_is_refused(tmp_path: Path, name: str, quantity: str) -> None:
    wrong = quota("a", {name: quantity})
    result = simulate(tmp_path, wrong, quota("b", {"cpu": 1}), asks("b", "one", ONE), exit_code=1)
    (error,) = result["errors"]
    assert error == {
        "object": "ElasticQuota a/quota",
        "message": f"spec.min.{name}: {name} is in whole GB: write a number like 40, not {quantity}",
    }
    assert states(result) == {"one": "Admitted"}


def test_memory_and_devices_at_a_time_are_refused_with_the_reason(tmp_path: Path) -> None:
    both = asks("a", "both", {GPU_MEMORY: 10, GPU: 1})
    result = simulate(tmp_path, quota("a", {GPU_MEMORY: 99}), both, asks("a", "one", {GPU: 1}))
    assert reason(result, "both") == (
        "InvalidRequests",
        (
            f"its requests can't be counted: {GPU_MEMORY} and {GPU} are both requested: memory of GPUs is "
            "counted by the devices"
        ),
    )
    assert states(result)["one"] == "Admitted"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], {"whole": "32", "slice": "10"}, id="as it comes"),
        pytest.param(["--gpu-memory-gb", "24"], {"whole": "24", "slice": "10"}, id="a whole GPU has 24"),
        pytest.param(["--gpu-resource", f"{SLICE}=12"], {"whole": "32", "slice": "12"}, id="a part has 12"),
        pytest.param(
            [
                "--gpu-resource",
                "amd.com/gpu",
                "--gpu-resource",
                "example.com/shard=8",
                "--gpu-memory-gb",
                "16",
            ],
            {"whole": "16", "slice": "10", "amd": "16", "shard": "8"},
            id="further resources",
        ),
    ],
)
def test_what_is_a_gpu_and_how_large_can_be_said(
    tmp_path: Path, options: list[str], expected: dict[str, str]
) -> None:
    asked = {"whole": GPU, "slice": SLICE, "amd": "amd.com/gpu", "shard": "example.com/shard"}
    result = simulate(
        tmp_path,
        quota("a", {GPU_MEMORY: 999}),
        *(asks("a", name, {resource: 1}) for name, resource in asked.items()),
        options=options,
    )
    usages = {name: row["podSets"][0]["usage"].get(GPU_MEMORY) for name, row in rows(result).items()}
    assert {name: usage for name, usage in usages.items() if usage is not None} == expected


def test_a_flavor_that_says_how_large_its_gpus_are_goes_before_the_setting(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        resource_flavor("t4", {"gpuMemoryGB": 16}),
        resource_flavor("other", {}),
        quota("a", {GPU_MEMORY: 99}, flavors=["t4"]),
        quota("b", {GPU_MEMORY: 99}, flavors=["other"]),
        asks("a", "one", {GPU: 1}),
        asks("b", "two", {GPU: 1}),
        options=["--gpu-memory-gb", "48"],
    )
    assert used(result, GPU_MEMORY) == {"eq_a_quota": "16", "eq_b_quota": "48"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--gpu-resource", "x=many"], "'x=many' is neither NAME nor NAME=GB"),
        (["--gpu-memory-gb", "0"], "greater than or equal to 1"),
    ],
    ids=["resource", "memory"],
)
def test_a_setting_that_says_nothing_is_bad_usage(options: list[str], words: str) -> None:
    answer = CliRunner().invoke(app, ["simulate", "-", *options], input="")
    assert answer.exit_code == 2
    assert words in " ".join(answer.stderr.replace("│", " ").split())

"""Objects of described kinds are decided about as Jobs are, by all commands that read manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import ADMITTER, Json, cluster_queue, elastic_quota, local_queue, resource_flavor
from tests.kinds.described import EXAMPLES, experiment, template, trial
from tests.simulate.test_simulate import QUEUES, annotate, asks, happened, simulate, states

NINE = {"cpu": {"default": "9"}}
QUEUE = [resource_flavor("default", {}), cluster_queue("total", NINE), local_queue("team", "total")]


def jobset(name: str, cpu: str, replicas: int = 1, **metadata: Any) -> Json:
    jobs = [{"name": "work", "replicas": replicas, "template": {"spec": {"template": template(cpu)}}}]
    labels = {"labels": {"admitter.dev/queue-name": "main"}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "team", **labels, **metadata},
        "spec": {"replicatedJobs": jobs},
    }


def reasons(result: Json) -> dict[str, str]:
    return {row["job"]: row["reason"] for row in result["workloads"]}


def errors(result: Json) -> dict[str, str]:
    return {error["object"]: error["message"] for error in result["errors"]}


def test_all_examples_are_admitted() -> None:
    answer = CliRunner().invoke(app, ["simulate", str(EXAMPLES), "--until", "30m", "-o", "json"])
    assert answer.exit_code == 0, answer.stderr
    found = states(json.loads(answer.stdout))
    assert set(found.values()) == {"Admitted"}
    assert {name.partition("/")[0] for name in found} == {
        *("appwrapper", "jobset", "mpijob", "pytorchjob", "raycluster", "rayjob", "sparkapplication"),
        *("tfjob", "trainjob", "xgboostjob"),
    }


def test_a_jobset_waits_for_all_its_pods_and_runs_for_its_time(tmp_path: Path) -> None:
    first = annotate(jobset("first", "3", 2), "simulated-runtime", "10s")
    result = simulate(tmp_path, *QUEUE, first, jobset("second", "2", 3), asks("job", 3))
    assert states(result) == {"jobset/first": "Finished", "jobset/second": "Admitted", "job": "Admitted"}
    assert [row["name"].rpartition("-")[0] for row in result["workloads"]][1:] == [
        "jobset-first",
        "jobset-second",
    ]
    assert [(time, kind) for time, kind, _ in happened(result)][-2:] == [
        ("00:00:10", "Finished"),
        ("00:00:10", "Admitted"),
    ]
    (second,) = (row for row in result["workloads"] if row["job"] == "jobset/second")
    usage = [{"name": "work", "count": 3, "flavors": {"cpu": "default"}, "usage": {"cpu": "6"}}]
    assert second["podSets"] == usage


def test_the_runtime_of_pods_and_of_its_user_count_too(tmp_path: Path) -> None:
    by_pods = jobset("pods", "1")
    pod = by_pods["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"] = {"annotations": {"admitter.dev/simulated-runtime": "5s"}}
    said = annotate(jobset("said", "1"), "expected-runtime", "7s")
    result = simulate(tmp_path, *QUEUE, by_pods, said)
    ends = {name: time for time, kind, name in happened(result) if kind == "Finished"}
    assert ends == {"pods": "00:00:05", "said": "00:00:07"}


def test_the_priority_class_decides_and_has_to_be_there(tmp_path: Path) -> None:
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    sets = [jobset("low", "9"), jobset("high", "9"), jobset("lost", "1")]
    for each, name in zip(sets[1:], ("high", "none"), strict=True):
        pod = each["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        pod["spec"]["priorityClassName"] = name
    result = simulate(tmp_path, *QUEUE, *sets, high)
    assert states(result)["jobset/high"] == "Admitted"
    assert reasons(result) == {
        "jobset/high": "",
        "jobset/low": "InsufficientQuota",
        "jobset/lost": "PriorityClassNotFound",
    }


def test_limit_ranges_and_changes_on_the_way(tmp_path: Path) -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "4"}}]}
    limit = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limit", "namespace": "team"},
        "spec": limits,
    }
    bare = jobset("bare", "1")
    bare["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"] = [{"name": "a"}]
    grown = annotate(jobset("bare", "6"), "simulated-at", "10s")
    gone = annotate(annotate(jobset("other", "9"), "simulated-at", "20s"), "simulated-until", "30s")
    result = simulate(tmp_path, *QUEUE, limit, bare, gone, options=["--until", "5s"])
    assert result["clusterQueues"][0]["usage"]["default"]["cpu"]["used"] == "4"
    result = simulate(tmp_path, *QUEUE, limit, jobset("bare", "10"), grown, gone)
    assert states(result) == {"jobset/bare": "Admitted"}


def test_claims_of_any_pod_set_are_found(tmp_path: Path) -> None:
    claiming = jobset("claims", "1")
    pod = claiming["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["resourceClaims"] = [{"name": "gpu"}]
    assert reasons(simulate(tmp_path, *QUEUE, claiming)) == {"jobset/claims": "ResourceClaims"}


def test_a_job_of_its_own_stays_one_and_a_child_is_not_counted_twice(tmp_path: Path) -> None:
    owner = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "train",
        "uid": "u",
        "controller": True,
    }
    child, stranger = asks("child", 1), asks("stranger", 1)
    child["metadata"]["ownerReferences"] = [owner]
    stranger["metadata"]["ownerReferences"] = [owner | {"name": "another"}]
    stranger["podSets"] = stranger["described"] = [{"name": "forged"}]
    result = simulate(tmp_path, *QUEUE, child, stranger, jobset("train", "1"))
    assert states(result) == {"jobset/train": "Admitted", "stranger": "Admitted"}
    assert [row["podSets"][0]["name"] for row in result["workloads"]] == ["main", "work"]
    unqueued = jobset("train", "1", labels={})
    assert states(simulate(tmp_path, *QUEUE, child, unqueued)) == {"child": "Admitted"}
    odd = jobset("train", "1", labels=5)
    assert states(simulate(tmp_path, *QUEUE, child, odd, exit_code=1)) == {"child": "Admitted"}


def test_an_elastic_quota_counts_a_child_with_its_parent_alone(tmp_path: Path) -> None:
    child = asks("child", 1)
    del child["metadata"]["labels"]
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "u"}
    child["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    quota = elastic_quota("team", min={"cpu": 2}, manageAllJobs=True)
    result = simulate(tmp_path, QUEUE[0], quota, jobset("train", "1", labels={}), child)
    assert states(result) == {"jobset/train": "Admitted"}


def test_a_kind_of_ones_own(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUE, trial("first"), trial("second"), experiment())
    assert states(result) == {"experiment/first": "Admitted", "experiment/second": "Pending"}
    (first, _) = result["workloads"]
    assert [(each["name"], each["count"]) for each in first["podSets"]] == [("control", 1), ("probes", 2)]


def test_what_is_wrong_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    broken = experiment(active="nothing")
    broken["metadata"] = {"name": "broken"}
    broken["spec"]["resource"] = {**broken["spec"]["resource"], "kind": "Broken"}
    second = experiment()
    second["metadata"] = {"name": "another"}
    many = jobset("many", "1")
    many["spec"]["replicatedJobs"] = "x"
    late = annotate(jobset("late", "1"), "simulated-runtime", "soon")
    unnamed = jobset("", "1")
    manifests = [experiment(), broken, second, trial(copies="2"), many, late, unnamed]
    result = simulate(tmp_path, *QUEUE, *manifests, jobset("good", "1"), exit_code=1)
    assert states(result) == {"jobset/good": "Admitted"}
    found = errors(result)
    assert found.pop(f"{tmp_path}/manifests.yaml: document 10") == "metadata.name: is missing"
    assert found == {
        "JobKind broken": "spec.active: there is no variable nothing here: these are object",
        "JobKind another": (
            "spec.resource: lab.example.com/v1 Experiment is described by JobKind experiment already"
        ),
        "Experiment team/trial": (
            "JobKind experiment, spec.podSets[1].count: gives '2', which is no whole number from 0 to "
            "2147483647"
        ),
        "JobSet team/many": "spec.replicatedJobs: must be a list or a map",
        "JobSet team/late": (
            "metadata.annotations[admitter.dev/simulated-runtime]: 'soon' is not a duration such as 30, "
            "500ms, 90s or 1h30m"
        ),
    }


def test_requests_that_can_not_be_counted_are_those_of_the_object(tmp_path: Path) -> None:
    wrong = jobset("wrong", "1")
    pod = wrong["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["containers"][0]["resources"]["requests"] = {"admitter.dev/gpu-memory": "1Gi"}
    result = simulate(tmp_path, *QUEUE, wrong, exit_code=1)
    assert list(errors(result)) == ["JobSet team/wrong"]


def test_an_own_description_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    own = experiment()
    own["metadata"] = {"name": "jobset"}
    own["spec"] |= {
        "resource": {
            "group": "jobset.x-k8s.io",
            "version": "v1alpha2",
            "kind": "JobSet",
            "plural": "jobsets",
        },
        "podSets": [
            {"each": "spec.replicatedJobs", "nameFrom": "item.name", "template": "template.spec.template"}
        ],
    }
    result = simulate(tmp_path, *QUEUE, jobset("train", "1", 5), own)
    assert result["workloads"][0]["podSets"][0]["count"] == 1


def test_a_definition_among_the_manifests_is_checked(tmp_path: Path) -> None:
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}}
    names = {"kind": "Experiment"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "experiments.lab.example.com"},
        "spec": {"group": "lab.example.com", "names": names, "versions": [version]},
    }
    result = simulate(tmp_path, *QUEUE, trial(), experiment(), definition, exit_code=1)
    assert result["workloads"] == []
    assert (
        "spec.suspend.path: the definition of the kind has no spec.paused"
        in errors(result)["JobKind experiment"]
    )
    broken = definition | {"spec": {"versions": [3]}}
    assert states(simulate(tmp_path, *QUEUE, trial(), experiment(), broken))


def test_lint_and_what_if_read_them_too(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(
        yaml.safe_dump_all([jobset("train", "1"), experiment(active="x", operators=["a"]), trial()])
    )
    answer = CliRunner().invoke(app, ["lint", str(path), "-o", "json"])
    assert [each["object"] for each in json.loads(answer.stdout)] == ["JobKind experiment"]
    monday = str(EXAMPLES.parent / "monday.json")
    path.write_text(yaml.safe_dump(jobset("train", "1", namespace="team-a")))
    answer = CliRunner().invoke(app, ["what-if", "-f", str(path), "--state", monday, "-o", "json"])
    assert answer.exit_code == 0, answer.stderr
    assert "jobset/train" in answer.stdout


@pytest.mark.parametrize("odd", [{"apiVersion": ["a"], "kind": "JobSet"}, {"apiVersion": {}, "kind": "Foo"}])
def test_what_is_no_object_at_all_harms_nothing(tmp_path: Path, odd: Json) -> None:
    assert simulate(tmp_path, *QUEUES, odd)["errors"] == []
    nameless = {"apiVersion": ADMITTER, "kind": "JobKind", "metadata": "x"}
    (found,) = errors(simulate(tmp_path, *QUEUES, nameless, exit_code=1)).items()
    assert found == (f"{tmp_path}/manifests.yaml: document 4", "metadata.name: is missing")

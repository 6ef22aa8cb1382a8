"""LocalQueues that ClusterQueues ask for, in simulations and in what-if."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_simulate import annotate, asks, simulate

FLAVOR = resource_flavor("default", {})


def asking(name: str = "total", **labels: str) -> Json:
    """A ClusterQueue that asks for a LocalQueue `main` where it is selected."""
    rule = {"name": "main", "namespaceSelector": {"matchLabels": labels}}
    return cluster_queue(name, {"cpu": {"default": "4"}}, localQueues=rule)


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def reasons(result: Json) -> dict[str, str]:
    return {row["job"]: row["reason"] or row["state"] for row in result["workloads"]}


def test_a_namespace_gets_its_queue_by_its_label_and_loses_it_when_that_goes(tmp_path: Path) -> None:
    late = annotate(asks("late", 1), "simulated-at", "3m")
    late["metadata"].pop("creationTimestamp")
    without = annotate(namespace("team"), "simulated-at", "2m")
    manifests = [FLAVOR, asking(gpus="yes"), namespace("team", gpus="yes"), without]
    result = simulate(tmp_path, *manifests, asks("early", 1, lasts="1m"), late)
    assert reasons(result) == {"early": "Finished", "late": "QueueNotFound"}


def test_a_namespace_that_no_manifest_has_is_selected_too(tmp_path: Path) -> None:
    late = annotate(asks("late", 1, lasts="1m"), "simulated-at", "1m")
    late["metadata"].pop("creationTimestamp")
    late["metadata"]["namespace"] = "other"
    result = simulate(tmp_path, FLAVOR, asking(), asks("early", 1, lasts="1m"), late)
    assert reasons(result) == {"early": "Finished", "late": "Finished"}


def found(tmp_path: Path, *manifests: Json) -> dict[tuple[str, str], str]:
    path = tmp_path / "queues.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    answer = CliRunner().invoke(app, ["lint", str(path), "-o", "json", "--min-severity", "warning"])
    return {(each["rule"], each["object"]): each["message"] for each in json.loads(answer.stdout)}


def test_lint_names_what_is_in_the_way_and_takes_the_rule_for_an_entrance(tmp_path: Path) -> None:
    manifests = [FLAVOR, asking(), namespace("team"), namespace("other")]
    assert found(tmp_path, *manifests) == {}
    foreign = [local_queue("team", "gold"), cluster_queue("gold", {"cpu": {"default": "1"}})]
    assert found(tmp_path, *manifests, *foreign) == {
        ("LocalQueueTaken", "ClusterQueue total"): (
            "spec.localQueues: LocalQueue team/main leads to another ClusterQueue"
        )
    }


def test_the_name_of_elastic_quotas_is_refused(tmp_path: Path) -> None:
    queue = asking()
    queue["spec"]["localQueues"]["name"] = "elastic-quota"
    (error,) = simulate(tmp_path, FLAVOR, queue, exit_code=1)["errors"]
    assert error["message"] == (
        "spec.localQueues: elastic-quota means the elastic quota of a namespace: choose another name"
    )

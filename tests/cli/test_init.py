"""`admitter init` of files: questions, options, and manifests that work."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from admitter.cli.main import app
from admitter.sandbox.nodes import DEFAULT_NODES, read_nodes
from tests.cluster.objects import job
from tests.commands import admitter

GPU = "nvidia.com/gpu"


def init(*words: str, nodes: Path = DEFAULT_NODES) -> Result:
    return CliRunner().invoke(app, ["init", "-f", str(nodes), *words])


def manifests(answer: Result) -> list[Any]:
    assert answer.exit_code == 0, answer.stderr
    return list(yaml.safe_load_all(answer.stdout))


def minimums(answer: Result, resource: str) -> dict[str, dict[str, str]]:
    """What each ClusterQueue owns of a resource, by flavor."""
    queues = [each for each in manifests(answer) if each["kind"] == "ClusterQueue"]
    return {
        queue["metadata"]["name"]: {
            each["name"]: each["quota"]["min"]
            for listed in queue["spec"]["resources"]
            if listed["name"] == resource
            for each in listed["flavors"]
        }
        for queue in queues
    }


def test_the_sandboxs_nodes_are_divided_by_shares() -> None:
    found = minimums(init("--team", "a=2", "--team", "b=1"), GPU)
    assert found["a"] == {"on-demand": "0", "spot": "0", "vendor1-spot": "5", "vendor2-on-demand": "6"}
    assert found["b"] == {"on-demand": "0", "spot": "0", "vendor1-spot": "3", "vendor2-on-demand": "2"}


def test_the_answers_to_questions_mean_the_same_as_options() -> None:
    asked = admitter("init", "-f", str(DEFAULT_NODES), content=", \nA_\na, b\n2\nx\n0\n\n")
    assert asked.stdout == init("--team", "a=2", "--team", "b=1").stdout
    assert asked.stderr.count("Share of b [1]") == 3, "wrong answers are asked for again"
    assert "vendor1-spot: 1 node: 32 cpu, 128Gi memory, 8 nvidia.com/gpu" in asked.stderr


def test_no_more_answers() -> None:
    ended = admitter("init", "-f", str(DEFAULT_NODES), content="a b\n2\n")
    assert (ended.returncode, ended.stdout) == (1, "")


def test_what_is_written_passes_lint_and_admits_jobs(tmp_path: Path) -> None:
    written = tmp_path / "queues.yaml"
    assert init("--team", "a=2", "--team", "b=1", "-o", str(written)).stdout == ""
    linted = CliRunner().invoke(app, ["lint", str(written), str(DEFAULT_NODES), "-o", "json"])
    assert {each["rule"] for each in json.loads(linted.stdout)} <= {"MinIsNoCap"}
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(
        yaml.safe_dump_all([job("a", "plain", requests={"cpu": "4"}), job("b", "gpus", requests={GPU: "1"})])
    )
    played = CliRunner().invoke(app, ["simulate", str(written), str(DEFAULT_NODES), str(jobs), "-o", "json"])
    flavors = {row["job"]: row["podSets"][0]["flavors"] for row in json.loads(played.stdout)["workloads"]}
    assert flavors == {"plain": {"cpu": "on-demand"}, "gpus": {GPU: "vendor1-spot"}}


def test_the_comment_says_what_it_was_made_from(tmp_path: Path) -> None:
    nodes = read_nodes(DEFAULT_NODES)
    nodes[0]["spec"] = {"unschedulable": True}
    containers = [{"resources": {"requests": {"cpu": "1"}}}]
    pod = {"spec": {"nodeName": nodes[1]["metadata"]["name"], "containers": containers}, "apiVersion": "v1"}
    pod |= {"kind": "Pod", "metadata": {"name": "p", "namespace": "kube-system"}}
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [*nodes, pod, there]}))
    answer = init("--team", "a=1", nodes=path)
    comment = answer.stdout.partition("---")[0]
    assert "Shares: a 1. What pods of DaemonSets and of kube-system request is subtracted." in comment
    assert "1 of 6 nodes do not count" in comment
    assert "only if they tolerate the taints" in comment
    assert sum(each["kind"] == "Namespace" for each in manifests(answer)) == 0, "it exists"
    without = init("--team", "a=1")
    assert "is not known, and not subtracted" in without.stdout
    assert sum(each["kind"] == "Namespace" for each in manifests(without)) == 1


@pytest.mark.parametrize(
    "team", ["a", "a=0", "a=x", "a=1.5", "A=1", "a_b=1", "=1", "\x1b=1", "a=12345678901", "a=000"]
)
def test_a_team_that_is_none(team: str) -> None:
    answer = init("--team", team)
    assert answer.exit_code == 2
    assert "--team" in answer.stderr
    assert "\x1b=" not in answer.stderr


def test_a_team_with_two_shares() -> None:
    answer = init("--team", "a=1", "--team", "b=1", "--team", "a=2")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "a has two shares: give one" in answer.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: x}}}",
            "Node n: status.allocatable.cpu",
        ),
        ("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: 5}}", "Pod p: spec.containers"),
        ("a: .inf", "line 1: is no float"),
        ("{apiVersion: v1, kind: Namespace, metadata: {name: n}}", "there are no nodes for Jobs"),
    ],
)
def test_what_can_not_be_used_is_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    answer = init("--team", "a=1", nodes=path)
    assert answer.exit_code == 1
    assert says in str(answer.exception)


def test_a_file_that_can_not_be_written(tmp_path: Path) -> None:
    answer = init("--team", "a=1", "-o", str(tmp_path / "missing" / "queues.yaml"))
    assert "can't be written: No such file or directory" in str(answer.exception)

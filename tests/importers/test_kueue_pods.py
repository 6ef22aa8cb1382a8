"""Pods of Kueue, alone and in groups, and what makes such pods: imported, and run unchanged."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.importers.translation import Fidelity
from tests.importers.importing import Json, imported, made, outcomes, refusals
from tests.simulate.test_simulate import states

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples" / "kueue-pods"
ALL = {
    *("pod/probe-1", "podgroup/sweep", "pod/page-1", "pod/page-2", "pod/page-3"),
    *("podgroup/store", "podgroup/model-0", "podgroup/model-1"),
}
POD = "spec: {containers: [{name: c, image: i}]}"


def simulated(*paths: Path) -> dict[str, str]:
    answer = CliRunner().invoke(app, ["simulate", *map(str, paths), "--until", "1m", "-o", "json"])
    assert answer.exit_code == 0, answer.output
    return states(json.loads(answer.stdout))


def written(path: Path, *given: Path) -> Path:
    """What an import makes of files, as a file."""
    into = imported("kueue", *(each.read_text() for each in given))
    assert into.worst is not Fidelity.REFUSED
    path.write_text(yaml.safe_dump_all(into.in_order()))
    return path


def test_all_examples_are_imported_and_admitted(tmp_path: Path) -> None:
    made_of = written(tmp_path / "made.yaml", *sorted(EXAMPLES.glob("*.yaml")))
    assert simulated(made_of) == dict.fromkeys(ALL, "Admitted")


def test_all_examples_run_unchanged_beside_queues_of_their_names(tmp_path: Path) -> None:
    queues = written(tmp_path / "queues.yaml", EXAMPLES / "queues.yaml")
    pods = [each for each in EXAMPLES.glob("*.yaml") if each.name != "queues.yaml"]
    assert simulated(queues, *pods) == dict.fromkeys(ALL, "Admitted")


def test_examples_of_pods_are_simulated_as_their_page_says() -> None:
    assert simulated(DOCS / "examples" / "pods") == {
        "pod/train": "Admitted",
        "pod/chat-1": "Admitted",
        "pod/chat-2": "Admitted",
        "podgroup/tune": "Pending",
        "podgroup/store": "Pending",
    }


def group_pod(status: str = "", labels: str = "", annotations: str = "", spec: str = POD) -> str:
    return f"""
    apiVersion: v1
    kind: Pod
    metadata:
      name: p
      namespace: a
      labels: {{kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/pod-group-name: g, app: x{labels}}}
      annotations: {{kueue.x-k8s.io/pod-group-total-count: "2"{annotations}}}
    {spec}
    {status}
    """


def test_a_pod_of_a_group_says_the_same_in_our_words() -> None:
    marks = (
        ', kueue.x-k8s.io/retriable-in-group: "false", kueue.x-k8s.io/pod-group-serving: "true", '
        'kueue.x-k8s.io/pod-group-fast-admission: "true"'
    )
    into = imported("kueue", group_pod(annotations=marks))
    metadata = made(into, "Pod")["metadata"]
    assert metadata["labels"] == {
        "app": "x",
        "admitter.dev/queue-name": "main",
        "admitter.dev/pod-group": "g",
    }
    assert metadata["annotations"] == {
        "admitter.dev/pod-group-size": "2",
        "admitter.dev/retriable-in-group": "false",
        "admitter.dev/pod-group-serving": "true",
        "admitter.dev/pod-group-fast-admission": "true",
    }
    assert into.worst is Fidelity.TRANSLATED


def test_what_kueue_has_written_on_a_pod_stays_behind() -> None:
    gates = "[{name: kueue.x-k8s.io/admission}, {name: example.com/other}]"
    spec = POD.replace("spec: {", f"spec: {{schedulingGates: {gates}, ")
    into = imported("kueue", group_pod(spec=spec, status="status: {phase: Pending}"))
    assert made(into, "Pod")["spec"]["schedulingGates"] == [{"name": "example.com/other"}]
    plain = imported("kueue", group_pod(spec=spec.replace(", {name: example.com/other}", "")))
    assert "schedulingGates" not in made(plain, "Pod")["spec"]


def test_the_priority_and_the_time_to_run_of_a_pod_are_kept() -> None:
    labels = ', kueue.x-k8s.io/priority-class: high, kueue.x-k8s.io/max-exec-time-seconds: "60"'
    into = imported("kueue", group_pod(labels=labels))
    pod = made(into, "Pod")
    assert pod["metadata"]["labels"]["admitter.dev/priority-class"] == "high"
    assert pod["metadata"]["annotations"]["admitter.dev/max-runtime"] == "60s"


def test_a_mark_that_is_not_known_is_refused() -> None:
    into = imported("kueue", group_pod(labels=", kueue.x-k8s.io/odd: x"))
    assert list(refusals(into)) == [("Pod a/p", "metadata.labels[kueue.x-k8s.io/odd]")]


def maker(kind: str, spec: str, more: str = "") -> str:
    return f"""
    apiVersion: apps/v1
    kind: {kind}
    metadata: {{name: w, namespace: a, labels: {{kueue.x-k8s.io/queue-name: main}}{more}}}
    spec: {spec}
    """


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_makes_pods_stays_what_it_is(kind: str) -> None:
    spec: Json = {
        "replicas": 3,
        "minReadySeconds": 3,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    into = imported("kueue", maker(kind, json.dumps(spec)))
    assert made(into, kind) == {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "w", "namespace": "a", "labels": {"admitter.dev/queue-name": "main"}},
        "spec": spec,
    }
    assert into.worst is Fidelity.TRANSLATED


def test_a_group_in_a_template_is_one_of_ours() -> None:
    marks = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "g", "app": "x"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
    }
    template = {"metadata": marks, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    into = imported("kueue", maker("Deployment", json.dumps({"replicas": 3, "template": template})))
    assert made(into, "Deployment")["spec"]["template"]["metadata"] == {
        "labels": {"admitter.dev/pod-group": "g", "app": "x"},
        "annotations": {"admitter.dev/pod-group-size": "3"},
    }


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (maker("StatefulSet", "{}", ", ownerReferences: [{kind: LeaderWorkerSet, name: d}]"), "translated"),
        (group_pod("status: {phase: Succeeded}"), "translated"),
        (group_pod("status: {phase: Running}"), "refused"),
    ],
)
def test_what_another_object_makes_or_has_begun_is_left_out(text: str, outcome: str) -> None:
    into = imported("kueue", text)
    assert into.manifests == []
    assert {str(each.outcome) for each in into.findings} == {outcome}


def test_what_has_no_pods_is_refused() -> None:
    into = imported("kueue", maker("Deployment", "{template: {spec: 3}}"))
    assert into.manifests == []
    assert ("Deployment a/w", "spec.template.spec") in refusals(into)


def test_a_workload_of_pods_is_made_again() -> None:
    owner = "{apiVersion: v1, kind: Pod, name: p, uid: u}"
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: Workload
    metadata: {{name: g, namespace: a, ownerReferences: [{owner}, {owner}]}}
    """
    assert outcomes(imported("kueue", text), "Workload a/g") == {"": "translated"}

"""Volcano's Jobs and PodGroups, and pods of its scheduler, as Jobs."""

from typing import Any

import pytest
import yaml

from admitter.importers.translation import Fidelity, Json
from tests.importers.importing import imported
from tests.importers.trial import account, by_name, specs, words

TRANSLATED, APPROXIMATED, REFUSED = Fidelity

POD: Json = {"containers": [{"name": "main", "image": "work"}], "restartPolicy": "Never"}


def task(name: str = "main", replicas: int = 2, **more: Any) -> Json:
    return {"name": name, "replicas": replicas, "template": {"spec": POD}, **more}


def vcjob(*tasks: Json, status: Json | None = None, **spec: Any) -> str:
    raw = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "tf", "namespace": "ns", "labels": {"team": "a", "volcano.sh/x": "y"}},
        "spec": {"tasks": list(tasks), **spec},
        "status": status or {},
    }
    return "---\n" + yaml.safe_dump(raw)


def pod(annotations: Json | None = None, **spec: Any) -> str:
    metadata = {"name": "p", "namespace": "ns", "annotations": annotations or {}}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**POD, **spec}}
    return "---\n" + yaml.safe_dump(raw)


def test_a_job_of_one_task_is_a_job_of_its_pods_in_a_queue_of_the_same_name() -> None:
    into = imported("volcano", vcjob(task(replicas=3), queue="q", minAvailable=3))
    job = by_name(into, "Job")["tf"]
    assert job["metadata"]["labels"] == {"team": "a", "admitter.dev/queue-name": "q"}
    assert job["spec"] == {"suspend": True, "parallelism": 3, "completions": 3, "template": {"spec": POD}}
    assert specs(into, "LocalQueue") == {"q": {"clusterQueue": "q"}}
    assert account(into)["spec.minAvailable"] is TRANSLATED


def test_each_of_several_tasks_is_a_job_of_its_own() -> None:
    into = imported("volcano", vcjob(task("ps", 1), task("worker", 2), queue="q", minAvailable=3))
    assert {name: spec["parallelism"] for name, spec in specs(into, "Job").items()} == {
        "tf-ps": 1,
        "tf-worker": 2,
    }
    assert account(into)["spec.minAvailable"] is APPROXIMATED
    assert "admitted by itself" in words(into, "spec.tasks[0].name")


def test_a_job_without_a_queue_is_in_the_default_one_which_is_made_if_it_is_missing() -> None:
    into = imported("volcano", vcjob(task()))
    assert specs(into, "LocalQueue") == {"default": {"clusterQueue": "default"}}
    assert specs(into, "ClusterQueue")["default"]["cohort"] == "volcano"
    assert any(finding.object == "Queue default" for finding in into.findings)


@pytest.mark.parametrize(
    ("spec", "field", "outcome", "made"),
    [
        ({"maxRetry": 5}, "maxRetry", APPROXIMATED, {"backoffLimit": 5}),
        (
            {"ttlSecondsAfterFinished": 60},
            "ttlSecondsAfterFinished",
            TRANSLATED,
            {"ttlSecondsAfterFinished": 60},
        ),
        ({"minAvailable": 1}, "minAvailable", APPROXIMATED, {}),
        ({"schedulerName": "volcano"}, "schedulerName", TRANSLATED, {}),
        ({"plugins": {"env": []}}, "plugins.env", APPROXIMATED, {"completionMode": "Indexed"}),
        ({"plugins": {"svc": []}}, "plugins.svc", REFUSED, {}),
        ({"plugins": {"ssh": ["x"]}}, "plugins.ssh", REFUSED, {}),
        ({"volumes": [{"mountPath": "/x"}]}, "volumes", REFUSED, {}),
        ({"minSuccess": 1}, "minSuccess", REFUSED, {}),
        ({"networkTopology": {"mode": "hard"}}, "networkTopology", REFUSED, {}),
        ({"runningEstimate": "1h"}, "runningEstimate", REFUSED, {}),
        ({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]}, "policies[0]", TRANSLATED, {}),
        (
            {"policies": [{"event": "TaskCompleted", "action": "CompleteJob"}]},
            "policies[0]",
            APPROXIMATED,
            {},
        ),
        ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, "policies[0]", REFUSED, {}),
        ({"colour": "red"}, "colour", REFUSED, {}),
    ],
)
def test_fields_of_jobs_are_accounted_for(spec: Json, field: str, outcome: Fidelity, made: Json) -> None:
    into = imported("volcano", vcjob(task(), **spec))
    assert account(into)[f"spec.{field}"] is outcome
    common = {"suspend", "parallelism", "completions", "template"}
    assert {key: each for key, each in specs(into, "Job")["tf"].items() if key not in common} == made


@pytest.mark.parametrize(
    ("more", "field", "outcome"),
    [
        ({"minAvailable": 2}, "minAvailable", TRANSLATED),
        ({"minAvailable": 1}, "minAvailable", APPROXIMATED),
        ({"maxRetry": 2}, "maxRetry", APPROXIMATED),
        ({"dependsOn": {"name": ["x"]}}, "dependsOn", REFUSED),
        ({"topologyPolicy": "restricted"}, "topologyPolicy", REFUSED),
        ({"partitionPolicy": {"totalPartitions": 1}}, "partitionPolicy", REFUSED),
        ({"policies": [{"event": "*", "action": "RestartTask"}]}, "policies[0]", REFUSED),
    ],
)
def test_fields_of_tasks_are_accounted_for(more: Json, field: str, outcome: Fidelity) -> None:
    assert account(imported("volcano", vcjob(task(**more))))[f"spec.tasks[0].{field}"] is outcome


def test_the_priority_of_a_job_is_that_of_its_pods_unless_they_have_their_own() -> None:
    own = {"spec": {**POD, "priorityClassName": "own"}}
    text = vcjob(task("a"), task("b", template=own), priorityClassName="high")
    jobs = specs(imported("volcano", text), "Job")
    found = {name: spec["template"]["spec"]["priorityClassName"] for name, spec in jobs.items()}
    assert found == {"tf-a": "high", "tf-b": "own"}


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (vcjob(task(), status={"state": {"phase": "Completed"}}), TRANSLATED),
        (vcjob(task(), status={"state": {"phase": "Running"}}), REFUSED),
        (vcjob(), REFUSED),
    ],
    ids=["finished", "running", "without tasks"],
)
def test_a_job_that_can_not_wait_any_more_leaves_nothing(text: str, outcome: Fidelity) -> None:
    into = imported("volcano", text)
    assert (into.manifests, into.worst) == ([], outcome)


def test_a_task_without_pods_leaves_no_job() -> None:
    assert set(specs(imported("volcano", vcjob(task("a", 0), task("b"))), "Job")) == {"tf-b"}


def test_a_pod_of_volcanos_scheduler_is_a_job_in_the_queue_of_its_group() -> None:
    group: Json = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    group |= {"metadata": {"name": "g", "namespace": "ns"}, "spec": {"minMember": 2, "queue": "q"}}
    text = pod(annotations={"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano")
    into = imported("volcano", text, yaml.safe_dump(group))
    assert by_name(into, "Job")["p"]["metadata"]["labels"] == {"admitter.dev/queue-name": "q"}
    assert account(into)["spec.minMember"] is APPROXIMATED


@pytest.mark.parametrize(
    ("text", "queue"),
    [
        (pod(schedulerName="volcano"), "default"),
        (pod(annotations={"scheduling.volcano.sh/queue-name": "q"}), "q"),
    ],
    ids=["by its scheduler", "by its annotation"],
)
def test_a_pod_waits_in_the_queue_that_it_names_or_the_default_one(text: str, queue: str) -> None:
    labels = by_name(imported("volcano", text), "Job")["p"]["metadata"]["labels"]
    assert labels == {"admitter.dev/queue-name": queue}


def test_a_job_waits_in_the_queue_that_its_pods_name() -> None:
    annotations = {"scheduling.volcano.sh/queue-name": "q"}
    template = {"metadata": {"annotations": annotations}, "spec": {**POD, "schedulerName": "volcano"}}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}
    into = imported("volcano", yaml.safe_dump(made | {"spec": {"template": template}}))
    assert by_name(into, "Job")["j"]["metadata"]["labels"] == {"admitter.dev/queue-name": "q"}
    place = "spec.template.metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert account(into)[place] is TRANSLATED


def test_a_pod_of_another_scheduler_stays_what_it_is() -> None:
    assert set(by_name(imported("volcano", pod()), "Pod")) == {"p"}

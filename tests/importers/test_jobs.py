"""What runs pods becomes Jobs."""

import pytest

from admitter.importers.dispatch import dispatch
from admitter.importers.jobs import JobImporter
from admitter.importers.naming import Names
from admitter.importers.systems import SystemName
from admitter.importers.translation import Fidelity, ManifestSource, Translation
from tests.importers.importing import documents, imported, made, outcomes, refusals, words, wrong

LABELS = "labels: {kueue.x-k8s.io/queue-name: main}"
POD = "spec: {containers: [{name: c, image: i}]}"


def workload(kind: str, spec: str, more: str = "", name: str = "w") -> str:
    version = {"Pod": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    return f"""
    apiVersion: {version}
    kind: {kind}
    metadata: {{name: {name}, namespace: a, {LABELS}{more}}}
    {spec}
    """


def in_jobs(*texts: str) -> Translation:
    """What becomes of some texts where a system holds pods back by the label of their object."""

    def queue(source: ManifestSource, _: str) -> str | None:
        path = "metadata.labels[kueue.x-k8s.io/queue-name]"
        source.ignored(path)
        return source.text(path) or None

    into, jobs = Translation(), JobImporter(Names(), ("kueue.x-k8s.io",), queue)
    given = [each for text in texts for each in documents(text)]
    jobs.keep_names(given)
    dispatch(given, into, jobs.handlers(), lambda: None)
    for manifest in into.manifests:
        assert not wrong(manifest), manifest
    return into


def replicated(kind: str, more: str = "") -> str:
    return workload(kind, f"spec: {{replicas: 3, selector: {{}}, template: {{{POD}}}{more}}}")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_what_keeps_pods_running_becomes_a_job_of_as_many(kind: str) -> None:
    into = in_jobs(replicated(kind))
    job = made(into, "Job")
    assert job["spec"] == {
        "suspend": True,
        "parallelism": 3,
        "completions": 3,
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "OnFailure"}},
    }
    assert job["metadata"]["labels"] == {"admitter.dev/queue-name": "main"}
    assert into.worst is Fidelity.APPROXIMATED
    assert outcomes(into, f"{kind} a/w")["spec.template.spec.restartPolicy"] == "approximated"


def test_what_only_a_deployment_has_is_refused() -> None:
    into = in_jobs(replicated("Deployment", ", strategy: {type: Recreate}, minReadySeconds: 3"))
    assert {path for _, path in refusals(into)} == {"spec.strategy", "spec.minReadySeconds"}
    claims = ", serviceName: s, volumeClaimTemplates: [{metadata: {name: v}}]"
    into = in_jobs(replicated("StatefulSet", claims))
    assert {path for _, path in refusals(into)} == {"spec.serviceName", "spec.volumeClaimTemplates"}
    assert made(into, "Job")["spec"]["parallelism"] == 3


def test_a_deployment_without_replicas_runs_one_pod_and_one_of_none_no_job() -> None:
    one = in_jobs(workload("Deployment", f"spec: {{template: {{{POD}}}}}"))
    assert made(one, "Job")["spec"]["parallelism"] == 1
    none = in_jobs(workload("Deployment", f"spec: {{replicas: 0, template: {{{POD}}}}}"))
    assert none.manifests == []
    assert "no pods" in words(none, "Deployment a/w", "spec")


@pytest.mark.parametrize("kind", ["Pod", "ReplicaSet"])
def test_what_belongs_to_another_object_is_left_to_that(kind: str) -> None:
    spec = POD if kind == "Pod" else f"spec: {{template: {{{POD}}}}}"
    into = imported("kueue", workload(kind, spec, ", ownerReferences: [{kind: Deployment, name: d}]"))
    assert into.manifests == []
    assert outcomes(into, f"{kind} a/w") == {"": "translated"}


@pytest.mark.parametrize(
    ("kind", "status", "outcome"),
    [
        ("Job", "{conditions: [{type: Complete, status: 'True'}], succeeded: 1}", "translated"),
        ("Job", "{conditions: [{type: Failed, status: 'True'}]}", "translated"),
        ("Job", "{active: 2}", "refused"),
        ("Pod", "{phase: Succeeded}", "translated"),
        ("Pod", "{phase: Running}", "refused"),
    ],
)
def test_what_has_finished_or_runs_already_is_not_queued_again(kind: str, status: str, outcome: str) -> None:
    spec = POD if kind == "Pod" else f"spec: {{template: {{{POD}}}}}"
    into = imported("kueue", workload(kind, f"{spec}\n    status: {status}"))
    assert into.manifests == []
    assert outcomes(into, f"{kind} a/w") == {"": outcome}


def test_a_job_that_a_server_has_completed_can_be_created_again() -> None:
    spec = """
    spec:
      suspend: true
      selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}
      template:
        metadata:
          labels: {batch.kubernetes.io/controller-uid: u, controller-uid: u, job-name: w, app: x}
        spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
    status: {conditions: [{type: Suspended, status: 'True'}]}
    """
    written = ", uid: u, resourceVersion: '5', creationTimestamp: '2026-01-01T00:00:00Z', generation: 2"
    into = imported("kueue", workload("Job", spec.strip(), written))
    assert made(into, "Job") == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "w", "namespace": "a", "labels": {"admitter.dev/queue-name": "main"}},
        "spec": {
            "suspend": True,
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    assert into.worst is Fidelity.TRANSLATED


def test_a_selector_of_ones_own_stays() -> None:
    spec = f"spec: {{manualSelector: true, selector: {{matchLabels: {{a: b}}}}, template: {{{POD}}}}}"
    into = imported("kueue", workload("Job", spec))
    assert made(into, "Job")["spec"]["selector"] == {"matchLabels": {"a": "b"}}


def test_a_job_and_a_deployment_of_one_name_become_two_jobs() -> None:
    into = in_jobs(workload("Job", f"spec: {{template: {{{POD}}}}}"), replicated("Deployment"))
    first, second = (m["metadata"]["name"] for m in into.manifests)
    assert first == "w"
    assert second.startswith("w-")
    assert outcomes(into, "Deployment a/w")["metadata.name"] == "approximated"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (workload("Deployment", "spec: {replicas: 2}"), "spec: has no pods"),
        (workload("Job", "spec: {template: [1]}"), "spec: has no pods"),
        (workload("Job", "spec: {template: {spec: {containers: []}}}"), "containers"),
        (workload("Deployment", "spec: {replicas: many}"), "must be a whole number"),
        (workload("Pod", POD, name="''"), "metadata.name: is missing"),
    ],
)
def test_what_has_no_pods_or_no_name_is_refused_and_harms_no_other(text: str, says: str) -> None:
    into = in_jobs(text, workload("Job", f"spec: {{template: {{{POD}}}}}", name="good"))
    assert made(into, "Job")["metadata"]["name"] == "good"
    assert any(says in why for why in refusals(into).values())


def cron_job(labels: str = LABELS) -> str:
    return f"""
    apiVersion: batch/v1
    kind: CronJob
    metadata: {{name: nightly, namespace: a, labels: {{app: x}}}}
    spec:
      schedule: "0 1 * * *"
      jobTemplate:
        metadata: {{{labels}}}
        spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}
    """


def test_the_jobs_of_a_cron_job_wait_in_their_queue() -> None:
    into = imported("kueue", cron_job())
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    assert made(into, "CronJob") == {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "a", "labels": {"app": "x"}},
        "spec": {
            "schedule": "0 1 * * *",
            "jobTemplate": {
                "metadata": {"labels": {"admitter.dev/queue-name": "main"}},
                "spec": {"suspend": True, "template": template},
            },
        },
    }
    assert into.worst is Fidelity.TRANSLATED
    assert "spec.jobTemplate.metadata.labels[kueue.x-k8s.io/queue-name]" in outcomes(
        into, "CronJob a/nightly"
    )


def test_a_cron_job_that_names_no_queue_stays_what_it_is() -> None:
    into = imported(
        "kueue", cron_job("labels: {app: y}").replace("spec: {template", "spec: {suspend: true, template")
    )
    assert outcomes(into, "CronJob a/nightly") == {"": "translated"}
    assert made(into, "CronJob")["spec"]["jobTemplate"]["metadata"] == {"labels": {"app": "y"}}


def test_a_cron_job_without_pods_is_refused() -> None:
    text = cron_job().replace(
        "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}", "{}"
    )
    into = imported("kueue", text)
    assert into.manifests == []
    assert refusals(into)["CronJob a/nightly", "spec.jobTemplate"] == "can't become a Job: spec: has no pods"


def test_older_jobs_come_first() -> None:
    spec = f"spec: {{template: {{{POD}}}}}"
    new = workload("Job", spec, ", creationTimestamp: '2026-02-01T00:00:00Z'", "a-new-one")
    old = workload("Job", spec, ", creationTimestamp: '2026-01-01T00:00:00Z'", "old-one")
    into = imported("kueue", workload("Job", spec, name="a-written-one"), new, old)
    assert [m["metadata"]["name"] for m in into.manifests] == ["old-one", "a-new-one", "a-written-one"]


@pytest.mark.parametrize("system", list(SystemName))
def test_what_a_server_would_name_gets_a_number(system: SystemName) -> None:
    """As samples of Kueue are written, which are made with `kubectl create`."""
    given = """
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: sample-, namespace: a, labels: {kueue.x-k8s.io/queue-name: main}}
    spec:
      template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
    """
    named = given.replace("generateName: sample-", "name: sample-1")
    into = imported(system, given, named, given, given.replace("namespace: a", "namespace: b"))
    names = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in into.manifests]
    assert sorted(names) == [("a", "sample-1"), ("a", "sample-2"), ("a", "sample-3"), ("b", "sample-1")]
    assert not any("generateName" in each["metadata"] for each in into.manifests)
    said = "an API server would add five characters: its name is sample-2"
    assert words(into, "Job a/sample-2", "metadata.generateName") == said

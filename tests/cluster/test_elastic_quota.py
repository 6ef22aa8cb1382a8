"""Elastic quotas as users see them: examples of nos and scheduler-plugins, with pods on simulated nodes."""

import json
from functools import partial

import pytest

from tests.cluster.elastic import CAPACITY, OVER_QUOTA, RUNNING, Tenants
from tests.cluster.objects import elastic_quota, local_queue, resource_flavor
from tests.cluster.test_elastic_policies import queued
from tests.cluster.waiting import eventually, later_than

pytestmark = pytest.mark.cluster

MEMORY = "nos.nebuly.com/gpu-memory"
GPU = "nvidia.com/gpu"
SLICE = {"nvidia.com/gpu-10gb": "1"}
REASON = "{.status.reason}: {.status.message}"


def test_what_others_leave_is_shared_by_what_each_is_guaranteed(tenants: Tenants) -> None:
    """The example of nos: 40/40/0 becomes 50/30/0, and the labels say which Workloads may have to go."""
    a, b, c = (tenants.quota(n, min={MEMORY: gb}) for n, gb in (("a", 40), ("b", 10), ("c", 30)))
    tenants.node("slices", {"nvidia.com/gpu-10gb": "20"})
    for namespace in (a, b):
        for number in range(1, 5):
            tenants.runs_newest(namespace, f"job-{number}", SLICE)
    eventually(lambda: tenants.used(MEMORY, a, b, c) == ["40", "40", "0"], what="40/40/0")
    eventually(lambda: tenants.pods(b, f"-l={OVER_QUOTA}") == ["job-2", "job-3", "job-4"], what="b's labels")
    other = "-l=nos.nebuly.com/capacity=in-quota"
    eventually(lambda: tenants.pods(b, other) == ["job-1"], what="its label by the other name")
    assert tenants.pods(a, f"-l={OVER_QUOTA}") == []
    tenants.runs_newest(a, "job-5", SLICE)
    eventually(lambda: tenants.used(MEMORY, a, b, c) == ["50", "30", "0"], what="50/30/0")
    eventually(lambda: tenants.pods(a, f"-l={OVER_QUOTA}") == ["job-5"], what="a's labels")
    eventually(lambda: tenants.pods(b) == ["job-1", "job-2", "job-3"], what="the newest to go")
    tenants.submit(a, "job-6", SLICE)
    words = (
        f"InsufficientQuota: asks for 10 admitter.dev/gpu-memory from ElasticQuota {a}/quota: 80 of 80 "
        "admitter.dev/gpu-memory (of which 40 are its own) in use, 0 free, 10 asked (at 2"
    )
    end = "; no workload that it may preempt would make room"

    def said() -> bool:
        text = tenants.workload(a, "job-6", REASON)
        return text.startswith(words) and text.endswith(end)

    eventually(said, what=words)
    line = tenants.cluster.run_kubectl("get", "eq", f"--namespace={a}").splitlines()
    assert line[0].split() == ["NAME", "USED", "MIN", "MAX", "ACTIVE", "REASON", "AGE"]
    assert line[1].split()[:5] == [
        *("quota", f'{{"{MEMORY}":"50"}}', f'{{"{MEMORY}":40}}'),
        *("True", "Ready"),
    ]


def test_story_2(tenants: Tenants) -> None:
    """Story 2: within its min, a quota takes from one beyond its min; beyond it, from its own Workloads."""
    limits = {"a": (3, 4), "b": (4, 6), "c": (3, 4)}
    a, b, c = (tenants.quota(n, min={GPU: low}, max={GPU: high}) for n, (low, high) in limits.items())
    tenants.node("gpus", {GPU: "10"})
    for namespace, sizes in ((a, "1111"), (b, "12"), (c, "111")):
        for number, size in enumerate(sizes):
            tenants.runs_newest(namespace, f"job-{number}", {GPU: size})
    eventually(lambda: tenants.used(GPU, a, b, c) == ["4", "3", "3"], what="4/3/3")
    tenants.runs_newest(b, "claims", {GPU: "1"})
    eventually(lambda: tenants.used(GPU, a, b, c) == ["3", "4", "3"], what="3/4/3")
    assert tenants.pods(a, RUNNING) == ["job-0", "job-1", "job-2"], "the newest of those beyond their min"
    assert len(tenants.pods(c, RUNNING)) == 3
    tenants.delete("job", "job-2", a)
    tenants.delete("job", "job-3", a)
    tenants.runs_newest(b, "fifth", {GPU: "1"})
    eventually(lambda: tenants.used(GPU, a, b, c) == ["2", "5", "3"], what="2/5/3")
    high = tenants.priority_class("high", 1000)
    tenants.runs(b, "important", {GPU: "1"}, priority=high)
    eventually(lambda: tenants.used(GPU, a, b, c) == ["2", "5", "3"], what="2/5/3 again")
    assert tenants.pods(b, RUNNING) == ["claims", "important", "job-0", "job-1"], "its own newest had to go"
    assert (len(tenants.pods(a, RUNNING)), len(tenants.pods(c, RUNNING))) == (2, 3)


def test_gpus_of_another_model_have_another_amount_of_memory(tenants: Tenants) -> None:
    large, small = tenants.name("h100"), tenants.name("t4")
    for name, memory in ((large, 80), (small, 16)):
        spec = {"nodeLabels": {"gpu": name}, "gpuMemoryGB": memory}
        tenants.apply(resource_flavor(name, spec))
        tenants.made.append(("resourceflavor", name))
    tenants.node("large", {GPU: "2"}, gpu=large)
    tenants.node("small", {GPU: "8"}, gpu=small)
    a = tenants.quota("a", min={MEMORY: 160}, flavors=[large, small])
    admitted = "{.status.admission.podSets[0].flavors} {.status.admission.podSets[0].usage}"
    tenants.runs(a, "first", {GPU: "1"})
    tenants.submit(a, "second", {GPU: "2"})
    tenants.running(a, "second")
    resource = "admitter.dev/gpu-memory"
    assert tenants.workload(a, "first", admitted) == f'{{"{resource}":"{large}"}} {{"{resource}":"80"}}'
    assert tenants.workload(a, "second", admitted) == f'{{"{resource}":"{small}"}} {{"{resource}":"32"}}'
    assert tenants.shows("job", "second", a, "{.spec.template.spec.nodeSelector.gpu}") == small


def test_a_restart_writes_no_label_that_is_right(tenants: Tenants) -> None:
    a, b = tenants.quota("a", min={GPU: 1}), tenants.quota("b", min={GPU: 3})
    tenants.node("gpus", {GPU: "4"})
    for number in range(3):
        tenants.runs(a, f"job-{number}", {GPU: "1"})
    shown = "{.metadata.resourceVersion} {.metadata.labels.admitter\\.dev/capacity}"
    path = f"{{range .items[*]}}{shown};{{end}}"

    def written() -> list[str]:
        kinds = ("pods", "workloads.admitter.dev")
        return [tenants.cluster.run_kubectl("get", k, f"-n={a}", f"-o=jsonpath={path}") for k in kinds]

    eventually(lambda: [w.count("over-quota") for w in written()] == [2, 2], what="the labels")
    before = written()
    tenants.controller.kill()
    tenants.patch("eq", "quota", b, {"metadata": {"labels": {"looked": "at"}}, "spec": {"min": {GPU: 4}}})
    tenants.runs(b, "after", {GPU: "1"})
    assert written() == before
    tenants.patch("eq", "quota", a, {"spec": {"min": {GPU: 3}}})
    eventually(
        lambda: [w.count("in-quota") for w in written()] == [3, 3], what="the labels of a larger quota"
    )


def test_the_oldest_quota_of_a_namespace_is_in_force(tenants: Tenants) -> None:
    a = tenants.quota("a", min={GPU: 1})
    other = tenants.namespace("other")
    nowhere = tenants.name("nowhere")
    tenants.apply(elastic_quota(other, "composite", min={GPU: 2}, namespaces=[other, nowhere]))
    tenants.in_force("ceq", other, "composite")
    said = (
        f"NamespaceNotFound: spec.namespaces names {nowhere}, which does not exist; it works for the others"
    )
    eventually(lambda: _says(tenants, "ceq", "composite", other, said), what=said)
    tenants.apply(
        elastic_quota(other, "late", min={GPU: 1}), elastic_quota(other, "both", namespaces=[a, nowhere])
    )
    for kind, name, words in (
        ("eq", "late", f"namespace {other} is governed by CompositeElasticQuota {other}/composite"),
        ("ceq", "both", f"namespace {a} is governed by ElasticQuota {a}/quota"),
    ):
        said = f"Conflict: {words}, which is older"
        eventually(partial(_says, tenants, kind, name, other, said), what=said)
    tenants.delete("ceq", "composite", other)
    tenants.in_force("eq", other, "late")


def _says(tenants: Tenants, kind: str, name: str, namespace: str, words: str) -> bool:
    path = "{.status.conditions[0].reason}: {.status.conditions[0].message}"
    return tenants.shows(kind, name, namespace, path) == words


def test_a_job_without_quota_says_so(tenants: Tenants) -> None:
    none = tenants.namespace("none")
    tenants.submit(none, "asks", {GPU: "1"})
    words = f"QueueNotFound: no ElasticQuota or CompositeElasticQuota is for namespace {none}"
    eventually(lambda: tenants.workload(none, "asks", REASON) == words, what="the reason")
    tenants.apply(elastic_quota(none, flavors=["missing"], min={GPU: 1}))
    words = (
        f"QuotaInactive: ElasticQuota {none}/quota: spec.flavors[0] names missing: there is no such "
        "ResourceFlavor"
    )
    eventually(lambda: tenants.workload(none, "asks", REASON) == words, what="the new reason")


def test_all_jobs_of_a_namespace_are_governed_if_the_quota_says_so(tenants: Tenants) -> None:
    """By a policy where the quota is the namespace's own, by the controller where it is a composite."""
    before = tenants.namespace("b")
    tenants.submit(before, "old", {GPU: "1"}, queue=None)
    tenants.node("gpus", {GPU: "4"})
    eventually(lambda: tenants.shows("job", "old", before, "{.status.active}") == "1", what="the old Job")
    # A Job of the very second in which a quota begins to manage all would be managed too.
    later_than(tenants.cluster, tenants.shows("job", "old", before, "{.metadata.creationTimestamp}"))
    a = tenants.quota("a", min={GPU: 1}, manageAllJobs=True)
    tenants.apply(elastic_quota(a, "for-b", min={GPU: 1}, namespaces=[before], manageAllJobs=True))
    tenants.in_force("ceq", a, "for-b")
    eventually(lambda: queued(tenants.cluster, a), what="the policy to know the quota")
    for namespace in (a, before):
        for name in ("first", "second", "third"):
            tenants.submit(namespace, name, {GPU: "1"}, queue=None)
    states = ["Admitted", "Admitted", "Pending", "Pending", "Pending", "Pending"]
    names = [(n, name) for n in (a, before) for name in ("first", "second", "third")]
    eventually(lambda: sorted(tenants.state(*n) for n in names) == states, what="two of them to be admitted")
    label = "{.metadata.labels.admitter\\.dev/queue-name}"
    assert tenants.shows("job", "old", before, f"{{.spec.suspend}} {label}") == "false"


def test_jobs_that_run_already_are_left_alone_when_a_quota_begins_to_manage_all(tenants: Tenants) -> None:
    a = tenants.quota("a", min={GPU: 1})
    tenants.node("gpus", {GPU: "2"})
    tenants.submit(a, "old", {GPU: "1"}, queue=None)
    tenants.running(a, "old")
    made = tenants.shows("job", "old", a, "{.metadata.creationTimestamp}")
    later_than(tenants.cluster, made)
    tenants.patch("eq", "quota", a, {"spec": {"manageAllJobs": True}})
    since = f"{{.status.managedSince.{a}}}"
    eventually(lambda: tenants.shows("eq", "quota", a, since) > made, what="the status to say since when")
    tenants.submit(a, "new", {GPU: "1"}, queue=None)
    eventually(lambda: tenants.state(a, "new") == "Admitted", what="the new Job")
    tenants.controller.kill()
    tenants.submit(a, "newer", {GPU: "1"}, queue=None)
    eventually(lambda: tenants.state(a, "newer") == "Pending", what="the newest Job to wait")
    assert tenants.shows("job", "old", a, "{.spec.suspend}{.status.active}") == "false1"


def test_a_local_queue_of_the_same_name_is_told_that_it_is_shadowed(tenants: Tenants) -> None:
    a = tenants.quota("a", min={GPU: 1})
    tenants.apply(local_queue(a, "some-queue", "elastic-quota"))
    path = "{.status.conditions[0].status} {.status.conditions[0].reason}"
    eventually(lambda: tenants.shows("lq", "elastic-quota", a, path) == "False QueueNameTaken", what="it")


def test_what_a_quota_does_not_name_is_not_limited(tenants: Tenants) -> None:
    a = tenants.quota("a", min={GPU: 1})
    tenants.runs(a, "cpus", {"cpu": "2", "memory": "1Gi"})
    assert tenants.workload(a, "cpus", "{.status.admission.podSets[0].usage}") in {"", "{}"}
    assert tenants.shows("eq", "quota", a, "{.status.used}") == json.dumps({GPU: "0"}, separators=(",", ":"))
    eventually(lambda: tenants.pods(a, f"-l={CAPACITY}=in-quota") == ["cpus"], what="the label")


def test_a_whole_job_goes_wherever_its_pods_are(tenants: Tenants) -> None:
    """Preemption across nodes, which scheduler-plugins lacks: two pods on two nodes go for one."""
    a, b = tenants.quota("a", max={GPU: 2}), tenants.quota("b", min={GPU: 2}, max={GPU: 2})
    for number in range(2):
        tenants.node(f"node-{number}", {GPU: "2"})
    for number in range(2):
        tenants.runs(a, f"job-{number}", {GPU: "1"})
    tenants.runs(b, "owner", {GPU: "2"})
    eventually(
        lambda: [tenants.state(a, f"job-{number}") for number in range(2)] == ["Pending", "Pending"],
        what="both to wait",
    )

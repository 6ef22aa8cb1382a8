"""Elastic quotas on the API server: what it refuses, which users may write them, what they queue."""

import json
from typing import Any

import pytest

from admitter.names import CONTROLLER_USER, GPU_MEMORY, GPU_MEMORY_ALIASES
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import ADMITTER, Json, cluster_queue, elastic_quota, job, resource_flavor
from tests.cluster.people import may_create
from tests.cluster.test_validation import refused
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

(ALIAS,) = GPU_MEMORY_ALIASES
SAME = f"resources {GPU_MEMORY} and {ALIAS} are two names of the same resource: use one of them"
QUEUE = "admitter.dev/queue-name"
KINDS = ("elasticquotas", "compositeelasticquotas")


def cohort(**spec: Any) -> Json:
    return {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": "tried"}, "spec": spec}


def whole(quantity: str) -> str:
    return f"GPU memory is in whole GB: write a number like 40, not {quantity}"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"min": {"cpu": "4"}, "max": {"cpu": "3"}}, "resource cpu: max 3 is less than min 4"),
        ({"min": {"cpu": 4}, "max": {"cpu": 3}}, "resource cpu: max 3 is less than min 4"),
        ({"min": {"memory": "1Gi"}, "max": {"memory": "1G"}}, "resource memory: max 1G is less than min 1Gi"),
        ({"min": {GPU_MEMORY: "40Gi"}}, f"resource {GPU_MEMORY}: min 40Gi: {whole('40Gi')}"),
        ({"max": {ALIAS: "0.5"}}, f"resource {ALIAS}: max 0.5: {whole('0.5')}"),
        ({"min": {GPU_MEMORY: "40G"}, "max": {GPU_MEMORY: 1}}, f"min 40G: {whole('40G')}"),
        ({"min": {GPU_MEMORY: "40e9"}}, f"min 40e9: {whole('40e9')}"),
        ({"min": {GPU_MEMORY: 1, ALIAS: 1}}, SAME),
        ({"min": {GPU_MEMORY: 1}, "max": {ALIAS: 1}}, SAME),
        ({"min": {"cpu": "-1"}}, 'spec.min.cpu: Invalid value: "-1"'),
        ({"max": {"cpu": -1}}, "spec.max.cpu: Invalid value: -1"),
        ({"flavors": ["h100", "h100"]}, 'spec.flavors[1]: Duplicate value: "h100"'),
        ({"flavors": ["any_node"]}, 'spec.flavors[0]: Invalid value: "any_node"'),
        ({"preemption": {"gracePeriod": "soon"}}, 'spec.preemption.gracePeriod: Invalid value: "soon"'),
        ({"preemption": {"minRuntime": -1}}, "spec.preemption.minRuntime: Invalid value: -1"),
        ({"max": {f"r{n}": 1 for n in range(65)}}, "spec.max: Too many: 65: must have at most 64 items"),
        ({"limits": {}}, 'unknown field "spec.limits"'),
    ],
    ids=[
        "max under min",
        "max under min as numbers",
        "max under min by its unit",
        "GPU memory in Gi",
        "GPU memory in halves, by its other name",
        "GPU memory in G",
        "GPU memory with an exponent",
        "GPU memory twice",
        "GPU memory by a name each",
        "a negative text",
        "a negative number",
        "a flavor twice",
        "no flavor's name",
        "no time span",
        "a negative time span",
        "65 resources",
        "an unknown field",
    ],
)
def test_a_quota_that_is_refused(installed: Cluster, spec: Json, words: str) -> None:
    assert words in refused(installed, elastic_quota("default", **spec))
    assert words in refused(installed, elastic_quota("default", **spec, namespaces=["a"]))


@pytest.mark.parametrize(
    ("namespaces", "words"),
    [
        (None, "spec.namespaces: Required value"),
        ([], "spec.namespaces: Invalid value: 0"),
        (["a", "a"], 'spec.namespaces[1]: Duplicate value: "a"'),
        (["Not A Name"], 'spec.namespaces[0]: Invalid value: "Not A Name"'),
    ],
    ids=["absent", "none", "one twice", "no name"],
)
def test_namespaces_that_are_refused(installed: Cluster, namespaces: list[str] | None, words: str) -> None:
    manifest = elastic_quota("default", namespaces=namespaces)
    if namespaces is None:
        del manifest["spec"]["namespaces"]
    assert words in refused(installed, manifest)


@pytest.mark.parametrize("quantity", ["40Gi", "40G", "40e9", "0.5", "500m"])
@pytest.mark.parametrize("field", ["min", "max", "lendingLimit"])
def test_gpu_memory_of_queues_is_whole(installed: Cluster, field: str, quantity: str) -> None:
    queue = cluster_queue("tried", {"cpu": {"a": "1"}, ALIAS: {"h100": "1"}})
    queue["spec"]["resources"][1]["flavors"][0]["quota"][field] = quantity
    for manifest in (queue, cohort(resources=queue["spec"]["resources"])):
        assert f"resource {ALIAS}, flavor h100: {whole(quantity)}" in refused(installed, manifest)


def test_gpu_memory_of_queues_by_two_names(installed: Cluster) -> None:
    queue = cluster_queue("tried", {GPU_MEMORY: {"a": "1"}, ALIAS: {"b": "1"}})
    for manifest in (queue, cohort(resources=queue["spec"]["resources"])):
        assert SAME in refused(installed, manifest)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (resource_flavor("tried", {"gpuMemoryGB": 0}), "spec.gpuMemoryGB: Invalid value: 0"),
        (
            cluster_queue("tried", {}, preemption={"gracePeriod": "5 minutes"}),
            'spec.preemption.gracePeriod: Invalid value: "5 minutes"',
        ),
        (cohort(preemption={"minRuntime": "1h30"}), 'spec.preemption.minRuntime: Invalid value: "1h30"'),
    ],
    ids=["a GPU without memory", "a queue's time span", "a cohort's time span"],
)
def test_new_fields_of_other_kinds(installed: Cluster, manifest: Json, words: str) -> None:
    assert words in refused(installed, manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        elastic_quota("default"),
        elastic_quota(
            "default",
            min={"cpu": "500m", GPU_MEMORY: 40},
            max={"cpu": "500m", GPU_MEMORY: "80", "memory": "1Gi"},
            flavors=["h100", "t4"],
            preemption={"gracePeriod": "1h30m", "minRuntime": 90},
        ),
        elastic_quota("default", namespaces=["a", "b"], max={ALIAS: "+40"}),
        cluster_queue("tried", {GPU_MEMORY: {"h100": "40"}}, preemption={"gracePeriod": "500ms"}),
        cohort(preemption={"gracePeriod": 0, "minRuntime": "2d"}),
        resource_flavor("tried", {"gpuMemoryGB": 80}),
    ],
    ids=["empty", "all fields", "composite", "ClusterQueue", "Cohort", "ResourceFlavor"],
)
def test_what_is_taken(installed: Cluster, manifest: Json) -> None:
    content = json.dumps(manifest)
    assert "created" in installed.run_kubectl("create", "--dry-run=server", "-f-", content=content)


def test_a_quota_that_breaks_a_rule_is_refused_on_update_too(installed: Cluster, namespace: str) -> None:
    create(installed, elastic_quota(namespace, min={"cpu": 4}))
    with pytest.raises(KubectlError, match="resource cpu: max 3 is less than min 4"):
        patch(installed, namespace, {"spec": {"max": {"cpu": 3}}})


def test_a_quota_in_columns(installed: Cluster, namespace: str) -> None:
    create(installed, elastic_quota(namespace, min={"cpu": 4}, namespaces=["a", "b"]))
    heading, row = installed.run_kubectl("get", "ceq", f"--namespace={namespace}").splitlines()
    assert heading.split() == ["NAME", "NAMESPACES", "USED", "MIN", "MAX", "ACTIVE", "REASON", "AGE"]
    assert row.split()[:2] == ["quota", '["a","b"]']
    assert '{"cpu":4}' in row


@pytest.mark.parametrize("role", ["edit", "admin"])
def test_a_user_may_not_set_the_share_of_its_own_team(
    user: Cluster, installed: Cluster, namespace: str, role: str
) -> None:
    account = f"--serviceaccount={namespace}:user"
    binding = ["create", "rolebinding", "more", f"--clusterrole={role}", account, f"--namespace={namespace}"]
    installed.run_kubectl(*binding)
    create(installed, elastic_quota(namespace))
    create(installed, elastic_quota(namespace, namespaces=[namespace]))
    for kind in KINDS:
        (item,) = user.read(kind, f"--namespace={namespace}")["items"]
        assert item["metadata"]["name"] == "quota"
        with pytest.raises(KubectlError, match="forbidden"):
            user.run_kubectl("delete", kind, "quota", f"--namespace={namespace}")
    for spec in ({}, {"namespaces": [namespace]}):
        with pytest.raises(KubectlError, match="forbidden"):
            create(user, elastic_quota(namespace, "greed", **spec))
    with pytest.raises(KubectlError, match="forbidden"):
        patch(user, namespace, {"spec": {"min": {"cpu": 1000}}})


def test_an_administrator_of_quota_sets_shares(user: Cluster, installed: Cluster, namespace: str) -> None:
    account = f"--serviceaccount={namespace}:user"
    role = "--clusterrole=admitter-admin"
    installed.run_kubectl("create", "rolebinding", "more", role, account, f"--namespace={namespace}")
    eventually(lambda: may_create(user, namespace, "elasticquotas.admitter.dev"), what="a role that is known")
    create(user, elastic_quota(namespace, min={"cpu": 4}))
    patch(user, namespace, {"spec": {"min": {"cpu": 5}}})
    user.run_kubectl("delete", "eq", "quota", f"--namespace={namespace}")


def test_the_controller_labels_and_deletes_pods_and_makes_none(installed: Cluster) -> None:
    def may(verb: str, kind: str, *subresource: str) -> str:
        question = [
            "auth",
            "can-i",
            verb,
            kind,
            *subresource,
            f"--as={CONTROLLER_USER}",
            "--namespace=default",
        ]
        try:
            return installed.run_kubectl(*question).strip()
        except KubectlError:
            return "no"

    verbs = ("get", "patch", "delete", "update", "create")
    assert [may(verb, "pods") for verb in verbs] == [*3 * ["yes"], *2 * ["no"]]
    assert may("patch", "pods", "--subresource=status") == "yes"
    for kind in KINDS:
        assert may("patch", f"{kind}.admitter.dev", "--subresource=status") == "yes"
        assert [may(verb, f"{kind}.admitter.dev") for verb in ("watch", "patch")] == ["yes", "no"]


def test_all_jobs_are_queued_where_a_quota_manages_all(
    user: Cluster, installed: Cluster, namespace: str
) -> None:
    create(installed, elastic_quota(namespace, manageAllJobs=True))
    eventually(lambda: queued(user, namespace), what="policy that knows the quota")
    plain = tried(user, job(namespace, "work", queue=None, suspend=False))
    assert plain["metadata"]["labels"] == {QUEUE: "elastic-quota"}
    assert plain["spec"]["suspend"] is True
    labelled = job(namespace, "work", queue=None)
    labelled["metadata"]["labels"] = {"team": "mine", "admitter.dev/other": "too"}
    del labelled["spec"]["suspend"]
    made = tried(user, labelled)
    assert made["metadata"]["labels"] == labelled["metadata"]["labels"] | {QUEUE: "elastic-quota"}
    assert made["spec"]["suspend"] is True


def test_a_job_that_names_a_queue_keeps_it(user: Cluster, installed: Cluster, namespace: str) -> None:
    create(installed, elastic_quota(namespace, manageAllJobs=True))
    eventually(lambda: queued(user, namespace), what="policy that knows the quota")
    assert tried(user, job(namespace, "work", queue="main"))["metadata"]["labels"] == {QUEUE: "main"}
    empty = job(namespace, "work")
    empty["metadata"]["labels"][QUEUE] = ""
    assert tried(user, empty)["metadata"]["labels"] == {QUEUE: "elastic-quota"}


def test_jobs_elsewhere_are_left_alone(user: Cluster, installed: Cluster, namespace: str) -> None:
    create(installed, elastic_quota(namespace, manageAllJobs=True))
    eventually(lambda: queued(user, namespace), what="policy that knows the quota")
    made = tried(installed, job("default", "work", queue=None, suspend=False))
    assert QUEUE not in made["metadata"].get("labels", {})
    assert made["spec"]["suspend"] is False


def test_a_quota_that_does_not_manage_all_leaves_jobs_alone(
    user: Cluster, installed: Cluster, namespace: str
) -> None:
    create(installed, elastic_quota(namespace, manageAllJobs=True))
    eventually(lambda: queued(user, namespace), what="policy that knows the quota")
    patch(installed, namespace, {"spec": {"manageAllJobs": False}})
    eventually(lambda: not queued(user, namespace), what="policy that knows the change")
    made = tried(user, job(namespace, "work", queue=None, suspend=False))
    assert QUEUE not in made["metadata"].get("labels", {})
    assert made["spec"]["suspend"] is False


def test_a_quota_that_is_not_in_force_manages_nothing(
    user: Cluster, installed: Cluster, namespace: str
) -> None:
    create(installed, elastic_quota(namespace, "a-older", namespaces=[f"{namespace}-other"]))
    create(installed, elastic_quota(namespace, manageAllJobs=True))
    eventually(lambda: queued(user, namespace), what="policy that knows the quota")
    older = ["ceq", "a-older", f"--namespace={namespace}"]
    wider = json.dumps({"spec": {"namespaces": [namespace]}})
    installed.run_kubectl("patch", *older, "--type=merge", f"--patch={wider}")
    # A controller says so too, if one runs.
    condition = {"type": "Active", "status": "False", "reason": "Conflict", "message": "a-older is older"}
    written = condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch(installed, namespace, {"status": {"conditions": [written]}}, "--subresource=status")
    eventually(lambda: not queued(user, namespace), what="policy that knows the conflict")


def create(cluster: Cluster, manifest: Json) -> None:
    cluster.run_kubectl("create", "-f-", content=json.dumps(manifest))


def patch(cluster: Cluster, namespace: str, change: Json, *options: str) -> None:
    merge = ["--type=merge", f"--patch={json.dumps(change)}", *options]
    cluster.run_kubectl("patch", "eq", "quota", f"--namespace={namespace}", *merge)


def tried(cluster: Cluster, manifest: Json) -> Json:
    """What the API server would make of a Job."""
    command = ["create", "--dry-run=server", "-f-", "--output=json"]
    made: Json = json.loads(cluster.run_kubectl(*command, content=json.dumps(manifest)))
    return made


def queued(cluster: Cluster, namespace: str) -> bool:
    """Whether a Job that names no queue would be queued."""
    return QUEUE in tried(cluster, job(namespace, "work", queue=None))["metadata"].get("labels", {})

"""What `admitter lint --live` finds in a real cluster, its exit status, and what it says if it can't look."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.names import NAMESPACE
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import (
    ADMITTER,
    ON_DEMAND,
    Json,
    cluster_queue,
    elastic_quota,
    local_queue,
    resource_flavor,
)
from tests.commands import Ended, admitter, process

pytestmark = pytest.mark.cluster

TEAMS = ("team-a", "team-b")
EXAMPLE = Path(__file__).parents[2] / "manifests" / "examples" / "queues.yaml"

Apply = Callable[..., None]


def answer(*words: str) -> tuple[int, str]:
    """The exit status and the answer of a command that has one."""
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert done.stderr == ""
    return done.exit_code, done.stdout


def lint(cluster: Cluster, *options: str, controller: bool = True) -> tuple[int, str]:
    """The same of a cluster that can be looked at, with the Lease of a controller or without."""
    names = [each["metadata"]["name"] for each in cluster.read("leases", f"--namespace={NAMESPACE}")["items"]]
    if names:
        cluster.run_kubectl("delete", "lease", *names, f"--namespace={NAMESPACE}")
    if controller:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        labels = {"app.kubernetes.io/part-of": "admitter", "admitter.dev/shard": "0"}
        metadata = {"name": "admitter-controller", "namespace": NAMESPACE, "labels": labels}
        spec = {"holderIdentity": "pod_1", "leaseDurationSeconds": 600, "acquireTime": now, "renewTime": now}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        cluster.run_kubectl("apply", "--filename=-", content=json.dumps(body))
    return answer("lint", "--live", f"--kubeconfig={cluster.kubeconfig}", *options)


def found(cluster: Cluster) -> set[tuple[str, str, str]]:
    """Severity, rule and object of each finding."""
    findings = json.loads(lint(cluster, "-o", "json")[1])
    return {(each["severity"], each["rule"], each["object"]) for each in findings}


def refused(*options: str, run: Callable[..., Ended] = admitter) -> str:
    """What is said if there is nothing to look at: one line, and nothing that looks like an answer."""
    done = run("lint", "--live", "-o", "json", *options)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("error: ")


def cohort(name: str, **spec: Any) -> Json:
    return {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def queue(name: str, quota: Json, flavor: str = "on-demand", resource: str = "cpu", **spec: Any) -> Json:
    """A ClusterQueue for everybody."""
    made = cluster_queue(name, {resource: {flavor: "0"}}, **spec)
    made["spec"]["resources"][0]["flavors"][0]["quota"] = quota
    return made


def in_order() -> list[Json]:
    """Two teams that lend each other what they do not use, and a quota without queues."""
    shared: Json = {"cohort": "all", "preemption": {"reclaimWithinCohort": "Any"}}
    quota = {"min": "8", "max": "16", "lendingLimit": "4"}
    return [
        resource_flavor("on-demand", ON_DEMAND),
        *(queue(f"{name}-total", quota, **shared) for name in TEAMS),
        *(local_queue(name, f"{name}-total") for name in TEAMS),
        elastic_quota("team-a", min={"cpu": "10"}, max={"cpu": "20"}),
    ]


@pytest.fixture(scope="module")
def cluster(own: ControlPlane) -> Cluster:
    """A cluster with two teams, and nothing that could be wrong."""
    for name in TEAMS:
        own.run_kubectl("create", "namespace", name)
        own.run_kubectl("label", "namespace", name, f"team={name}")
    return own


@pytest.fixture
def apply(cluster: Cluster) -> Iterator[Apply]:
    """Applies manifests; what they make goes with the test."""
    made: list[str] = []

    def apply(*manifests: Json) -> None:
        made.append(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        cluster.run_kubectl("apply", "--filename=-", content=made[-1])

    yield apply
    for content in made:
        cluster.run_kubectl("delete", "--filename=-", "--ignore-not-found", content=content)


def test_nothing_is_found_in_a_cluster_in_order(cluster: Cluster, apply: Apply) -> None:
    apply(*in_order())
    assert lint(cluster, "--fail-on", "note") == (0, "nothing found\n")
    assert lint(cluster, "-o", "json") == (0, "[]\n")
    assert lint(cluster, "-o", "yaml") == (0, "[]\n")
    status, text = lint(cluster, "-o", "json", controller=False)
    (found,) = json.loads(text)
    assert (status, found["rule"], found["severity"]) == (1, "NoController", "error")
    assert found["message"].startswith("No controller has run here yet")


FAIR: Json = {"preemption": {"reclaimWithinCohort": "Any"}, "cohort": "fair", "fairSharing": {"weight": 0}}
MISTAKES: dict[str, tuple[list[Json], set[tuple[str, str, str]]]] = {
    "quota-above-nodes": (
        [queue("large", {"min": "999"}), local_queue("team-a", "large", "large")],
        {("warning", "MoreThanNodes", "ResourceFlavor on-demand")},
    ),
    "min-that-come-to-more-than-nodes-have": (
        [
            *(queue(f"half-{name}", {"min": "30"}) for name in TEAMS),
            *(local_queue(name, f"half-{name}", "half") for name in TEAMS),
        ],
        {("warning", "MoreThanNodes", "ResourceFlavor on-demand")},
    ),
    "quota-of-what-nodes-do-not-have": (
        [queue("odd", {"min": "1"}, resource="example.com/fpga"), local_queue("team-a", "odd", "odd")],
        {("warning", "MoreThanNodes", "ResourceFlavor on-demand")},
    ),
    "elastic-min-that-come-to-more-than-nodes-have": (
        [elastic_quota("team-b", min={"cpu": "999"})],
        {("warning", "MoreThanNodes", "Cohort elastic-quota")},
    ),
    "elastic-quotas-of-one-namespace": (
        [elastic_quota("team-b", "composite", min={"cpu": "1"}, namespaces=["team-a", "team-b"])],
        {("error", "Conflict", "CompositeElasticQuota team-b/composite")},
    ),
    "elastic-quota-of-a-namespace-that-is-not-there": (
        [elastic_quota("team-b", "composite", min={"cpu": "1"}, namespaces=["team-b", "team-c"])],
        {("warning", "NamespaceNotFound", "CompositeElasticQuota team-b/composite")},
    ),
    "flavor-without-nodes": (
        [
            resource_flavor("moon", {"nodeLabels": {"instance-type": "moon"}}),
            queue("moon", {"min": "1"}, "moon"),
            local_queue("team-a", "moon", "moon"),
        ],
        {("warning", "NoNodes", "ResourceFlavor moon")},
    ),
    "flavor-that-is-missing": (
        [queue("wrong", {"min": "1"}, "on-demnad"), local_queue("team-a", "wrong", "wrong")],
        {("error", "FlavorNotFound", "ClusterQueue wrong")},
    ),
    "flavor-twice": (
        [resource_flavor("twin", ON_DEMAND)],
        {
            ("warning", "SameNodes", "ResourceFlavor twin"),
            ("note", "UnusedFlavor", "ResourceFlavor twin"),
        },
    ),
    "queues-that-nobody-can-use": (
        [
            queue("no-door", {"min": "1"}),
            queue("no-users", {"min": "1"}, namespaceSelector=None),
            cluster_queue("strangers", {"cpu": {"on-demand": "1"}}, "team-x"),
            local_queue("team-a", "strangers", "strangers"),
            local_queue("team-a", "team-a-totla", "mistyped"),
        ],
        {
            ("warning", "NobodyMayUse", "ClusterQueue no-door"),
            ("warning", "NobodyMayUse", "ClusterQueue no-users"),
            ("error", "NotSelected", "LocalQueue team-a/strangers"),
            ("error", "LeadsNowhere", "LocalQueue team-a/mistyped"),
        },
    ),
    "weight-of-zero": (
        [
            cohort("fair", fairSharing={"enabled": True}),
            queue("light", {"min": "1", "max": "2"}, **FAIR),
            local_queue("team-a", "light", "light"),
        ],
        {("note", "WeightOfZero", "ClusterQueue light")},
    ),
    "lending-that-can-never-be-borrowed": (
        [
            queue("generous", {"min": "2", "lendingLimit": "1"}, cohort="alll"),
            local_queue("team-a", "generous", "generous"),
        ],
        {("warning", "UselessLending", "ClusterQueue generous")},
    ),
    "min-taken-for-a-cap-and-lent-for-good": (
        [queue("open", {"min": "2"}, cohort="all"), local_queue("team-a", "open", "open")],
        {("note", "MinIsNoCap", "ClusterQueue open"), ("note", "LendsForGood", "ClusterQueue open")},
    ),
    "nothing-to-give": (
        [queue("empty", {"min": "0"}), local_queue("team-a", "empty", "empty")],
        {("warning", "NothingToGive", "ClusterQueue empty")},
    ),
    "cohorts-in-a-circle": (
        [cohort("up", parent="down"), cohort("down", parent="up")],
        {("error", "CohortCycle", "Cohort up"), ("error", "CohortCycle", "Cohort down")},
    ),
}
"""What is wrong, beside what is in order, and all that is found then."""


@pytest.mark.parametrize(("manifests", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found_and_nothing_else(
    cluster: Cluster, apply: Apply, manifests: list[Json], expected: set[tuple[str, str, str]]
) -> None:
    apply(*in_order(), *manifests)
    assert found(cluster) == expected


@pytest.fixture
def wrong(cluster: Cluster, apply: Apply) -> Cluster:
    """A cluster with something of each severity."""
    names = ("flavor-that-is-missing", "flavor-without-nodes", "weight-of-zero")
    apply(*in_order(), *(manifest for name in names for manifest in MISTAKES[name][0]))
    return cluster


def test_each_form_of_the_answer_has_all_of_it_the_worst_first(wrong: Cluster) -> None:
    status, text = lint(wrong, "-o", "json")
    findings = json.loads(text)
    assert status == 1
    assert [list(each) for each in findings] == [["rule", "severity", "object", "message"]] * 3
    assert [each["severity"] for each in findings] == ["error", "warning", "note"]
    assert findings[1]["message"] == "no node has its labels instance-type=moon"
    status, text = lint(wrong, "-o", "yaml")
    assert (status, yaml.safe_load(text)) == (1, findings)
    status, text = lint(wrong)
    lines = [line.split()[:2] for line in text.splitlines()]
    assert status == 1
    assert [*lines[0::2], *lines[1::2]] == [
        *(each["object"].split() for each in findings),
        *([each["severity"], each["rule"]] for each in findings),
    ]


def test_the_exit_status_goes_by_the_worst_that_is_there(cluster: Cluster, apply: Apply) -> None:
    apply(*in_order(), *MISTAKES["weight-of-zero"][0])
    assert [lint(cluster, "--fail-on", each)[0] for each in ("error", "warning", "note")] == [0, 0, 1]
    apply(*MISTAKES["flavor-without-nodes"][0])
    assert [lint(cluster, "--fail-on", each)[0] for each in ("error", "warning")] == [0, 1]


def test_snapshots_and_manifests_are_found_to_be_what_the_cluster_is(wrong: Cluster, tmp_path: Path) -> None:
    """What the API server fills in changes nothing, nor what a snapshot leaves out."""
    state, objects = tmp_path / "state.json", tmp_path / "objects.json"
    state.write_text(answer("snapshot", f"--kubeconfig={wrong.kubeconfig}")[1])
    kinds = "resourceflavors,cohorts,clusterqueues,localqueues,elasticquotas,namespaces,nodes"
    objects.write_text(json.dumps(wrong.read(kinds, "--all-namespaces")))
    live = json.loads(lint(wrong, "-o", "json")[1])
    for given in (["--state", str(state)], [str(objects)]):
        status, text = answer("lint", "-o", "json", *given)
        assert (status, json.loads(text)) == (1, live)


def account(cluster: Cluster, folder: Path, *kinds: str) -> Cluster:
    """An administrator of quota, that may also list some kinds."""
    name = f"administrator-{len(kinds)}"
    who = f"--serviceaccount=team-a:{name}"
    cluster.run_kubectl("create", "serviceaccount", name, "--namespace=team-a")
    cluster.run_kubectl("create", "clusterrolebinding", name, "--clusterrole=admitter-admin", who)
    if kinds:
        cluster.run_kubectl("create", "clusterrole", name, "--verb=list", f"--resource={','.join(kinds)}")
        cluster.run_kubectl("create", "clusterrolebinding", f"{name}-more", f"--clusterrole={name}", who)
    kubeconfig = cluster.service_account_kubeconfig("team-a", name, folder / name)
    return Cluster(kubectl=cluster.kubectl, kubeconfig=kubeconfig)


def test_a_user_that_may_list_what_lint_reads_needs_no_right_to_jobs(
    wrong: Cluster, cluster: Cluster, tmp_path: Path
) -> None:
    file = account(cluster, tmp_path, "namespaces", "nodes", "pods").kubeconfig
    by_administrator = lint(wrong, "-o", "json")
    assert answer("lint", "--live", f"--kubeconfig={file}", "-o", "json") == by_administrator


def test_a_user_without_a_right_reads_which_right_is_missing(cluster: Cluster, tmp_path: Path) -> None:
    said = refused(f"--kubeconfig={account(cluster, tmp_path).kubeconfig}")
    assert re.match("A right is missing: to list (namespaces|nodes|pods) in the whole cluster; ", said)
    assert "ClusterRole admitter-reader gives it" in said


def test_a_token_that_is_unknown(cluster: Cluster, tmp_path: Path) -> None:
    kubeconfig = changed(cluster, tmp_path, "user", {"token": "nonsense"})
    said = refused(f"--kubeconfig={kubeconfig}", run=process)
    assert said.startswith("The API server does not know this user: Unauthorized")


def changed(cluster: Cluster, folder: Path, part: str, fields: Json) -> Path:
    """Another kubeconfig of a cluster, with its cluster or its user replaced."""
    assert cluster.kubeconfig
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document[f"{part}s"][0][part] = fields
    made = folder / "changed"
    made.write_text(yaml.safe_dump(document))
    return made


def test_a_cluster_that_can_not_be_reached(cluster: Cluster, tmp_path: Path) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        address = f"https://127.0.0.1:{deaf.getsockname()[1]}"
        said = refused(f"--kubeconfig={changed(cluster, tmp_path, 'cluster', {'server': address})}")
    assert said.startswith(f"{address} does not answer: ")


def test_a_kubeconfig_or_a_context_that_is_not_there(cluster: Cluster, tmp_path: Path) -> None:
    said = refused(f"--kubeconfig={tmp_path / 'nothing'}")
    assert said == f"no cluster to talk to: there is no file {tmp_path / 'nothing'}"
    said = refused(f"--kubeconfig={cluster.kubeconfig}", "--context=nowhere")
    assert said.startswith("no cluster to talk to: ")
    assert "nowhere" in said


@pytest.mark.long
def test_a_cluster_without_admitter_and_then_with_it(bare: ControlPlane) -> None:
    said = refused(f"--kubeconfig={bare.kubeconfig}")
    assert said.startswith("There is no /apis/admitter.dev/")
    assert "admitter install" in said
    assert admitter("install", "--without-deployment", f"--kubeconfig={bare.kubeconfig}").returncode == 0
    assert lint(bare, "--fail-on", "note") == (0, "nothing found\n")
    bare.run_kubectl("apply", f"--filename={EXAMPLE}")
    assert lint(bare) == (0, "nothing found\n"), "the tour's queues are as they are meant"

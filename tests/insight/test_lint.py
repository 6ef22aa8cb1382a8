"""`admitter lint`: what is probably not meant, and nothing else."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.insight.lint import RULES, lint
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.cluster.objects import ADMITTER, Json, cluster_queue, local_queue, resource_flavor
from tests.insight.states import State
from tests.kinds.described import experiment

DOCS = Path(__file__).parents[2] / "docs" / "lint.md"
CPUS: Json = {"allocatable": {"cpu": "8"}}


def found(state: State) -> set[tuple[str, str]]:
    """Rule and object of each finding."""
    return {(each.rule, each.object) for each in lint(Snapshot(facts(state.snapshot())))}


def node(
    state: State, kind: str, taints: Sequence[Json] = (), *, cordoned: bool = False, **allocatable: str
) -> None:
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": allocatable, "conditions": [ready]}
    spec = {"taints": list(taints), "unschedulable": cordoned}
    name = f"node-{kind}-{len(state.objects['nodes'])}"
    state.put("nodes", name, metadata={"labels": {"kind": kind}}, spec=spec, status=status)


@pytest.fixture
def state() -> State:
    """One queue that is as it should be."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    return state


def test_what_is_right_is_left_alone(state: State) -> None:
    node(state, "default", cpu="8")
    assert found(state) == set()


def test_queues_that_do_not_work(state: State) -> None:
    state.queue("wrong", {"cpu": {"missing": {"min": "1"}}})
    assert ("FlavorNotFound", "ClusterQueue wrong") in found(state)


def test_job_kinds_that_do_not_work_or_lack_policies_or_an_operator(state: State) -> None:
    node(state, "default", cpu="8")
    for name, works, reason, operators in (
        ("gone", "False", "DefinitionNotFound", ["lab"]),
        ("bare", "True", "NoPolicy", ["lab"]),
        ("sound", "True", "Ready", ["lab"]),
        ("loose", "True", "Ready", []),
    ):
        active = {"type": "Active", "status": works, "reason": reason, "message": "why"}
        active["lastTransitionTime"] = "2026-01-05T10:00:00Z"
        spec = {**experiment()["spec"], "operators": operators}
        state.put("jobkinds", name, spec=spec, status={"conditions": [active]})
    job = {"resource": {"group": "batch", "version": "v1", "kind": "Job", "plural": "jobs"}}
    state.put("jobkinds", "job", spec=experiment()["spec"] | job)
    assert found(state) == {
        ("DefinitionNotFound", "JobKind gone"),
        ("NoPolicy", "JobKind bare"),
        ("NoOperator", "JobKind loose"),
    }


def test_classes_for_queues_that_are_not_there(state: State) -> None:
    for name, queues in (("good", ["total"]), ("lost", ["total", "gone"]), ("none", [])):
        state.put("workloadpriorityclasses", name, spec={"value": 5, "clusterQueues": queues})
    state.put("workloadpriorityclasses", "all", spec={"value": 5})
    assert found(state) == {
        ("ClassForNoQueue", "WorkloadPriorityClass lost"),
        ("ClassForNoQueue", "WorkloadPriorityClass none"),
    }


def test_cohorts_in_a_circle(state: State) -> None:
    state.put("cohorts", "up", spec={"parent": "down"})
    state.put("cohorts", "down", spec={"parent": "up"})
    assert found(state) == {("CohortCycle", "Cohort up"), ("CohortCycle", "Cohort down")}


def test_local_queues_that_lead_nowhere(state: State) -> None:
    state.put("localqueues", "lost", "a", spec={"clusterQueue": "totla"})
    selector = {"matchLabels": {"team": "x"}}
    state.queue("closed", {"cpu": {"default": {"min": "1"}}}, namespaceSelector=selector)
    state.put("localqueues", "shut", "a", spec={"clusterQueue": "closed"})
    expected = {("LeadsNowhere", "LocalQueue a/lost"), ("NotSelected", "LocalQueue a/shut")}
    assert found(state) == expected


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"matchLabels": {"team": "x"}}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "absent"}}, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "a", "team": "x"}}, False),
        (None, False),
    ],
)
def test_of_a_namespace_that_files_leave_out_only_the_name_is_known(
    state: State, selector: Json | None, selected: bool
) -> None:
    state.queue("q", {"cpu": {"default": {"min": "1"}}}, namespaceSelector=selector)
    state.put("localqueues", "main", "absent", spec={"clusterQueue": "q"})
    assert (("NotSelected", "LocalQueue absent/main") not in found(state)) == selected


def test_queues_that_no_user_may_use(state: State) -> None:
    state.queue("alone", {"cpu": {"default": {"min": "1"}}})
    state.queue("no-users", {"cpu": {"default": {"min": "1"}}}, namespaceSelector=None)
    state.put("localqueues", "no-users", "a", spec={"clusterQueue": "no-users"})
    rules = found(state)
    assert {("NobodyMayUse", "ClusterQueue alone"), ("NobodyMayUse", "ClusterQueue no-users")} <= rules


def test_quota_above_what_nodes_have(state: State) -> None:
    node(state, "default", cpu="3")
    assert found(state) == {("MoreThanNodes", "ResourceFlavor default")}


def test_quota_of_what_nodes_do_not_have(state: State) -> None:
    node(state, "default", cpu="4")
    state.queue("odd", {"example.com/fpga": {"default": {"min": "1"}}})
    state.namespace("b", "odd")
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert finding.message == "quota totals 1 example.com/fpga; its nodes offer 0"


def test_elastic_quotas_above_what_their_nodes_have(state: State) -> None:
    """Nodes with a taint count: what tolerates it may run there."""
    node(state, "default", cpu="4")
    taints = [{"key": "spot", "effect": "NoSchedule"}]
    node(state, "spot", taints, cpu="2")
    for name, flavors in (("a", []), ("b", ["default"])):
        spec = {"min": {"cpu": "3"}, "flavors": flavors}
        state.namespace(name, "total", f"to-{name}")
        state.put("elasticquotas", "quota", name, spec=spec)
    assert found(state) == set()
    state.objects["elasticquotas"][0]["spec"]["min"]["cpu"] = "4"
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert (finding.rule, finding.object) == ("MoreThanNodes", "Cohort elastic-quota")
    assert finding.message == "elastic quotas total 7 cpu; their nodes offer 6"
    state.objects["elasticquotas"][0]["spec"]["flavors"] = ["default"]
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert finding.message.endswith("total 7 cpu; their nodes offer 4")


def test_elastic_quotas_that_do_not_work(state: State) -> None:
    spec = {"min": {"cpu": "1"}}
    state.put("elasticquotas", "first", "a", spec=spec)
    state.put("elasticquotas", "second", "a", spec=spec)
    state.put("elasticquotas", "lost", "b", spec=spec | {"flavors": ["missing"]})
    assert found(state) == {
        ("Conflict", "ElasticQuota a/second"),
        ("FlavorNotFound", "ElasticQuota b/lost"),
    }


def test_namespaces_that_are_missing_count_only_where_any_are_known() -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.put("localqueues", "main", "a", spec={"clusterQueue": "total"})
    spec = {"min": {"cpu": "1"}, "namespaces": ["a", "b"]}
    state.put("compositeelasticquotas", "both", "a", spec=spec)
    assert found(state) == set()
    state.put("namespaces", "a")
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert (finding.severity, finding.rule) == ("warning", "NamespaceNotFound")


def test_a_quota_that_manages_pods_of_a_namespace_that_is_not_managed() -> None:
    state = State()
    state.put("elasticquotas", "quota", "a", spec={"min": {"cpu": "1"}, "manageAllPods": True})
    unknown = {("UnusedFlavor", "ResourceFlavor default")}
    assert found(state) == unknown, "of the namespace nothing is known"
    state.put("namespaces", "a")
    finding, _ = lint(Snapshot(facts(state.snapshot())))
    assert (finding.severity, finding.rule) == ("warning", "NamespaceNotManaged")
    assert finding.object == "ElasticQuota a/quota"


def test_more_than_the_cohort_above_allows_works_all_the_same(state: State) -> None:
    def cpus(**quota: str) -> list[Json]:
        return [{"name": "cpu", "flavors": [{"name": "default", "quota": quota}]}]

    state.put("cohorts", "up", spec={"resources": cpus(min="1", max="2")})
    state.put("cohorts", "down", spec={"parent": "up", "resources": cpus(min="3")})
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert (finding.severity, finding.rule, finding.object) == ("warning", "ExceedsParent", "Cohort down")


def test_flavors_without_nodes_without_queues_and_twice_the_same(state: State) -> None:
    node(state, "default", cpu="4")
    state.put("resourceflavors", "other", spec={"nodeLabels": {"kind": "other"}})
    state.put("resourceflavors", "twin", spec={"nodeLabels": {"kind": "default"}})
    assert found(state) == {
        ("NoNodes", "ResourceFlavor other"),
        ("UnusedFlavor", "ResourceFlavor other"),
        ("SameNodes", "ResourceFlavor twin"),
        ("UnusedFlavor", "ResourceFlavor twin"),
    }


def test_flavors_of_two_groups_that_no_node_has_together(state: State) -> None:
    """GPUs are on nodes of one kind alone, so Jobs with GPUs never get CPUs of the other."""
    labels, status = {"kind": "default", "gpu": "t4"}, {"allocatable": {"cpu": "8", "example.com/gpu": "4"}}
    state.put("nodes", "both", metadata={"labels": labels}, status=status)
    node(state, "plain", cpu="8")
    for name, labels in (("t4", {"gpu": "t4"}), ("plain", {"kind": "plain"})):
        state.put("resourceflavors", name, spec={"nodeLabels": labels})
    quotas = {
        "cpu": {"default": {"min": "1"}, "plain": {"min": "1"}},
        "example.com/gpu": {"t4": {"min": "1"}},
    }
    state.queue("odd", quotas)
    state.namespace("b", "odd")
    found = [each for each in lint(Snapshot(facts(state.snapshot()))) if each.rule == "NoNodeForAll"]
    assert [(each.severity, each.object, each.message) for each in found] == [
        (
            "warning",
            "ClusterQueue odd",
            "a pod that requests cpu and example.com/gpu never gets plain: no node of that is also of t4",
        )
    ]
    flavor = state.objects["resourceflavors"][-1]
    flavor["spec"]["nodeProvisioning"] = "OnDemand"
    assert "NoNodeForAll" not in {each.rule for each in lint(Snapshot(facts(state.snapshot())))}


def test_flavors_of_three_groups_that_no_node_has_all_together(state: State) -> None:
    """Any two of a, b and c are together on a node, but all three on none; `other` can replace a."""
    node(state, "default", cpu="8")
    for labels in ("ab", "bc", "ac", "bco"):
        metadata = {"labels": dict.fromkeys([*labels, "net"], "yes")}
        state.put("nodes", labels, metadata=metadata, status=CPUS)
    for label in ("a", "b", "c", "o", "net"):
        state.put("resourceflavors", label, spec={"nodeLabels": {label: "yes"}})
    groups = {"cpu": "ao", "example.com/gpu": "b", "example.com/disk": "c"}
    quotas = {name: {flavor: {"min": "1"} for flavor in flavors} for name, flavors in groups.items()}
    state.queue("odd", quotas | {"example.com/net": {"net": {"min": "1"}}})
    state.namespace("b", "odd")

    def told() -> list[str]:
        every = lint(Snapshot(facts(state.snapshot())))
        return [each.message for each in every if each.rule == "NoNodeForAll"]

    asked = "a pod that requests cpu and example.com/gpu and example.com/disk never gets"
    assert told() == [f"{asked} a: no node of that is also of b, and of c"], "net is on all nodes"
    state.objects["nodes"][-1]["metadata"]["labels"] = {"o": "yes", "net": "yes"}
    assert f"{asked} a: no node of that is also of b, and of c" in told()
    gpu = "a pod that requests example.com/gpu and cpu and example.com/disk never gets"
    assert f"{gpu} b: no node of that is also of a or o, and of c" in told()
    assert [each for each in told() if " o: " in each] == [
        "a pod that requests cpu and example.com/disk never gets o: no node of that is also of c",
        "a pod that requests cpu and example.com/gpu never gets o: no node of that is also of b",
    ], "by twos, as far as two are enough"


def test_a_flavor_with_nodes_that_take_no_pod_until_one_does(state: State) -> None:
    state.put("resourceflavors", "gpu", spec={"nodeLabels": {"kind": "gpu"}})
    state.queue("gpus", {"cpu": {"gpu": {"min": "4"}}})
    state.namespace("b", "gpus")
    node(state, "default", cpu="4")
    gpu = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
    node(state, "gpu", cordoned=True, cpu="4")
    node(state, "gpu", [gpu], cpu="4")
    (finding,) = lint(Snapshot(facts(state.snapshot())))
    assert (finding.severity, finding.rule, finding.object) == (
        "warning",
        "ClosedNodes",
        "ResourceFlavor gpu",
    )
    assert "1 cordoned or not ready, 1 with taints" in finding.message
    for body in ({"nodeTaints": [gpu]}, {"tolerations": [{"key": "gpu", "operator": "Exists"}]}):
        (flavor,) = (each for each in state.objects["resourceflavors"] if each["metadata"]["name"] == "gpu")
        flavor["spec"] = {"nodeLabels": {"kind": "gpu"}, **body}
        assert found(state) == set(), "Jobs that are admitted to it tolerate the taint"
    flavor["spec"] = {"nodeLabels": {"kind": "gpu"}}
    assert {rule for rule, _ in found(state)} == {"ClosedNodes"}
    state.put("resourceflavors", "spot", spec={"nodeTaints": [gpu]})
    state.queue("cpus", {"cpu": {"spot": {"min": "1"}}})
    state.namespace("c", "cpus")
    assert "ClosedNodes" not in {rule for rule, _ in found(state)}, (
        "of a node of both flavors, the other knows it"
    )


def test_weights_of_zero_count_only_where_shares_are_weighed(state: State) -> None:
    for name in ("b", "c"):
        weight = {"fairSharing": {"weight": 0}, "preemption": {"reclaimWithinCohort": "Any"}}
        state.queue(f"team-{name}", {"cpu": {"default": {"min": "0"}}}, f"all-{name}", **weight)
        state.namespace(name, f"team-{name}")
        fair = {"fairSharing": {"enabled": name == "b"}}
        quota = [{"name": "cpu", "flavors": [{"name": "default", "quota": {"min": "2"}}]}]
        state.put("cohorts", f"all-{name}", spec={"resources": quota, **fair})
    assert found(state) == {("WeightOfZero", "ClusterQueue team-b")}


def test_lending_that_no_queue_can_borrow(state: State) -> None:
    state.queue("alone", {"cpu": {"default": {"min": "4", "lendingLimit": "2"}}}, "mistyped")
    state.namespace("b", "alone")
    assert found(state) == {("UselessLending", "ClusterQueue alone")}


def test_a_limit_on_what_the_queue_does_not_list_is_no_promise_and_no_loan(state: State) -> None:
    node(state, "default", cpu="8", pods="10")
    state.queue("limited", {"cpu": {"default": {"min": "1"}}}, limits={"pods": 100})
    state.put("localqueues", "limited", "a", spec={"clusterQueue": "limited"})
    assert found(state) == set()


def test_lending_that_can_not_be_taken_back_and_a_min_that_is_no_cap(state: State) -> None:
    reclaim = {"preemption": {"reclaimWithinCohort": "Any"}}
    state.queue("lends", {"cpu": {"default": {"min": "4"}}}, "all")
    state.queue("capped", {"cpu": {"default": {"min": "4", "max": "4"}}}, "all", **reclaim)
    state.namespace("b", "lends")
    state.namespace("c", "capped")
    expected = {("LendsForGood", "ClusterQueue lends"), ("MinIsNoCap", "ClusterQueue lends")}
    assert found(state) == expected


def test_a_limit_on_evictions_that_keeps_what_is_borrowed_for_long(state: State) -> None:
    state.queue("owner", {"cpu": {"default": {"min": "4"}}}, "all", preemption={"reclaimWithinCohort": "Any"})
    state.namespace("o", "owner")
    for name, count, per, cohort in (
        ("never", 0, "1m", "all"),
        ("long", 2, "25h", "all"),
        ("short", 1, "1d", "all"),
        ("alone", 0, "1d", ""),
    ):
        limit = {"maxEvictionsPerWorkload": {"count": count, "per": per}, "reclaimWithinCohort": "Any"}
        state.queue(name, {"cpu": {"default": {"min": "1", "max": "2"}}}, cohort, preemption=limit)
        state.namespace(name, name)
    titles = {title for rule, title in found(state) if rule == "KeepsWhatItBorrows"}
    assert titles == {"ClusterQueue never", "ClusterQueue long"}


def test_a_queue_that_has_nothing_to_give(state: State) -> None:
    state.queue("empty", {"cpu": {"default": {"min": "0"}}})
    state.namespace("b", "empty")
    assert found(state) == {("NothingToGive", "ClusterQueue empty")}


def run(tmp_path: Path, *manifests: Json, options: tuple[str, ...] = ()) -> tuple[int, str]:
    path = tmp_path / "quota.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    answer = CliRunner().invoke(app, ["lint", str(path), *options])
    return answer.exit_code, answer.stdout


QUEUES = (
    resource_flavor("default", {}),
    cluster_queue("total", {"cpu": {"default": "4"}}),
    local_queue("a", "total"),
)


def test_files_that_are_right(tmp_path: Path) -> None:
    assert run(tmp_path, *QUEUES) == (0, "nothing found\n")


def test_the_exit_status_goes_by_the_worst(tmp_path: Path) -> None:
    unused = resource_flavor("unused", {"nodeLabels": {"kind": "x"}})
    assert run(tmp_path, *QUEUES, unused)[0] == 0
    exit_code, printed = run(tmp_path, *QUEUES, unused, options=("--fail-on", "note"))
    assert exit_code == 1
    assert re.fullmatch(
        r"ResourceFlavor unused\n note +UnusedFlavor +no queue and no Cohort names it *\n", printed
    )


def test_findings_are_by_object_the_worst_first_and_mild_ones_may_be_left_out(tmp_path: Path) -> None:
    closed = cluster_queue("closed", {"cpu": {"missing": "1"}})
    quota = {"min": "0", "lendingLimit": "0"}
    resources = [{"name": "cpu", "flavors": [{"name": "default", "quota": quota}]}]
    mild = {**cluster_queue("mild", {}), "spec": {"namespaceSelector": None, "resources": resources}}
    unused = resource_flavor("unused", {"nodeLabels": {"kind": "x"}})
    _, printed = run(tmp_path, *QUEUES, unused, mild, closed)
    lines = [line.split()[:2] for line in printed.splitlines()]
    assert lines == [
        ["ClusterQueue", "closed"],
        ["error", "FlavorNotFound"],
        ["ClusterQueue", "mild"],
        ["warning", "NobodyMayUse"],
        ["warning", "NothingToGive"],
        ["warning", "UselessLending"],
        ["ResourceFlavor", "unused"],
        ["note", "UnusedFlavor"],
    ]
    given = (*QUEUES, unused, mild)
    status, printed = run(tmp_path, *given, options=("--min-severity", "warning", "--fail-on", "note"))
    assert (status, "UnusedFlavor" in printed, "NobodyMayUse" in printed) == (1, False, True)
    options = ("--min-severity", "error", "-o", "json")
    assert run(tmp_path, *given, options=options) == (0, "[]\n"), "and the answer for programs likewise"


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    wrong = cluster_queue("wrong", {"cpu": {"missing": "1"}})
    (status, as_json), (_, as_yaml) = (
        run(tmp_path, *QUEUES, wrong, options=("-o", f)) for f in ("json", "yaml")
    )
    assert status == 1
    assert yaml.safe_load(as_yaml) == json.loads(as_json) != []


def test_what_is_no_object_of_its_kind_is_an_error(tmp_path: Path) -> None:
    wrong = {
        "apiVersion": ADMITTER,
        "kind": "ClusterQueue",
        "metadata": {"name": "q"},
        "spec": {"flavour": 1},
    }
    exit_code, printed = run(tmp_path, *QUEUES, wrong, options=("-o", "json"))
    assert exit_code == 1
    (finding,) = [each for each in json.loads(printed) if each["severity"] == "error"]
    assert (finding["rule"], finding["object"]) == ("InvalidSpec", "ClusterQueue q")
    assert "flavour" in finding["message"]


def test_it_looks_at_files_or_at_a_cluster() -> None:
    assert CliRunner().invoke(app, ["lint"]).exit_code == 2


def test_every_rule_is_explained() -> None:
    rules = {"NoController"} | {name for name, _, _ in RULES}
    assert len(rules) > 10
    assert rules <= set(re.findall(r"`(\w+)`", DOCS.read_text()))

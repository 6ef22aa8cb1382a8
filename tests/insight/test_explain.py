"""`admitter explain`: the rule that is in the way, and all that follows from it."""

import json
from pathlib import Path

import pytest

from admitter.insight.explain.explainer import Explainer, UnknownError
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.asking import Desk
from tests.insight.nodes import node
from tests.insight.states import State, moment

GPU = "nvidia.com/gpu"


@pytest.fixture
def state() -> State:
    """Two teams share GPUs: the first has lent nothing, the second keeps most of its own."""
    state = State("a100", "t4")
    preemption = {"withinClusterQueue": "LowerPriority"}
    quota = {GPU: {"a100": {"min": "4"}, "t4": {"min": "2"}}}
    state.queue("team-a", quota, "research", preemption=preemption)
    state.queue("team-b", {GPU: {"a100": {"min": "8", "lendingLimit": "2"}}}, "research")
    state.namespace("a", "team-a")
    state.namespace("b", "team-b")
    state.holds("a", "runs-1", {GPU: ("2", "a100")}, cluster_queue="team-a", since=-600)
    state.holds("a", "runs-2", {GPU: ("1", "a100")}, cluster_queue="team-a", since=-300, priority=5)
    return state


@pytest.fixture
def desk(state: State, tmp_path: Path) -> Desk:
    state.waits("a", "first", {GPU: "2"}, pods=3, created=-20)
    state.waits("a", "train", {GPU: "4"}, created=-10)
    state.waits("a", "huge", {GPU: "100"}, created=-5)
    return Desk(state, tmp_path)


def test_the_binding_rule_comes_first_in_a_plain_sentence(desk: Desk) -> None:
    title, sentence, *_ = desk.tell("train")
    assert title == "a/train: Pending in ClusterQueue team-a, number 2 in line"
    assert sentence == (
        "  waits for 4 × nvidia.com/gpu in flavor a100: 1 free in ClusterQueue team-a, "
        "2 more can be borrowed from research, 1 short; ClusterQueue team-b's lendingLimit keeps 6 home"
    )


def test_every_flavor_is_told_and_what_each_has(desk: Desk) -> None:
    told = {each["flavor"]: each for each in desk.explain("first")["flavors"]}
    assert told["a100"] == {
        "podSet": "main",
        "flavor": "a100",
        "resource": GPU,
        "asked": "6",
        "free": "1",
        "borrowable": "2",
        "short": "3",
        "cutByMax": "0",
        "claimed": "0",
        "kept": {"ClusterQueue team-b": "6"},
        "claims": [],
        "possible": True,
        "binding": True,
    }
    assert not told["t4"]["binding"]
    assert (told["t4"]["free"], told["t4"]["borrowable"], told["t4"]["short"]) == ("2", "0", "4")


def test_the_workloads_ahead_and_the_blocking_workloads(desk: Desk) -> None:
    answer = desk.explain("train")
    assert [(other["namespace"], other["name"]) for other in answer["ahead"]] == [("a", "first")]
    (ender,) = answer["wouldLetIn"]
    assert (ender["name"], ender["priority"]) == ("runs-2", 5)
    assert ender["notEvicted"] == "its priority 5 is not lower than 0"


def test_what_can_never_run_is_called_that(desk: Desk) -> None:
    answer = desk.explain("huge")
    assert answer["never"]
    assert answer["message"].startswith("can never run here: asks for 100 nvidia.com/gpu")
    assert answer["wouldLetIn"] == []
    assert "Nothing that ends would let it in" in "\n".join(desk.tell("huge"))


NOTHING_ENDS = "Nothing that ends would let it in: what it asks, the quota or the flavors must change."


def test_a_pod_that_is_larger_than_each_node_is_told_with_the_numbers_of_both(tmp_path: Path) -> None:
    """All pods together have quota enough."""
    state = State()
    state.queue("big", {"cpu": {"default": {"min": "100"}}})
    state.namespace("a", "big")
    node(state, "small", "default", {"cpu": "2", "memory": "64Gi"})
    node(state, "large", "default", {"cpu": "4", "memory": "8Gi"})
    node(state, "of-another", "other", {"cpu": "64"})
    state.waits("a", "huge", {"cpu": "5"}, pods=2)
    state.waits("a", "fits", {"cpu": "4"}, pods=2)
    desk = Desk(state, tmp_path)
    reason = "the largest node of default has 4 cpu, and a pod needs 5 cpu"
    assert desk.tell("huge") == [
        "a/huge: Pending in ClusterQueue big",
        f"  can never run here: asks for 10 cpu, which ClusterQueue big can never give: {reason}",
        "",
        "Flavors:",
        f"  default: {reason}",
        NOTHING_ENDS,
    ]
    assert NOTHING_ENDS not in desk.tell("fits")


def test_flavors_of_two_groups_that_no_node_has_together_are_told(tmp_path: Path) -> None:
    """Each has nodes with all that a pod requests."""
    state = State("zone-a", "zone-b")
    state.put("resourceflavors", "a100", spec={"nodeLabels": {"gpu": "a100"}})
    quota = {"cpu": {"zone-a": {"min": "9"}}, GPU: {"a100": {"min": "8"}}}
    state.queue("apart", quota)
    state.namespace("a", "apart")
    node(state, "near", "zone-a", {"cpu": "4", GPU: "8"})
    far = node(state, "far", "zone-b", {"cpu": "4", GPU: "8"})
    far["metadata"]["labels"]["gpu"] = "a100"
    state.waits("a", "train", {"cpu": "3", GPU: "2"})
    reason = "no node of a100 is of zone-a too"
    desk = Desk(state, tmp_path)
    assert desk.tell("train")[:2] == [
        "a/train: Pending in ClusterQueue apart",
        f"  can never run here: asks for 2 {GPU}, which ClusterQueue apart can never give: {reason}",
    ]
    assert desk.tell("train")[-1] == NOTHING_ENDS
    far["metadata"]["labels"]["kind"] = "zone-a"
    assert reason not in "\n".join(Desk(state, tmp_path).tell("train")), "one has both"


def test_what_can_never_run_has_no_place_in_line(state: State, tmp_path: Path) -> None:
    """By its status, or where only the answer finds it out; in a strict queue it stops the others."""
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {GPU: "100"}}]}
    old = {"creationTimestamp": moment(-500)}
    state.put("workloads", "never", "a", metadata=old, spec=spec, status={"reason": "NeverFits"})
    state.waits("a", "huge", {GPU: "100"}, created=-400)
    state.waits("a", "train", {GPU: "4"}, created=-10)
    desk = Desk(state, tmp_path)
    assert desk.tell("never")[0] == "a/never: Pending in ClusterQueue team-a"
    assert desk.explain("huge")["position"] is None
    assert desk.explain("huge")["ahead"] == []
    assert desk.explain("train")["position"] == 2, "no controller has looked at huge yet"
    rows = {
        row["name"]: row["position"] for row in json.loads(desk.run("get", "workloads", "-A", "-o", "json"))
    }
    assert (rows["never"], rows["train"]) == (None, 2)
    state.objects["clusterqueues"][0]["spec"]["queueingStrategy"] = "StrictFIFO"
    assert Desk(state, tmp_path).explain("never")["position"] == 1


def test_the_headline_is_of_the_flavor_that_lacks_least_of_those_that_could_do(
    state: State, tmp_path: Path
) -> None:
    """The t4 lack less now, and could never do: there are only two."""
    state.waits("a", "train", {GPU: "5"})
    desk = Desk(state, tmp_path)
    told = {each["flavor"]: each["short"] for each in desk.explain("train")["flavors"]}
    assert told == {"a100": "2", "t4": "3"}
    state.objects["clusterqueues"][0]["spec"]["resources"][0]["flavors"][1]["quota"]["min"] = "4"
    desk = Desk(state, tmp_path)
    told = {each["flavor"]: each["short"] for each in desk.explain("train")["flavors"]}
    assert told == {"a100": "2", "t4": "1"}
    assert desk.tell("train")[1].startswith("  waits for 5 × nvidia.com/gpu in flavor a100: 1 free")


def test_what_runs_and_what_has_finished_is_told_too(state: State, tmp_path: Path) -> None:
    state.holds("a", "done", {GPU: ("1", "a100")}, cluster_queue="team-a", since=-900, finished=-800)
    desk = Desk(state, tmp_path)
    assert desk.tell("runs-1") == [
        "a/runs-1: Admitted in ClusterQueue team-a",
        "  holds 2 nvidia.com/gpu of a100 for 1 pod, since 10 min",
    ]
    assert desk.tell("done") == ["a/done: Finished in ClusterQueue team-a", "  the Job has succeeded"]


def test_when_what_runs_ends_at_the_latest_and_why(state: State, tmp_path: Path) -> None:
    limit = "maxRuntime 2h of ClusterQueue team-a"
    run_time = {"usedSeconds": 6360, "deadline": moment(240), "onMaxRuntime": "Requeue", "limit": limit}
    state.holds(
        "a", "limited", {GPU: ("1", "a100")}, cluster_queue="team-a", since=-600, status={"runTime": run_time}
    )
    assert Desk(state, tmp_path).tell("limited")[-2:] == [
        "  expected to end in 4 min",
        f"  ends at the latest in 4 min: {limit}; then it is requeued",
    ]


@pytest.mark.parametrize(
    ("admitted", "held", "expected"),
    [
        pytest.param(4, None, "holds 4 nvidia.com/gpu of a100 for 4 pods", id="all"),
        pytest.param(3, None, "holds 3 nvidia.com/gpu of a100 for 3 of 4 pods", id="started with fewer"),
        pytest.param(4, 1, "holds 1 nvidia.com/gpu of a100 for 1 of 4 pods", id="some have ended"),
    ],
)
def test_of_how_many_pods_it_holds_quota_is_told(
    admitted: int, held: int | None, expected: str, state: State, tmp_path: Path
) -> None:
    made = state.holds("a", "wide", {GPU: (str(admitted), "a100")}, cluster_queue="team-a")
    made["spec"]["podSets"][0] |= {"count": 4, "requests": {GPU: "1"}}
    made["status"]["admission"]["podSets"][0]["count"] = admitted
    made["status"] |= {} if held is None else {"held": [{"name": "main", "count": held}]}
    told = Desk(state, tmp_path).tell("wide")
    assert told[1] == f"  {expected}, since 1 min"


def test_one_that_fits_is_about_to_be_admitted(state: State, tmp_path: Path) -> None:
    state.waits("a", "small", {GPU: "1"})
    assert Desk(state, tmp_path).explain("small")["message"] == (
        "nothing stands in its way: it is admitted at once"
    )


def test_a_queue_that_is_not_there_is_told_with_the_nearest_name(state: State, tmp_path: Path) -> None:
    state.waits("a", "lost", {GPU: "1"}, queue="mian")
    answer = Desk(state, tmp_path).explain("lost")
    assert answer["reason"] == "QueueNotFound"
    assert answer["message"] == "there is no LocalQueue mian in namespace a"
    assert answer["hints"] == ["namespace a has LocalQueue main", "did you mean main?"]


def test_a_cluster_queue_that_is_not_there_is_told_with_the_nearest_name(
    state: State, tmp_path: Path
) -> None:
    state.put("localqueues", "other", "a", spec={"clusterQueue": "taem-a"})
    state.waits("a", "lost", {GPU: "1"}, queue="other")
    answer = Desk(state, tmp_path).explain("lost")
    assert answer["reason"] == "ClusterQueueNotFound"
    assert answer["hints"] == ["did you mean team-a?"]


def test_a_namespace_that_is_not_selected(state: State, tmp_path: Path) -> None:
    state.queue("closed", {GPU: {"a100": {"min": "1"}}}, namespaceSelector={"matchLabels": {"team": "x"}})
    state.put("localqueues", "closed", "a", spec={"clusterQueue": "closed"})
    state.waits("a", "shut-out", {GPU: "1"}, queue="closed")
    assert Desk(state, tmp_path).explain("shut-out")["reason"] == "NamespaceNotSelected"


def test_a_taint_that_is_not_tolerated_is_told_beside_the_flavors_that_suit(tmp_path: Path) -> None:
    state = State("plain")
    taint = {"key": "spot", "value": "true", "effect": "NoSchedule"}
    state.put("resourceflavors", "spot", spec={"nodeLabels": {"kind": "spot"}, "nodeTaints": [taint]})
    state.queue("team-a", {"cpu": {"plain": {"min": "2"}, "spot": {"min": "8"}}})
    state.namespace("a", "team-a")
    state.holds("a", "runs", {"cpu": ("2", "plain")}, cluster_queue="team-a")
    state.waits("a", "train", {"cpu": "2"})
    told = Desk(state, tmp_path).explain("train")["flavors"]
    assert told[-1]["flavor"] == "spot"
    assert told[-1]["mismatch"] == "the taint spot=true:NoSchedule of spot is not tolerated"


def test_a_resource_that_no_queue_covers(state: State, tmp_path: Path) -> None:
    state.waits("a", "odd", {"example.com/fpga": "1"})
    answer = Desk(state, tmp_path).explain("odd")
    assert (answer["reason"], answer["never"]) == ("ResourceNotCovered", True)


def test_a_job_that_is_none_of_ours(state: State, tmp_path: Path) -> None:
    job = state.waits("a", "alone", {GPU: "1"})
    job["metadata"]["labels"] = {}
    assert Desk(state, tmp_path).explain("alone")["hints"] == [
        "Admitter has nothing to do with it: it has no label admitter.dev/queue-name"
    ]


def test_a_name_that_is_not_there_is_told_with_the_nearest(desk: Desk, state: State) -> None:
    explainer = Explainer(Snapshot(facts(state.snapshot())))
    with pytest.raises(UnknownError, match=r"no Workload trian in namespace a; did you mean train\?"):
        explainer.explain("a", "trian")
    with pytest.raises(UnknownError, match=r"no Workload train in namespace b; there is one in a"):
        explainer.explain("b", "train")
    assert desk.run("explain", "trian", "-n", "a", exit_code=1) == ""


def test_a_preemptor_that_waits_for_its_victims_names_them(state: State, tmp_path: Path) -> None:
    pod_set = {"name": "main", "count": 1, "flavors": {GPU: "a100"}, "usage": {GPU: "2"}}
    place = {"clusterQueue": "team-a", "podSets": [pod_set]}
    state.put("priorityclasses", "high", value=100)
    job = state.waits("a", "urgent", {GPU: "2"}, priority="high")
    key = {"namespace": "a", "name": "job-urgent", "uid": job["metadata"]["uid"]}
    evicted = {"type": "Evicted", "status": "True", "lastTransitionTime": moment(-5), "reason": "Preempted"}
    picture = Snapshot(facts(state.snapshot()))
    workload = picture.find("a", "urgent")
    assert workload is not None
    key["name"] = workload.name
    state.holds("a", "stays", {GPU: ("1", "a100")}, cluster_queue="team-a", priority=100)
    state.holds(
        *("a", "leaves", {GPU: ("2", "a100")}),
        cluster_queue="team-a",
        conditions=[evicted],
        status={"preemption": {**key, "admission": place, "generation": 1}},
    )
    answer = Desk(state, tmp_path).explain("urgent")
    assert answer["reason"] == "Preempting"
    assert [other["name"] for other in answer["wouldLetIn"]] == ["leaves"]


def test_a_job_that_runs_counts_though_its_workload_is_gone(state: State, tmp_path: Path) -> None:
    job = state.waits("a", "loose", {GPU: "3"})
    workload = Snapshot(facts(state.snapshot())).find("a", "loose")
    assert workload is not None
    job["spec"]["suspend"] = False
    job["spec"]["template"]["metadata"] = {
        "labels": {"admitter.dev/workload": workload.name, "admitter.dev/cluster-queue": "team-a"},
        "annotations": {"admitter.dev/flavors": f'{{"{GPU}": "a100"}}'},
    }
    state.waits("a", "train", {GPU: "4"})
    told = {each["flavor"]: each for each in Desk(state, tmp_path).explain("train")["flavors"]}
    assert (told["a100"]["free"], told["a100"]["borrowable"]) == ("0", "0")

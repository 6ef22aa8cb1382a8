"""What has happened to a Workload, in order; its pods in words; and what its user can do."""

import pytest

from admitter.api.conditions import WaitingReason
from admitter.engine.refusal import Reason
from admitter.insight.explain import advice as advising
from admitter.insight.explain.account import Fit, fewer_that_fit, holdings, last_holdings
from admitter.insight.explain.advice import advice
from admitter.insight.explain.explainer import Explainer
from admitter.insight.explain.life import life, preemptor_of
from admitter.insight.explain.pods import PodState, pods_of
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.states import NOW, Json, State, moment

PLACE = {"clusterQueue": "team-a", "podSets": [{"name": "main", "count": 1, "flavors": {}, "usage": {}}]}


@pytest.fixture
def state() -> State:
    state = State()
    state.queue("team-a", {"cpu": {"default": {"min": "6"}}})
    state.namespace("a", "team-a")
    return state


def condition(kind: str, second: float, reason: str, message: str = "", *, holds: bool = True) -> Json:
    time, status = moment(second), "True" if holds else "False"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def told(state: State, name: str) -> list[tuple[float, str, str]]:
    """What is told of a Workload: seconds from now, what, and the reason."""
    snapshot = Snapshot(facts(state.snapshot()))
    view = snapshot.find("a", name)
    assert view is not None
    return [(each.at - NOW, str(each.what), each.reason) for each in life(snapshot.world, view, NOW)]


def test_one_that_waits_was_made_and_queued(state: State) -> None:
    state.waits("a", "train", {"cpu": "7"}, created=-90)
    assert told(state, "train") == [(-90, "Created", "")]


def test_a_job_is_older_than_its_workload(state: State) -> None:
    job = state.waits("a", "train", {"cpu": "1"}, created=-90)
    waiting = Snapshot(facts(state.snapshot())).find("a", "train")
    assert waiting is not None
    state.holds("a", waiting.name, {"cpu": ("1", "default")}, cluster_queue="team-a", created=-80, since=-70)
    job["spec"]["suspend"] = False
    assert told(state, waiting.name) == [
        (-90, "Created", ""),
        (-80, "Queued", ""),
        (-70, "Admitted", "Admitted"),
    ]


def test_one_that_was_preempted_and_waits_again(state: State) -> None:
    by = {"namespace": "b", "name": "job-urgent", "uid": "u", "admission": PLACE, "message": "the rule"}
    made = state.holds(
        "a",
        "train",
        {"cpu": ("2", "default")},
        cluster_queue="team-a",
        status={
            "preemption": by,
            "evictedAt": [moment(-700), moment(-199)],
            "backOff": {"count": 1, "until": moment(30)},
        },
    )
    made["metadata"]["creationTimestamp"] = moment(-900)
    made["status"]["conditions"] = [
        condition("QuotaReserved", -180, "Preempted", holds=False),
        condition("Admitted", -200, "Preempted", holds=False),
        condition("Evicted", -200, "Preempted", "preempted for a Workload of another namespace"),
    ]
    del made["status"]["admission"]
    assert told(state, "train") == [
        (-900, "Created", ""),
        (-700, "Evicted", "Preempted"),
        (-200, "Evicted", "Preempted"),
        (-180, "Requeued", "Preempted"),
        (30, "MayEvict", ""),
    ]
    snapshot = Snapshot(facts(state.snapshot()))
    view = snapshot.find("a", "train")
    assert view is not None
    found = preemptor_of(snapshot.world, view)
    assert found is not None
    assert (found.key, found.queue, found.rule) == (("b", "job-urgent"), "ClusterQueue team-a", "the rule")


def test_one_that_runs_with_all_its_limits(state: State) -> None:
    state.holds(
        *("a", "train", {"cpu": ("2", "default")}),
        cluster_queue="team-a",
        since=-600,
        conditions=[condition("EvictionPending", -20, "Preempted", "will be evicted")],
        status={
            "preemption": {"namespace": "a", "name": "x", "uid": "u", "admission": PLACE}
            | {"evictAt": moment(40)},
            "readiness": {"deadline": moment(-10), "readyAt": moment(-10), "recoverBy": moment(90)},
            "runTime": {"usedSeconds": 60, "deadline": moment(3600), "limit": "maxRuntime 1h of its queue"},
            "resize": {"granted": 3, "wanted": 5, "changedAt": moment(-100)},
        },
    )
    assert told(state, "train") == [
        (-610, "Created", ""),
        (-600, "Admitted", "Admitted"),
        (-100, "Resized", ""),
        (-20, "EvictionPending", "Preempted"),
        (-10, "Ready", ""),
        (40, "ToBeEvicted", ""),
        (90, "ToBeReady", ""),
        (3600, "Ends", ""),
    ]


def test_a_cancelled_eviction_is_told_and_an_old_one_is_not(state: State) -> None:
    over = condition("EvictionPending", -20, "Over", "no preemptor waits for its quota any more", holds=False)
    state.holds("a", "stays", {"cpu": ("1", "default")}, cluster_queue="team-a", conditions=[over])
    old = condition("EvictionPending", -500, "Over", "evicted", holds=False)
    state.holds("a", "again", {"cpu": ("1", "default")}, cluster_queue="team-a", conditions=[old])
    assert told(state, "stays")[-1] == (-20, "EvictionCancelled", "Over")
    assert [what for _, what, _ in told(state, "again")] == ["Created", "Admitted"]


def test_one_that_was_not_ready_waits_for_its_next_try(state: State) -> None:
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]}
    conditions = [
        condition("QuotaReserved", -50, "PodsNotReady", holds=False),
        condition("Evicted", -60, "PodsNotReady", "1 of 1 pods crashes"),
    ]
    status = {"conditions": conditions, "readiness": {"attempts": 2, "nextTry": moment(120)}}
    state.put("workloads", "broken", "a", spec=spec, status={"state": "Pending", **status})
    assert told(state, "broken")[-3:] == [
        (-60, "Evicted", "PodsNotReady"),
        (-50, "Requeued", "PodsNotReady"),
        (120, "NextTry", ""),
    ]


def test_one_that_has_finished_says_what_it_held(state: State) -> None:
    state.holds("a", "done", {"cpu": ("2", "default")}, cluster_queue="team-a", since=-900, finished=-500)
    assert told(state, "done")[-2:] == [(-900, "Admitted", "Admitted"), (-500, "Finished", "JobSucceeded")]
    snapshot = Snapshot(facts(state.snapshot()))
    view = snapshot.find("a", "done")
    assert view is not None
    assert list(holdings(view)) == []
    (held,) = last_holdings(view)
    assert held.usage == (("cpu", "default", 2000),)
    view.status["admission"]["podSets"] = "nonsense"
    assert list(last_holdings(view)) == []


def a_pod(state: State, workload: Json, name: str, spec: Json, status: Json) -> None:
    metadata = {
        "labels": {
            "admitter.dev/workload": workload["metadata"]["name"],
            "admitter.dev/cluster-queue": "team-a",
        },
        "annotations": {"admitter.dev/workload-uid": workload["metadata"]["uid"]},
    }
    state.put("pods", name, workload["metadata"]["namespace"], metadata=metadata, spec=spec, status=status)


def test_its_pods_are_counted_by_state_and_their_trouble_is_told(state: State) -> None:
    job = state.waits("a", "train", {"cpu": "1"}, pods=4)
    waiting = Snapshot(facts(state.snapshot())).find("a", "train")
    assert waiting is not None
    usage = {"cpu": ("4", "default")}
    made = state.holds("a", waiting.name, usage, cluster_queue="team-a")
    made["spec"]["podSets"][0]["count"] = made["status"]["admission"]["podSets"][0]["count"] = 4
    made["metadata"]["labels"] = {"admitter.dev/job-uid": job["metadata"]["uid"]}
    job["spec"]["suspend"], job["status"] = False, {"active": 3, "ready": 1}
    ready = {"type": "Ready", "status": "True"}
    refused = {"type": "PodScheduled", "status": "False", "message": "0/6 nodes are available: 6 cpu. more"}
    a_pod(state, made, "p-0", {"nodeName": "node-7"}, {"phase": "Running", "conditions": [ready]})
    for number in (1, 2):
        a_pod(state, made, f"p-{number}", {}, {"phase": "Pending", "conditions": [refused]})
    snapshot = Snapshot(facts(state.snapshot()))
    view = snapshot.find("a", "train")
    assert view is not None
    found = pods_of(snapshot.world, view)
    assert (found.wanted, found.ready) == (4, 1)
    assert found.counts == (("Unschedulable", 2), ("Ready", 1))
    assert found.words == (
        "2 of 4 pods unschedulable: 0/6 nodes are available: 6 cpu; 1 of 4 pods has not been made"
    )
    assert found.pods[-1] == PodState("p-0", "Ready", "", "node-7", found.pods[-1].created)
    assert [each.name for each in found.pods] == ["p-1", "p-2", "p-0"]


def test_each_reason_to_wait_has_its_advice() -> None:
    assert set(advising._ADVICE) == set(WaitingReason)
    assert {str(reason) for reason in Reason} <= {str(reason) for reason in WaitingReason}


@pytest.mark.parametrize(
    ("cpu", "pods", "fit", "words"),
    [
        pytest.param(
            "2", 4, Fit("default", 2, 4), "2 of its 4 pods would fit now in flavor default", id="some"
        ),
        pytest.param("5", 1, None, "Wait, or ask for less.", id="none"),
        pytest.param("2", 5, None, "to wait does not help", id="never"),
    ],
)
def test_with_how_many_pods_it_would_fit(
    cpu: str, pods: int, fit: Fit | None, words: str, state: State
) -> None:
    state.objects["clusterqueues"][0]["spec"]["resources"][0]["flavors"][0]["quota"]["min"] = "8"
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="team-a")
    state.waits("a", "train", {"cpu": cpu}, pods=pods)
    answer = Explainer(Snapshot(facts(state.snapshot()))).explain("a", "train")
    assert fewer_that_fit(answer) == fit
    assert words in advice(answer)


def test_nothing_is_advised_to_one_that_runs(state: State) -> None:
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="team-a")
    assert advice(Explainer(Snapshot(facts(state.snapshot()))).explain("a", "runs")) == ""

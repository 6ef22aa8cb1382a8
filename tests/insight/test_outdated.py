"""Workloads that ask for something else than their Jobs: in a snapshot no controller writes them anew."""

import pytest

from admitter.cache.views import workload_name
from admitter.insight.forecast.playout import Effect
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator
from tests.cluster.objects import job
from tests.insight.states import NOW, Json, State, moment
from tests.insight.test_tenant import GPU, namespace, told, tried

PREEMPTION = {"withinClusterQueue": "LowerPriority"}


def _of(state: State, job: Json, pods: int, reason: str = "") -> Json:
    """The Workload of a Job, which asks for so many pods of 1 CPU."""
    name = workload_name(job["metadata"]["name"], job["metadata"]["uid"])
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    owner |= {each: job["metadata"][each] for each in ("name", "uid")}
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": pods, "requests": {"cpu": "1"}}]}
    status = {"state": "Pending", "reason": reason} if reason else {}
    metadata = {"ownerReferences": [owner]}
    return state.put("workloads", name, "a", metadata=metadata, spec=spec, status=status)


def _running(*, parallelism: int, succeeded: int) -> State:
    """A Job of 3 pods was admitted to a queue of 4 CPUs; now it needs fewer."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}}, preemption=PREEMPTION)
    state.namespace("a", "total")
    state.put("priorityclasses", "high", value=10)
    runs = state.waits("a", "runs", {"cpu": "1"}, pods=parallelism, created=-100, spec={"completions": 4})
    runs["spec"]["suspend"] = False
    runs["status"] = {"succeeded": succeeded, "active": 1, "startTime": moment(-60)}
    assigned = {"name": "main", "count": 3, "flavors": {"cpu": "default"}, "usage": {"cpu": "3"}}
    admitted = {"type": "Admitted", "status": "True", "reason": "Admitted", "lastTransitionTime": moment(-60)}
    _of(state, runs, 3)["status"] = {
        "state": "Admitted",
        "admission": {"clusterQueue": "total", "podSets": [assigned]},
        "conditions": [admitted | {"type": kind} for kind in ("QuotaReserved", "Admitted")],
    }
    return state


@pytest.mark.parametrize(
    ("parallelism", "succeeded"),
    [(3, 0), (2, 0), (3, 3)],
    ids=["as it was admitted", "its user has lowered it", "most of it has succeeded"],
)
def test_a_job_that_is_preempted_in_a_forecast_is_admitted_again(parallelism: int, succeeded: int) -> None:
    known = Snapshot(facts(_running(parallelism=parallelism, succeeded=succeeded).snapshot()))
    urgent = job("a", "urgent", requests={"cpu": "4"}, seconds=100, pod={"priorityClassName": "high"})
    simulator = Simulator(Timeline(NOW, [Change(NOW, 0, urgent)], []), known, lambda _view, _run: None)
    events = [(event.time - NOW, event.kind) for event in simulator.run(until=NOW + 1000)]
    assert events == [(0, "Preempted"), (0, "Admitted"), (100, "Finished"), (100, "Admitted")]


@pytest.mark.parametrize(("reason", "waits"), [("InsufficientQuota", False), ("Outdated", True)])
def test_a_job_that_has_changed_waits_if_the_controller_says_so(reason: str, *, waits: bool) -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    _of(state, state.waits("a", "changed", {"cpu": "1"}, pods=2), 1, reason)
    known = Snapshot(facts(state.snapshot()))
    assert [waiting.reason for waiting in known.waiting.values()] == [reason] * waits


def test_a_job_that_can_not_be_counted_waits() -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    wrong = {"admitter.dev/min-parallelism": "two"}
    _of(state, state.waits("a", "wrong", {"cpu": "1"}, annotations=wrong), 1)
    (waiting,) = Snapshot(facts(state.snapshot())).waiting.values()
    assert waiting.reason == "InvalidRequests"
    assert "'two', which is no number of pods" in waiting.message


def test_a_tenant_that_may_not_read_runtime_classes_goes_by_what_workloads_ask_for() -> None:
    """Their overhead is in the Workload of a Job that waits, and in nothing else that the tenant reads."""
    state = namespace(told())
    state.objects["workloads"].clear()
    status = state.objects["localqueues"][0]["status"]
    cpu = {"name": "cpu", "quota": "8", "max": "8", "used": "0", "borrowed": "0", "free": "8"}
    status["clusterQueue"]["flavors"][0]["resources"].append(cpu)
    waits = state.waits("blue", "sandboxed", {GPU: "2"}, created=-10.0)
    waits["spec"]["template"]["spec"]["runtimeClassName"] = "kata"
    workload = _of(state, waits, 1, "InsufficientQuota")
    workload["metadata"]["namespace"] = "blue"
    workload["spec"]["podSets"][0]["requests"] = {GPU: "2", "cpu": "250m"}
    assert tried(state, "1") is Effect.WAITS

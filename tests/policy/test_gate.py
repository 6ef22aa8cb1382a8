"""What the engine is told of a Workload that may compete, and what its user is told of one that waits."""

import pytest

from admitter.api.conditions import WaitingReason
from admitter.cache.views import JobView, WorkloadView, parse_job, parse_workload
from admitter.cache.world import World
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.convert.workloads import RequeueBy
from admitter.engine.cycle import Engine
from admitter.engine.refusal import Reason, Refusal
from admitter.policy.catalog import Catalog
from admitter.policy.derive import covers, workload_spec
from admitter.policy.gate import Gate, Waiting

CREATED, PREEMPTED = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


def view(preempted: str | None) -> WorkloadView:
    conditions = [{"type": "Preempted", "status": preempted, "lastTransitionTime": PREEMPTED}]
    metadata = {
        "name": "w",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "3",
        "creationTimestamp": CREATED,
    }
    spec = {
        "queueName": "q",
        "priority": 7,
        "podSets": [{"name": "main", "count": 2, "requests": {"cpu": "1"}}],
    }
    status = {"conditions": conditions if preempted else []}
    return parse_workload({"metadata": metadata, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("requeue_by", "preempted", "hours"),
    [
        pytest.param(RequeueBy.CREATION, "True", 0, id="in-its-old-place"),
        pytest.param(RequeueBy.EVICTION, "True", 1, id="behind-those-who-came-before"),
        pytest.param(RequeueBy.EVICTION, "False", 0, id="admitted-again-since"),
        pytest.param(RequeueBy.EVICTION, None, 0, id="never-preempted"),
    ],
)
def test_where_a_workload_waits(requeue_by: RequeueBy, preempted: str | None, hours: int) -> None:
    world = World()
    gate = Gate(world, Catalog(world, Engine(), DEFAULT_GPUS), requeue_by)
    first = gate.competitor(view(None), None, "total").created
    competitor = gate.competitor(view(preempted), None, "total")
    assert competitor.created - first == hours * 3600
    assert (competitor.uid, competitor.queue, competitor.priority) == ("u", "total", 7)


def test_what_many_wait_for_is_spelled_once() -> None:
    world = World()
    gate = Gate(world, Catalog(world, Engine(), DEFAULT_GPUS))
    busy = Refusal(Reason.RESOURCE_NOT_COVERED, "total", ("cpu",))
    refusals = {"a": busy, "b": busy, "c": Refusal(Reason.BEHIND_HEAD, "total")}
    waiting = dict(gate.all_wait(refusals))
    assert waiting == {uid: gate.waits(refusal) for uid, refusal in refusals.items()}
    assert waiting["a"] is waiting["b"]


def job(*, suspended: bool = True, **spec: object) -> JobView:
    metadata = {
        "name": "j",
        "namespace": "team",
        "uid": "v",
        "resourceVersion": "4",
        "creationTimestamp": CREATED,
        "labels": {"admitter.dev/queue-name": "q"},
    }
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    return parse_job({"metadata": metadata, "spec": {"suspend": suspended, "template": template, **spec}})


def test_a_job_with_a_pod_selector_of_its_own_does_not_compete() -> None:
    world = World()
    gate = Gate(world, Catalog(world, Engine(), DEFAULT_GPUS))
    waiting = gate.check(view(None), job(manualSelector=True))
    assert isinstance(waiting, Waiting)
    assert waiting.reason is WaitingReason.MANUAL_SELECTOR
    plain = gate.check(view(None), job(manualSelector=False))
    assert isinstance(plain, Waiting)
    assert plain.reason is WaitingReason.QUEUE_NOT_FOUND


def test_an_admission_covers_no_start_of_a_job_with_a_selector_of_its_own() -> None:
    """Where the API server lacks the policy, it may come between the admission and the start."""
    world = World()
    catalog = Catalog(world, Engine(), DEFAULT_GPUS)
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": "gone"}, "usage": {"cpu": "1"}}
    metadata = {
        "name": "w",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "5",
        "creationTimestamp": CREATED,
    }
    status = {"admission": {"clusterQueue": "total", "podSets": [assigned]}}
    spec = workload_spec(job(), world)
    admitted = parse_workload({"metadata": metadata, "spec": spec, "status": status})
    assert covers(admitted, job(), world, catalog)
    assert not covers(admitted, job(manualSelector=True), world, catalog)
    assert covers(admitted, job(suspended=False, manualSelector=True), world, catalog), "it is counted"

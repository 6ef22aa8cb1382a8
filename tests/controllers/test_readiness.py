"""Which Workloads are late, what is written of those that run, and that a new process finds the same."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import pytest

from admitter.api.conditions import WaitingReason
from admitter.cache.readiness_status import ReadinessStatus, written
from admitter.cache.views import at, parse_job, parse_object, parse_workload, timestamp
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.controllers.workload.alarms import SLACK, Alarms
from admitter.controllers.workload.readiness import LOOK_SECONDS, ReadyTimeouts
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.cycle import Engine
from admitter.names import READY_TIMEOUT_ANNOTATION
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Gate, Waiting
from admitter.policy.gate_readiness import at_admission, backing_off
from admitter.policy.readiness import LOSS_SECONDS
from tests.patience import PATIENCE_SECONDS

Json = dict[str, Any]

BEGAN = 1_790_000_000.0
KEY: Key = ("team", "job-a-a0")
QUEUE = "train"


def metadata(name: str, version: int, namespace: str = "team", **more: Any) -> Json:
    made = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), **more}
    return made | {"namespace": namespace, "creationTimestamp": timestamp(at(BEGAN))}


class Cluster:
    """A Job with two pods, admitted at `BEGAN`; the clock is `now`."""

    def __init__(self) -> None:
        self.world = World()
        self.now = BEGAN
        self.version = 1
        self.waits: list[tuple[str, float]] = []
        self.due: list[Key] = []
        self.retried: list[Key] = []
        self.world.shards.epochs[0] = 1
        self.catalog = Catalog(self.world, Engine(), DEFAULT_GPUS)
        self.job()
        self.name = next(iter(self.world.jobs)).workload
        self.ready = self.process()

    @property
    def key(self) -> Key:
        return ("team", self.name)

    def clock(self) -> datetime:
        return at(self.now)

    def process(self) -> ReadyTimeouts:
        """What a controller knows that starts now."""
        made = ReadyTimeouts(
            self.world,
            self.catalog,
            self.clock,
            cast("Any", None),
            lambda queue, waited: self.waits.append((queue, waited)),
        )
        made.due.listen(self.due.append)
        made.again.listen(self.retried.append)
        return made

    def job(self, *, ready: int = 0, succeeded: int = 0, annotations: Json | None = None) -> None:
        self.version += 1
        container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        marks: Json = {"annotations": annotations or {}, "labels": {"admitter.dev/queue-name": "main"}}
        spec = {"parallelism": 2, "completions": 9, "template": {"spec": {"containers": [container]}}}
        status = {"active": 2, "ready": ready, "succeeded": succeeded}
        raw = {"metadata": metadata("a", self.version, **marks), "spec": spec, "status": status}
        self.world.jobs.apply(parse_job(raw))

    def says(self, *, ready: int = 0, succeeded: int = 0) -> None:
        self.job(ready=ready, succeeded=succeeded)
        self.ready.job_changed(self.world.job_of(self.key))

    def workload(self, known: ReadinessStatus | None, *, admitted: bool = True) -> None:
        self.version += 1
        usage = {"flavors": {"cpu": "x"}, "usage": {"cpu": "2"}}
        admission = {"clusterQueue": QUEUE, "podSets": [{"name": "main", "count": 2, **usage}]}
        reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": timestamp(at(BEGAN))}
        status: Json = {"admission": admission, "conditions": [reserved]} if admitted else {}
        if known is not None:
            status["readiness"] = written(known)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "uid-a", "controller": True}
        marks: Json = {"labels": {"admitter.dev/job-uid": "uid-a"}, "ownerReferences": [owner]}
        raw = {"metadata": metadata(self.name, self.version, **marks), "status": status}
        before = self.world.workloads.get(self.key)
        view = parse_workload(raw | {"spec": {"queueName": "main", "podSets": []}})
        self.world.workloads.apply(view)
        self.ready.workload_changed(before, view)

    def late(self) -> str:
        view = self.world.workloads.get(self.key)
        assert view is not None
        return self.ready.late(view)

    def noted(self) -> ReadinessStatus | None:
        view = self.world.workloads.get(self.key)
        assert view is not None
        return self.ready._noted(view)

    def queue(self, lifecycle: Json | None, cohort: str = "") -> None:
        spec: Json = {"lifecycle": lifecycle} if lifecycle is not None else {}
        self.version += 1
        raw = {
            "metadata": metadata(QUEUE, self.version, ""),
            "spec": spec | ({"cohort": cohort} if cohort else {}),
        }
        self.world.cluster_queues.apply(parse_object(raw))
        self.catalog.queue_changed(QUEUE)
        self.catalog.refresh()

    def cohort(self, name: str, spec: Json) -> None:
        self.version += 1
        self.world.cohorts.apply(parse_object({"metadata": metadata(name, self.version, ""), "spec": spec}))
        self.catalog.cohort_changed(name)
        self.catalog.refresh()


@pytest.fixture
async def cluster() -> Cluster:
    made = Cluster()
    made.queue({"readyTimeout": "100s", "recoveryTimeout": "400s"})
    return made


async def test_a_job_that_gets_ready_in_time_costs_no_write_before_its_deadline(cluster: Cluster) -> None:
    cluster.workload(ReadinessStatus(BEGAN + 100))
    cluster.now = BEGAN + 30
    cluster.says(ready=1)
    assert cluster.waits == []
    cluster.says(ready=2)
    assert cluster.waits == [(QUEUE, 30.0)], "the wait is counted once"
    cluster.says(ready=2, succeeded=1)
    assert (len(cluster.waits), cluster.due, cluster.noted()) == (1, [], None)
    cluster.now = BEGAN + 100
    cluster.says(ready=1, succeeded=1)
    assert cluster.late() == "", "it was ready before"
    assert cluster.noted() == ReadinessStatus(BEGAN + 100, BEGAN + 100)


async def test_a_new_process_finds_the_same_to_the_second(cluster: Cluster) -> None:
    cluster.workload(ReadinessStatus(BEGAN + 100))
    cluster.says(ready=1)
    for moment, late in ((99.9, False), (100.0, True)):
        cluster.now = BEGAN + moment
        words = cluster.late()
        cluster.ready = cluster.process()
        assert cluster.late() == words
        assert bool(words) is late


async def test_a_limit_that_is_lifted_evicts_no_workload_that_was_admitted_with_it(cluster: Cluster) -> None:
    cluster.workload(ReadinessStatus(BEGAN + 100))
    cluster.now = BEGAN + 200
    assert "2 of 2 pods have not been made" in cluster.late()
    cluster.queue({"readyTimeout": "1h"})
    assert cluster.late(), "another limit is for later admissions"
    cluster.queue({"readyTimeout": "0s"})
    assert cluster.late() == ""
    cluster.job(annotations={READY_TIMEOUT_ANNOTATION: "50s"})
    assert cluster.late(), "it has set one itself"


async def test_what_recovers_within_a_minute_is_never_written(cluster: Cluster) -> None:
    cluster.workload(ReadinessStatus(BEGAN + 100))
    cluster.says(ready=2)
    cluster.now = BEGAN + 10
    cluster.says(ready=1)
    cluster.now = BEGAN + 10 + LOSS_SECONDS - 1
    assert cluster.noted() is None
    cluster.says(ready=1, succeeded=1)
    cluster.now += 2
    assert cluster.noted() is None, "a Job of which pods succeed goes on"
    cluster.now += LOSS_SECONDS
    found = cluster.noted()
    assert found is not None
    assert found.recover_by == BEGAN + 10 + LOSS_SECONDS - 1 + 400
    cluster.workload(found)
    cluster.ready = cluster.process()
    cluster.now = found.recover_by - 1
    assert cluster.late() == ""
    cluster.now += 1
    assert "not all ready again in time" in cluster.late()
    cluster.says(ready=2, succeeded=1)
    assert cluster.late() == ""
    assert cluster.due == [cluster.key], "that it recovered is to be written"
    assert cluster.noted() == ReadinessStatus(BEGAN + 100, found.ready_at)


async def test_the_alarm_of_a_deadline_rings_for_what_is_late_and_for_what_was_ready(
    cluster: Cluster,
) -> None:
    cluster.now = BEGAN + 99.97
    cluster.workload(ReadinessStatus(BEGAN + 100))
    cluster.now = BEGAN + 100
    await asyncio.wait_for(_until(lambda: bool(cluster.due)), PATIENCE_SECONDS)
    assert cluster.due == [cluster.key]
    cluster.ready.close()


async def test_the_alarm_of_the_next_try_lets_a_workload_compete(cluster: Cluster) -> None:
    cluster.now = BEGAN + 59.97
    cluster.workload(ReadinessStatus(BEGAN, attempts=2, next_try=BEGAN + 60), admitted=False)
    view = cluster.world.workloads.get(cluster.key)
    assert view is not None
    assert backing_off(cluster.clock, view) == f"evicted 2 times for readiness; next try at {_text(60)}"
    cluster.now = BEGAN + 60
    assert backing_off(cluster.clock, view) == ""
    await asyncio.wait_for(_until(lambda: bool(cluster.retried)), PATIENCE_SECONDS)
    assert cluster.retried == [cluster.key]
    cluster.ready.close()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # each turn of the loop may ring an alarm
        await asyncio.sleep(0)


def _text(seconds: float) -> str:
    return timestamp(at(BEGAN + seconds))


async def test_the_gate_keeps_back_what_backs_off_and_says_what_was_given_up(cluster: Cluster) -> None:
    catalog = Catalog(cluster.world, Engine(), DEFAULT_GPUS)
    gate = Gate(cluster.world, catalog, backs_off=lambda view: backing_off(cluster.clock, view))
    raw: Json = {"metadata": metadata("w", 9), "spec": {"queueName": "main", "podSets": []}}
    waits = written(ReadinessStatus(BEGAN, attempts=1, next_try=BEGAN + 60))
    view = parse_workload(raw | {"status": {"readiness": waits}})
    found = gate.check(view, None)
    assert isinstance(found, Waiting)
    assert found.reason == WaitingReason.PODS_NOT_READY
    cluster.now = BEGAN + 60
    found = gate.check(view, None)
    assert isinstance(found, Waiting)
    assert found.reason == WaitingReason.QUEUE_NOT_FOUND
    raw["spec"]["active"] = False
    known = written(ReadinessStatus(BEGAN, attempts=3, failures=3, gave_up="often enough"))
    found = gate.check(parse_workload(raw | {"status": {"readiness": known}}), None)
    assert isinstance(found, Waiting)
    assert found.reason == WaitingReason.GAVE_UP
    assert "often enough" in found.message
    found = gate.check(parse_workload(raw), None)
    assert isinstance(found, Waiting)
    assert found.reason == WaitingReason.INACTIVE


async def test_the_nearest_cohort_says_field_by_field_what_a_queue_leaves_out(cluster: Cluster) -> None:
    cluster.queue({"readyTimeout": "1m"}, "near")
    cluster.cohort("near", {"parent": "top", "lifecycle": {"readyTimeout": "2m", "giveUp": {"attempts": 2}}})
    cluster.cohort("top", {"lifecycle": {"recoveryTimeout": "3m", "giveUp": {"attempts": 9}}})
    rules = cluster.catalog.lifecycle(QUEUE).ready
    assert (rules.timeout, rules.recovery, rules.give_up.attempts) == (60.0, 180.0, 2)


async def test_the_cohort_of_elastic_quotas_speaks_for_them(cluster: Cluster) -> None:
    quota = {"metadata": metadata("quota", 1), "spec": {"min": {"cpu": 1}}}
    cluster.world.elastic_quotas.apply(parse_object(quota))
    cluster.catalog.elastic.refresh()
    cluster.cohort("elastic-quota", {"lifecycle": {"readyTimeout": "7m", "maxRuntime": "2h"}})
    assert cluster.catalog.cohort_problem("elastic-quota") is None
    rules = cluster.catalog.lifecycle("eq_team_quota")
    assert (rules.ready.timeout, rules.run_time.cap) == (420.0, 7200)
    assert cluster.catalog.lifecycle("gone").ready.timeout is None


async def test_an_admission_carries_its_deadline_by_queue_and_annotation(cluster: Cluster) -> None:
    cluster.workload(None, admitted=False)
    view = cluster.world.workloads.get(cluster.key)
    assert view is not None

    def deadline(annotation: str | None) -> tuple[Any, str]:
        cluster.job(annotations={READY_TIMEOUT_ANNOTATION: annotation} if annotation else {})
        job = cluster.world.job_of(cluster.key)
        found = at_admission(cluster.world, cluster.catalog, view, job, QUEUE, BEGAN)
        return (found.fields.get("readiness") or {}).get("deadline"), found.words

    assert deadline(None) == (_text(100), "")
    assert deadline("40s") == (_text(40), "")
    assert deadline("2h")[0] == _text(100)
    assert f"2h is longer than ClusterQueue {QUEUE} allows" in deadline("2h")[1]
    assert deadline("soon")[1].startswith("Job team/a: metadata.annotations[admitter.dev/ready-timeout]: ")
    cluster.queue(None)
    assert deadline(None) == (_text(1800), "")
    cluster.queue({"readyTimeout": "0s"})
    assert deadline(None) == (None, "")
    assert at_admission(cluster.world, cluster.catalog, view, None, QUEUE, BEGAN).fields == {}, (
        "it has no Job"
    )


async def test_one_timer_rings_for_many_and_its_heap_stays_small() -> None:
    now, rung = BEGAN, list[Key]()
    alarms = Alarms(lambda: at(now), rung.append)
    for turn in range(20):
        for each in range(500):
            alarms.set(f"uid-{each}", ("team", str(each)), BEGAN + 1000 + turn + each)
    assert len(alarms._heap) <= 2 * 500 + SLACK + 1
    alarms.drop("uid-0")
    now = BEGAN + 1000 + 19 + 3
    alarms.set("uid-soon", ("team", "soon"), BEGAN)
    await asyncio.wait_for(_until(lambda: bool(rung)), PATIENCE_SECONDS)
    assert rung == [("team", "soon"), ("team", "1"), ("team", "2"), ("team", "3")]
    alarms.close()
    assert LOOK_SECONDS < LOSS_SECONDS

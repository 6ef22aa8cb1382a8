"""Elastic quotas: which are told of changes, and what becomes of Workloads at a bad time."""

from datetime import UTC, datetime
from typing import Any, cast

from admitter.api.conditions import WaitingReason
from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import parse_job, parse_object, parse_workload
from admitter.cache.world import World
from admitter.client.pace import Pace
from admitter.controllers.workload.eviction import Evictions
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.marks import Marks
from admitter.controllers.workload.readiness import ReadyTimeouts
from admitter.controllers.workload.refused_starts import RefusedStarts
from admitter.convert.gpus import DEFAULT_GPUS, GpuSettings
from admitter.engine.cycle import Engine
from admitter.names import CAPACITY_ALIAS_LABEL, CAPACITY_LABEL, GPU_MEMORY
from admitter.policy.catalog import Catalog
from admitter.policy.derive import covers
from admitter.policy.gate import Gate, Waiting
from admitter.policy.shortage import Shortages
from tests.policy.test_elastic_quotas import Cluster, cpu

Json = dict[str, Any]


def conflicting() -> Cluster:
    """A governs itself; a younger composite is for A and B, so it is not in force."""
    made = Cluster()
    made.namespaces("a", "b", "c", "ops")
    made.write("a/older", 1, min=cpu(1))
    made.write("ops/both", 2, namespaces=["a", "b"], min=cpu(1))
    made.news()
    return made


def test_when_one_that_was_in_conflict_is_deleted_its_namespaces_are_told() -> None:
    made = conflicting()
    assert made.quotas.problem_in("b") is not None
    made.delete("ops/both")
    assert made.quotas.problem_in("b") is None, "so what waits there waits for another reason"
    namespaces, _ = made.news()
    assert "b" in namespaces


def test_when_one_that_is_in_conflict_changes_its_namespaces_these_are_told() -> None:
    made = conflicting()
    made.write("ops/both", 2, namespaces=["a", "c"], min=cpu(1))
    assert (made.quotas.problem_in("b") is None, made.quotas.problem_in("c") is None) == (True, False)
    namespaces, _ = made.news()
    assert {"b", "c"} <= namespaces


def test_a_broken_one_in_conflict_that_goes_is_told_too() -> None:
    made = Cluster()
    made.namespaces("a")
    made.write("a/broken", min=cpu(3), max=cpu(1))
    assert made.news() == ({"a"}, {"a/broken"}), "what waits there waits for a reason that can be told"
    made.delete("a/broken")
    assert made.news() == ({"a"}, {"a/broken"})


def meta(namespace: str, name: str) -> Json:
    return {
        "namespace": namespace,
        "name": name,
        "uid": f"{namespace}/{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }


def test_a_local_queue_that_gives_way_to_the_quota_does_not_drain_it() -> None:
    """What may compete by the one rule and must stop by the other would start and stop for ever."""
    world = World()
    engine = Engine()
    catalog = Catalog(world, engine, DEFAULT_GPUS)
    world.namespaces.apply(parse_namespace({"metadata": meta("", "a")}))
    stopped = {"clusterQueue": "total", "stopPolicy": "HoldAndDrain"}
    world.local_queues.apply(parse_object({"metadata": meta("a", "elastic-quota"), "spec": stopped}))
    world.elastic_quotas.apply(parse_object({"metadata": meta("a", "quota"), "spec": {"min": {"cpu": 1}}}))
    catalog.elastic.refresh()
    spec = {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": 0}]}
    waiting = {"metadata": meta("a", "w"), "spec": spec}
    assert Gate(world, catalog).check(parse_workload(waiting), None) == "eq_a_quota"
    admission = {"clusterQueue": "eq_a_quota", "pool": "elastic_quota", "podSets": []}
    running = parse_workload(waiting | {"status": {"admission": admission}})
    absent = cast("Any", None)
    grace = GracePeriods(engine.ledger, lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda _: None)
    ready = ReadyTimeouts(world, catalog, grace.clock, absent, lambda _queue, _seconds: None)
    shortages, refused = Shortages(engine, catalog), RefusedStarts()
    eviction = Evictions(world, catalog, grace, shortages, refused, absent, ready, absent, absent)
    assert eviction.wanted(running) is None


def test_an_elastic_quota_takes_no_class_of_kubernetes_itself() -> None:
    world = World()
    catalog = Catalog(world, Engine(), DEFAULT_GPUS)
    world.namespaces.apply(parse_namespace({"metadata": meta("", "a")}))
    world.priority_classes.apply(
        parse_object({"metadata": meta("", "system-node-critical"), "value": 2_000_001_000})
    )
    world.elastic_quotas.apply(parse_object({"metadata": meta("a", "quota"), "spec": {"min": {"cpu": 1}}}))
    catalog.elastic.refresh()
    priority = {"priorityClassName": "system-node-critical", "priority": 2_000_001_000}
    spec = {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": 0}], **priority}
    refused = Gate(world, catalog).check(parse_workload({"metadata": meta("a", "w"), "spec": spec}), None)
    assert refused == Waiting(
        WaitingReason.PRIORITY_CLASS_NOT_ALLOWED,
        "its PriorityClass system-node-critical is for Kubernetes' own pods, and ElasticQuota a/quota takes "
        "none of these",
    )


def test_a_workload_that_has_finished_is_not_over_quota_any_more() -> None:
    """Else `kubectl get workloads -l admitter.dev/capacity=over-quota` lists what holds nothing."""
    world, engine = World(), Engine()
    marks = Marks(world, engine.capacity, cast("Any", None), Pace(), cast("Any", None))
    over = dict.fromkeys((CAPACITY_LABEL, CAPACITY_ALIAS_LABEL), "over-quota")
    finished = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.workloads.apply(
        parse_workload(
            {
                "metadata": meta("a", "w") | {"labels": over},
                "spec": {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": 1}]},
                "status": {"conditions": [finished]},
            }
        )
    )
    marks.touch(("a", "w"))
    assert list(marks._due()) == [("workload", ("a", "w"), {"labels": dict.fromkeys(over)})]


def test_an_admitted_job_that_can_not_be_counted_any_more_is_not_covered() -> None:
    """It was admitted before a further resource was said to be GPUs: now it requests both."""
    world = World()
    settings = GpuSettings(more={"example.com/gpu": None})
    catalog = Catalog(world, Engine(), settings)
    requests = {GPU_MEMORY: "10", "example.com/gpu": "1"}
    container = {"resources": {"requests": requests}}
    spec = {"suspend": True, "template": {"spec": {"containers": [container]}}}
    labels = {"labels": {"admitter.dev/queue-name": "elastic-quota"}}
    job = parse_job({"metadata": meta("a", "job") | labels, "spec": spec})
    admission = {
        "clusterQueue": "eq_a_quota",
        "pool": "elastic_quota",
        "podSets": [
            {"name": "main", "count": 1, "flavors": {GPU_MEMORY: "any_node"}, "usage": {GPU_MEMORY: "10"}}
        ],
    }
    pod_set = {"name": "main", "count": 1, "requests": requests}
    workload = parse_workload(
        {
            "metadata": meta("a", "w"),
            "spec": {"queueName": "elastic-quota", "podSets": [pod_set]},
            "status": {"admission": admission},
        }
    )
    assert not covers(workload, job, world, catalog)

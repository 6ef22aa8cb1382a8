"""What follows when an object can't be read any more: quota stays held, and it is told."""

from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest

from admitter.client.errors import UnreadableError
from admitter.client.transport import Transport
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONDITION: Json = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def raw(name: str, spec: Json, namespace: str = "", version: int = 1, **status: Any) -> Json:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def workload(version: int, *, holds: bool = True, **spec: Any) -> Json:
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "2"}}
    assigned = {"name": "main", "count": 1, "flavors": {"cpu": "any"}, "usage": {"cpu": "2"}}
    admission = {"clusterQueue": "queue", "podSets": [assigned]}
    status = {"conditions": [CONDITION], **({"admission": admission} if holds else {})}
    return raw("w", {"queueName": "main", "podSets": [pod_set]} | spec, "team", version, **status)


class Cluster:
    """A controller that leads, with a queue of 4 CPU; what it would write is not written.

    Attributes:
        patched: the paths and bodies of its calls.
    """

    def __init__(self) -> None:
        self.patched: list[tuple[str, Json]] = []
        self.app = App(cast("Transport", self), lambda: NOON, Random(1))
        self.lifecycle = AppLifecycle(self.app)
        self.world = self.app.world
        self.apply("namespaces", raw("team", {}))
        self.apply("resourceflavors", raw("any", {}))
        quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": "4"}}]}]
        self.queue = {"namespaceSelector": {}, "resources": quota}
        self.apply("clusterqueues", raw("queue", self.queue))
        self.apply("localqueues", raw("main", {"clusterQueue": "queue"}, "team"))
        self.lifecycle.routing.follow()
        self.lifecycle.lead({0: 1})

    def apply(self, plural: str, item: Json) -> None:
        """The API server says that an object is this now."""
        try:
            self.world.source_of(plural).take(item)
        except UnreadableError:
            assert self.world.source_of(plural).store.unreadable

    async def patch(self, path: str, body: Json, **_: Any) -> Json:
        self.patched.append((path, body))
        return raw("queue", self.queue, version=1) | {"status": body["status"]}

    @property
    def used(self) -> int:
        """Thousandths of a CPU that are in use."""
        return sum(self.app.engine.ledger.used("queue").values())

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Kind, place and reason of the events that wait to be written."""
        waiting = self.app.events._waiting.values()
        return [(each.subject.kind, each.subject.place, each.reason) for each in waiting]


async def test_a_workload_keeps_what_it_holds_and_is_told_once() -> None:
    cluster = Cluster()
    cluster.apply("workloads", workload(5))
    assert cluster.used == 2000
    cluster.apply("workloads", workload(6, priority="high"))
    cluster.apply("workloads", workload(7, holds=False, priority="high"))
    assert cluster.used == 2000, "it is not known that it holds less"
    assert cluster.told.count(("Workload", "team", "Unreadable")) == 1
    view = cluster.world.workloads.get(("team", "w"))
    assert view is not None
    assert cluster.app.jobs._unknown(view.key, view, None), "nothing is done about it"
    cluster.apply("workloads", workload(8, holds=False, priority=1))
    assert cluster.used == 0


async def test_what_a_workload_holds_counts_after_a_restart_though_the_rest_can_not_be_read() -> None:
    cluster = Cluster()
    cluster.apply("workloads", workload(6, priority="high"))
    assert cluster.used == 2000
    cluster.world.workloads.delete(("team", "w"), "uid-w")
    assert cluster.used == 0


@pytest.mark.parametrize("admission", [7, {}, {"clusterQueue": "queue", "podSets": [{"name": {}}]}])
async def test_an_admission_that_can_not_be_read_either_counts_for_nothing(admission: object) -> None:
    cluster = Cluster()
    broken = workload(6)
    broken["status"]["admission"] = admission
    cluster.apply("workloads", broken)
    assert cluster.used == 0
    assert len(cluster.world.workloads) == 0


async def test_one_that_waits_competes_no_more() -> None:
    cluster = Cluster()
    cluster.apply("workloads", workload(5, holds=False))
    engine = cluster.app.engine
    assert engine.waits("uid-w")
    cluster.apply("workloads", workload(6, holds=False, priority="high"))
    assert not engine.waits("uid-w")
    cluster.apply("workloads", workload(7, holds=False, priority=0))
    assert engine.waits("uid-w")


async def test_a_queue_admits_nothing_counts_as_before_and_says_so() -> None:
    cluster = Cluster()
    cluster.apply("workloads", workload(5))
    cluster.apply("clusterqueues", raw("queue", cluster.queue | {"cohort": ["a"]}, version=6))
    cluster.app.catalog.refresh()
    entry = cluster.app.catalog.queue("queue")
    assert entry.problem is not None
    assert entry.problem[0] == "Unreadable"
    assert "spec.cohort" in entry.problem[1]
    assert cluster.used == 2000
    assert ("ClusterQueue", "default", "Unreadable") in cluster.told
    await cluster.app.statuses._write("clusterqueues", ("", "queue"))
    await cluster.app.statuses._write("clusterqueues", ("", "queue"))
    [body] = [body for path, body in cluster.patched if path.endswith("clusterqueues/queue/status")]
    [condition] = body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Active", "False", "Unreadable")
    assert body["metadata"] == {"uid": "uid-queue"}
    cluster.apply("clusterqueues", raw("queue", cluster.queue, version=7))
    cluster.app.catalog.refresh()
    assert cluster.app.catalog.queue("queue").problem is None


async def test_an_elastic_quota_stays_in_force_and_admits_nothing() -> None:
    cluster = Cluster()
    spec: Json = {"min": {"cpu": "1"}, "max": {"cpu": "2"}}
    cluster.apply("elasticquotas", raw("quota", spec, "team", 5))
    quota = cluster.app.catalog.elastic.governing("team")
    assert quota is not None
    cluster.apply("elasticquotas", raw("quota", {"min": [["cpu"]]}, "team", 6))
    assert cluster.app.catalog.elastic.governing("team") == quota
    problem = cluster.app.catalog.elastic.problem("ElasticQuota", ("team", "quota"))
    assert problem is not None
    assert problem[0] == "Unreadable"
    assert not cluster.app.engine.tree.queues[quota.queue].admits

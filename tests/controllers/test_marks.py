"""What Workloads and pods show of themselves, and what is written. Source: docs/design/elastic-quota.md."""

from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from admitter.cache.pod_views import parse_pod
from admitter.cache.views import parse_workload
from admitter.cache.world import World
from admitter.client.errors import ClusterError, api_error
from admitter.client.pace import Pace
from admitter.controllers.telemetry.events import Events
from admitter.controllers.workload.marks import Marks
from admitter.engine.commands import Define, Release, Reserve, SetFlavor, SetPods
from admitter.engine.cycle import Engine
from admitter.engine.model import Flavor, Workload
from admitter.names import (
    ANY_NODE,
    CAPACITY_ALIAS_LABEL,
    CAPACITY_LABEL,
    CLUSTER_QUEUE_LABEL,
    COUNTED_ANNOTATION,
    EVICTION_TIME_ANNOTATION,
    FLAVORS_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from tests.engine.elastic import gpus

Json = dict[str, Any]

UNTIL = "2026-01-01T01:00:00Z"


def capacity(word: str | None) -> Json:
    """Both labels, as they are written."""
    return {"labels": dict.fromkeys((CAPACITY_LABEL, CAPACITY_ALIAS_LABEL), word)}


class Cluster:
    """A quota of 2 GPUs, and Workloads with one GPU a pod."""

    def __init__(self, transport: Any = None) -> None:
        self.world, self.engine = World(), Engine()
        self.engine.apply(SetFlavor(Flavor(ANY_NODE)))
        self.engine.apply(Define((gpus("q", 2),)))
        events = Events(transport, lambda: datetime(2026, 1, 1, tzinfo=UTC), Pace())
        self.marks = Marks(self.world, self.engine.capacity, transport, Pace(), events)
        self.serial = 0

    def _metadata(self, name: str, minute: int = 0) -> Json:
        self.serial += 1
        return {
            "namespace": "team",
            "name": name,
            "uid": name,
            "resourceVersion": str(self.serial),
            "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z",
        }

    def workload(
        self,
        name: str,
        count: int = 1,
        *,
        pool: str = "elastic_quota",
        labels: Json | None = None,
        **status: Any,
    ) -> None:
        """A Workload that holds quota."""
        pod_set = {
            "name": "main",
            "count": count,
            "flavors": {"gpu": ANY_NODE},
            "usage": {"gpu": str(count)},
        }
        admission = {"clusterQueue": "q", "podSets": [pod_set]} | ({"pool": pool} if pool else {})
        raw = {
            "metadata": self._metadata(name) | {"labels": labels or {}},
            "spec": {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": count}]},
            "status": {"admission": admission, **status},
        }
        view = parse_workload(raw)
        self.world.workloads.apply(view)
        self.engine.apply(Release(name))
        if view.admission is not None:
            who = Workload(name, "q", 0, 0.0, ())
            self.engine.apply(Reserve(name, view.admission, who, float(self.serial)))

    def pods(self, workload: str, *minutes: int, labels: Json | None = None, **more: Any) -> None:
        """Pods of a Workload, each made at some minute: `workload-minute`."""
        for minute in minutes:
            metadata = self._metadata(f"{workload}-{minute}", minute)
            metadata["labels"] = {WORKLOAD_LABEL: workload, CLUSTER_QUEUE_LABEL: "q"} | (labels or {})
            metadata["annotations"] = {
                WORKLOAD_UID_ANNOTATION: workload,
                FLAVORS_ANNOTATION: '{"gpu":"any_node"}',
                COUNTED_ANNOTATION: '{"pool":"elastic_quota"}',
            } | more.get("annotations", {})
            spec = {"containers": [{"resources": {"requests": {"gpu": 1}}}]}
            raw = {"metadata": metadata, "spec": spec, "status": {"phase": more.get("phase", "Running")}}
            self.world.pods.apply(parse_pod(raw))
        found = [pod for pod in self.world.pods_named(("team", workload)) if pod.live]
        self.engine.apply(SetPods(workload, tuple(sorted((pod.created, pod.name) for pod in found))))

    def due(self) -> dict[str, Json]:
        """What would be written, by the name of the object."""
        self.marks.touch_queue("q")
        for view in self.world.workloads:
            self.marks.touch(view.key)
        return {key[1]: change for _, key, change in self.marks._due()}


OVER, WITHIN = capacity("over-quota"), capacity("in-quota")


def test_both_labels_are_written_to_workloads_and_pods() -> None:
    cluster = Cluster()
    cluster.workload("a", 2)
    cluster.workload("b", 2)
    cluster.pods("a", 1, 4)
    cluster.pods("b", 2, 3)
    assert cluster.due() == {
        "a": OVER,
        "a-1": WITHIN,
        "a-4": OVER,
        "b": OVER,
        "b-2": WITHIN,
        "b-3": OVER,
    }


def test_only_what_differs_is_written() -> None:
    cluster = Cluster()
    cluster.workload("a", 2, labels=WITHIN["labels"])
    cluster.pods("a", 1, labels=WITHIN["labels"])
    cluster.pods("a", 2, labels=OVER["labels"])
    assert cluster.due() == {"a-2": WITHIN}


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({CAPACITY_LABEL: "in-quota"}, id="one is missing"),
        pytest.param({CAPACITY_LABEL: "in-quota", CAPACITY_ALIAS_LABEL: "over-quota"}, id="they disagree"),
        pytest.param({CAPACITY_LABEL: "mine", CAPACITY_ALIAS_LABEL: "mine"}, id="a user wrote another word"),
    ],
)
def test_labels_that_a_user_has_overwritten_are_put_right(labels: Json) -> None:
    cluster = Cluster()
    cluster.workload("a", labels=labels)
    cluster.pods("a", 1, labels=labels)
    assert cluster.due() == {"a": WITHIN, "a-1": WITHIN}


def test_an_older_pod_that_ends_moves_the_others_up() -> None:
    cluster = Cluster()
    cluster.workload("a", 1, labels=WITHIN["labels"])
    cluster.workload("b", 2, labels=OVER["labels"])
    cluster.pods("a", 1, labels=WITHIN["labels"])
    cluster.pods("b", 2, labels=WITHIN["labels"])
    cluster.pods("b", 3, labels=OVER["labels"])
    assert cluster.due() == {}
    cluster.engine.apply(Release("a"))
    cluster.world.workloads.delete(("team", "a"), "a")
    assert cluster.due() == {"b": WITHIN, "b-3": WITHIN}


@pytest.mark.parametrize(
    ("count", "there", "expected"),
    [
        pytest.param(2, (), "in-quota", id="all of it fits"),
        pytest.param(3, (), "in-quota", id="the next one fits"),
        pytest.param(3, (1,), "in-quota", id="the second too"),
        pytest.param(3, (1, 2), "over-quota", id="the third does not"),
    ],
)
def test_a_pod_is_born_with_what_its_place_is(count: int, there: tuple[int, ...], expected: str) -> None:
    cluster = Cluster()
    cluster.workload("a", count)
    cluster.pods("a", *there)
    view = cluster.world.workloads.get(("team", "a"))
    assert view is not None
    assert cluster.marks.of_next_pod(view) == expected


def test_outside_of_elastic_quotas_nothing_is_written() -> None:
    cluster = Cluster()
    cluster.workload("a", 9, pool="")
    cluster.pods("a", 1, 2)
    view = cluster.world.workloads.get(("team", "a"))
    assert view is not None
    assert cluster.marks.of_next_pod(view) is None
    assert cluster.due() == {}


def told() -> Json:
    """The status of one that will be evicted."""
    admission = {"clusterQueue": "other", "podSets": []}
    by = {"namespace": "other", "name": "w", "uid": "u", "admission": admission, "evictAt": UNTIL}
    pending = {"type": "EvictionPending", "status": "True", "lastTransitionTime": UNTIL}
    return {"preemption": by, "conditions": [pending]}


def test_a_victim_has_the_time_of_its_eviction_on_its_pods() -> None:
    cluster = Cluster()
    cluster.workload("a", labels=WITHIN["labels"], **told())
    cluster.pods("a", 1, labels=WITHIN["labels"])
    assert cluster.due() == {"a-1": {"annotations": {EVICTION_TIME_ANNOTATION: UNTIL}}}


def test_a_cancelled_eviction_takes_the_time_off_the_pods() -> None:
    cluster = Cluster()
    cluster.workload("a", labels=WITHIN["labels"])
    cluster.pods("a", 1, labels=WITHIN["labels"], annotations={EVICTION_TIME_ANNOTATION: UNTIL})
    assert cluster.due() == {"a-1": {"annotations": {EVICTION_TIME_ANNOTATION: None}}}


def test_pods_that_have_ended_are_left_as_they_are() -> None:
    cluster = Cluster()
    cluster.workload("a", labels=WITHIN["labels"])
    cluster.pods("a", 1, phase="Succeeded")
    assert cluster.due() == {}


def test_a_workload_that_waits_again_has_no_capacity() -> None:
    cluster = Cluster()
    cluster.workload("a", labels=OVER["labels"], admission=None)
    assert cluster.due() == {"a": capacity(None)}


def test_what_was_not_touched_is_not_looked_at() -> None:
    cluster = Cluster()
    cluster.workload("a")
    cluster.workload("b")
    cluster.marks.touch(("team", "b"))
    assert [key for _, key, _ in cluster.marks._due()] == [("team", "b")]
    assert list(cluster.marks._due()) == []


class Refusing:
    """An API server that answers each patch with the next error."""

    def __init__(self, *errors: ClusterError) -> None:
        self.errors = list(errors)

    async def patch(self, _path: str, _body: Json) -> Json:
        raise self.errors.pop(0)


async def test_what_is_refused_of_the_next_pod_of_a_name_is_logged_again() -> None:
    """That the pod of before is gone may be heard of from the answer first."""
    refused, gone = api_error(403, {"message": "policy gold forbids it"}), api_error(404, {})
    cluster = Cluster(Refusing(refused, refused, gone, refused))
    with capture_logs() as lines:
        for _ in range(4):
            await cluster.marks._write("pod", ("team", "a-1"), WITHIN)
    assert [line["log_level"] for line in lines] == ["warning", "debug", "warning"]

"""What an object of a described kind may run beyond its admission, by pod set."""

from typing import Any

import orjson
import pytest

from admitter.cache.bounds import LONGEST, bounds_of
from admitter.cache.described_views import parse_described, parse_record, record_of
from admitter.cache.job_resources import resource_of
from admitter.cache.resize_status import PartStatus, ResizeStatus
from admitter.cache.views import JobView, WorkloadView, parse_workload
from admitter.engine.quota.extras import Extra
from admitter.kinds.paths import merge_patch
from admitter.names import BOUNDS_ANNOTATION
from admitter.policy import growing, replicas
from admitter.policy.replicas import Living
from tests.kinds.described import kind_of, related, shipped, template

Json = dict[str, Any]
REPLICA = "ray.io/worker-group-replica-name"
EACH = ((("any", "cpu"), 1000),)
HOSTS = ((("any", "cpu"), 2000),)
UNLIMITED: Json = {"small": {"bound": None}}


def manifest(
    size: int = 2,
    bound: int = 2,
    *,
    autoscales: bool = True,
    kept: Json | None = None,
    big: int = 1,
    **more: Any,
) -> Json:
    """A RayCluster that runs, with a group of two workers and one of a replica of two hosts."""
    small = {"groupName": "small", "replicas": size, "minReplicas": 0, "maxReplicas": bound}
    hosts = {"groupName": "Big", "replicas": big, "minReplicas": 0, "maxReplicas": big, "numOfHosts": 2}
    record = (
        {"small": {"bound": 8, "replicas": 2}, "big": {"bound": 3, "replicas": 1}} if kept is None else kept
    )
    metadata: Json = {
        "namespace": "team",
        "name": "tune",
        "uid": "1",
        "resourceVersion": "1",
        "generation": 4,
    }
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    metadata["annotations"] = {BOUNDS_ANNOTATION: orjson.dumps(record).decode()} if record else {}
    groups = [each | {"template": template()} for each in (small | more, hosts)]
    spec: Json = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups}
    spec |= {"enableInTreeAutoscaling": autoscales}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


def cluster(size: int = 2, bound: int = 2, **more: Any) -> JobView:
    made, kinds = manifest(size, bound, **more), shipped()
    resource = resource_of(next(each for each in kinds.declared if each.metadata.name == "raycluster"))
    return parse_described(made, resource, kind_of(made), kinds, lambda _, *names: related(*names))


def workload(resize: dict[str, tuple[int, int]] | None = None, **status: Any) -> WorkloadView:
    """Its Workload: a head, two small workers and two big ones, of a CPU each."""
    counts = {"head": 1, "small": 2, "big": 2}
    sets = [
        {"name": name, "count": n, "flavors": {"cpu": "any"}, "usage": {"cpu": str(n)}}
        for name, n in counts.items()
    ]
    said: Json = {"admission": {"clusterQueue": "queue", "podSets": sets}, **status}
    if resize is not None:
        parts: list[Json] = [{"name": name, "granted": g, "wanted": w} for name, (g, w) in resize.items()]
        granted, wanted = (
            5 + sum(part[which] - counts[part["name"]] for part in parts) for which in ("granted", "wanted")
        )
        told = {"granted": granted, "wanted": wanted, "changedAt": "2026-01-01T00:01:00Z", "podSets": parts}
        said["resize"] = told
    metadata = {"namespace": "team", "name": "ray", "uid": "2", "resourceVersion": "1"}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {
        "queueName": "main",
        "podSets": [{"name": name, "count": n, "requests": {"cpu": "1"}} for name, n in counts.items()],
    }
    return parse_workload({"metadata": metadata, "spec": spec, "status": said})


def extra(
    size: int, bound: int, resize: dict[str, tuple[int, int]] | None = None, **more: Any
) -> Extra | None:
    return replicas.extras_of(workload(resize), cluster(size, bound, **more)).get("small")


def pods(part: str, *names: str, ending: tuple[str, ...] = ()) -> list[Living]:
    return [Living(name, name[-1], name in ending, {"ray.io/group": part}) for name in names]


@pytest.mark.parametrize(
    ("size", "bound", "granted", "most"),
    [
        pytest.param(2, 2, 2, 2, id="at its bound: as many again"),
        pytest.param(1, 2, 2, 0, id="beneath it: no more"),
        pytest.param(4, 4, 4, 6, id="twice its replicas, up to its user's bound"),
        pytest.param(3, 6, 6, 4, id="what it was granted is not taken back at once"),
        pytest.param(
            2, 6, 6, 4, id="what is beyond twice of that is not wanted, and there until it has ended"
        ),
    ],
)
def test_what_an_autoscaled_group_could_use(size: int, bound: int, granted: int, most: int) -> None:
    found = extra(size, bound, {"small": (granted, granted)} if granted > 2 else None)
    assert (found.most if found is not None else 0) == most


def test_a_group_without_an_autoscaler_could_use_what_is_asked_for() -> None:
    assert extra(2, 2, autoscales=False) is None
    found = extra(5, 2, autoscales=False)
    assert found == Extra(EACH, 2, 3, since=found.since if found else 0.0)
    assert (extra(50, 2, autoscales=False) or Extra(EACH, 0, 0)).most == 6


def test_nothing_grows_that_was_started_without_a_bound_or_of_which_nothing_was_admitted() -> None:
    assert replicas.extras_of(workload(), cluster(9, 9, kept={})) == {}
    made = workload()
    admission = made.status["admission"]
    admission["podSets"][1] |= {"count": 0, "usage": {}}
    none = parse_workload(
        {
            "metadata": {"namespace": "t", "name": "n", "uid": "2", "resourceVersion": "1"}
            | {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": made.spec,
            "status": {"admission": admission},
        }
    )
    assert "small" not in replicas.extras_of(none, cluster(5, 0, autoscales=False))


def test_one_that_is_evicted_pauses_or_has_lost_its_object_gets_no_more() -> None:
    grown = {"small": (4, 4)}
    for found in (
        replicas.extras_of(workload(grown), cluster(4, 4), pauses=True),
        replicas.extras_of(workload(grown), None),
    ):
        assert (found["small"].most, found["small"].granted) == (2, 2)
    assert growing.extra_usage(workload(grown)) == ((("any", "cpu"), 2000),)


def test_all_pods_count_that_a_bound_allows() -> None:
    assert {each.name: each.count for each in cluster(0, 4).sets} == {"head": 1, "small": 4, "big": 2}
    unbounded = {each.name: each.count for each in cluster(1, 4, kept={}).sets}
    assert unbounded == {"head": 1, "small": 1, "big": 2}


def test_a_decision_in_replicas_is_written_in_pods_of_each_pod_set() -> None:
    job, decided = (
        cluster(2, 2),
        {"big": Extra(HOSTS, 1, 2, 1, 1, 9.0), "small": Extra(EACH, 2, 2, 2, 2, 9.0)},
    )
    found = replicas.decided(workload(), job, decided)
    assert found == ResizeStatus(11, 9, 9.0, (("big", PartStatus(6, 4)), ("small", PartStatus(4, 4))))
    grown = workload({"big": (4, 4), "small": (4, 4)})
    found = replicas.decided(grown, job, {"big": Extra(HOSTS, 1, 2, 1, 0, 9.0)})
    assert found is not None
    assert (found.granted, found.wanted, found.target, found.shrinks) == (9, 7, 7, True)


def test_a_decision_about_something_else_is_not_written() -> None:
    shrinking = {"small": Extra(EACH, 2, 2, 2, 1, 9.0)}
    assert replicas.decided(workload(), cluster(), shrinking) is None, "it was never granted"
    assert replicas.decided(workload(), None, {"small": Extra(EACH, 2, 2, 2, 2, 9.0)}) is None
    other = {"big": Extra(EACH, 1, 2, 1, 1, 9.0)}
    assert replicas.decided(workload(), cluster(), other) is None, "of replicas with another number of pods"


def test_what_is_asked_for_is_said_and_the_grant_stays() -> None:
    found = replicas.asked(workload(), cluster(5, 2, autoscales=False))
    assert found is not None
    assert (found.parts, found.granted, found.shrinks) == ((("small", PartStatus(5, 2)),), 5, False)
    assert replicas.asked(workload(), cluster(2, 2, autoscales=False)) is None
    assert replicas.asked(workload({"small": (2, 5)}), cluster(5, 2, autoscales=False)) is None
    less = replicas.asked(workload({"small": (5, 5)}), cluster(3, 5, autoscales=False))
    assert less is not None
    assert (less.part("small"), less.shrinks) == (PartStatus(3, 5), True)
    assert replicas.asked(workload({"small": (5, 3)}), cluster(8, 5, autoscales=False)) is None, "it shrinks"


def patched(job: JobView, made: Json, resize: dict[str, tuple[int, int]], living: list[Living]) -> Json:
    changes = replicas.resizing(job, workload(resize), living)
    groups = merge_patch(changes, made).get("spec", {}).get("workerGroupSpecs", [{}])
    return {
        name: value
        for name, value in groups[0].items()
        if made["spec"]["workerGroupSpecs"][0].get(name) != value
    }


def test_a_bound_becomes_what_is_granted_and_no_pod_is_named() -> None:
    assert patched(cluster(2, 2), manifest(2, 2), {"small": (4, 6)}, []) == {"maxReplicas": 4}
    assert patched(cluster(4, 4), manifest(4, 4), {"small": (4, 6)}, []) == {}


def test_the_newest_pods_are_named_when_a_group_shrinks_but_for_those_that_end_already() -> None:
    living = [*pods("small", "p1", "p4", "p2", "p3", "p5", ending=("p5",)), *pods("Big", "b9", "b8")]
    shrinking = {"small": (5, 2)}
    assert patched(cluster(5, 5), manifest(5, 5), shrinking, living) == {
        "maxReplicas": 2,
        "replicas": 2,
        "scaleStrategy": {"workersToDelete": ["p4", "p3"]},
    }
    named: Json = {"scaleStrategy": {"workersToDelete": ["p4", "gone"]}}
    found = patched(cluster(2, 2, **named), manifest(2, 2, **named), shrinking, living)
    assert found == {"scaleStrategy": {"workersToDelete": ["p4", "p3"]}}
    asked = patched(cluster(5, 5, autoscales=False), manifest(5, 5), shrinking, [])
    assert asked == {"maxReplicas": 2}, "what a user asks for stays"


def test_the_pods_of_a_replica_are_named_together() -> None:
    living = [
        Living(f"b{n}", str(created), False, {"ray.io/group": "Big", REPLICA: replica})
        for n, created, replica in (
            (1, 1, "x"),
            (2, 5, "y"),
            (3, 6, "x"),
            (4, 5, "y"),
            (5, 4, "z"),
            (6, 4, "z"),
        )
    ]
    shrinking, made = workload({"big": (6, 2)}), manifest(big=3)
    groups = merge_patch(replicas.resizing(cluster(big=3), shrinking, living), made)["spec"][
        "workerGroupSpecs"
    ]
    assert groups[1]["maxReplicas"] == 1
    assert groups[1]["scaleStrategy"] == {"workersToDelete": ["b1", "b3", "b2", "b4"]}


def test_a_grant_is_lowered_when_its_bound_is_and_its_pods_are_gone() -> None:
    shrinking, job = workload({"small": (5, 3), "big": (4, 4)}), cluster(3, 3)
    living = [*pods("small", "p1", "p2", "p3"), *pods("big", "b1", "b2", "b3", "b4")]
    found = replicas.lowered(shrinking, job, living)
    assert found is not None
    assert (found.part("small"), found.granted) == (PartStatus(3, 3), 8)
    assert replicas.lowered(shrinking, job, [*living, *pods("small", "p4", ending=("p4",))]) is None
    assert replicas.lowered(shrinking, cluster(5, 5), living) is None, "its bound is as it was"
    ends = [*pods("small", "p1", "p2"), *living[3:]]
    named = cluster(3, 3, scaleStrategy={"workersToDelete": ["p2"]})
    assert replicas.lowered(shrinking, named, ends) is None, "another pod may be made beside one that ends"
    strays = [*living, *pods("else", "q1", "q2")]
    assert replicas.lowered(shrinking, job, strays) is None, "all pods count, also with another label"


def test_a_group_that_is_stopped_gives_back_what_it_has_grown_by_and_gets_its_bound_back() -> None:
    stopped, grown = cluster(4, 4, suspend=True), workload({"small": (4, 4)})
    assert {each.name: each.count for each in stopped.sets} == {"head": 1, "small": 0, "big": 2}
    less = replicas.asked(grown, stopped)
    assert less is not None
    assert less.part("small") == PartStatus(2, 4)
    assert patched(stopped, manifest(4, 4, suspend=True), {"small": (4, 2)}, []) == {
        "maxReplicas": 2,
        "replicas": 2,
    }
    found = replicas.lowered(workload({"small": (4, 2)}), cluster(2, 2, suspend=True), [])
    assert found is not None
    assert found.part("small") == PartStatus(2, 2)
    _, changes = replicas.unbounding(stopped)
    groups = merge_patch(changes, manifest(4, 4, suspend=True))["spec"]["workerGroupSpecs"]
    assert groups[0]["maxReplicas"] == 8
    admission = grown.admission
    assert admission is not None
    noted, _ = replicas.bounding(cluster(0, 8, kept={}, suspend=True), admission)
    assert bounds_of(noted).keys() == {"big"}


def test_one_that_has_lost_its_bounds_is_not_within_its_grant_and_nothing_is_decided_about_it() -> None:
    grown, lost = workload({"small": (4, 4)}), cluster(4, 4, kept={})
    assert replicas.is_bounded(grown, cluster(4, 4))
    assert not replicas.is_bounded(grown, lost)
    assert replicas.is_bounded(workload({"small": (2, 4)}), lost)
    assert replicas.is_bounded(workload(), lost)
    (found,) = replicas.extras_of(grown, lost).values()
    assert (found.granted, found.kept, found.most) == (2, 0, 2)
    assert replicas.asked(grown, lost) is None
    assert replicas.lowered(workload({"small": (4, 2)}), lost, []) is None
    more = replicas.extras_of(grown, cluster(4, 4, kept={}, numOfHosts=3))
    assert more["small"].granted == 2, "what is granted counts, whatever the object says"


def test_no_more_is_wanted_than_a_status_can_say() -> None:
    found = replicas.asked(workload(), cluster(2**31 - 1, 2, autoscales=False, kept=UNLIMITED))
    assert found is not None
    assert found.part("small") == PartStatus(2**31 - 1, 2)
    assert found.wanted == 2**31 - 1
    most = cluster(2**31 - 1, 2, autoscales=False, kept=UNLIMITED, numOfHosts=2)
    hosts = replicas.asked(workload(), most)
    assert hosts is not None
    assert hosts.part("small") == PartStatus(2**31 - 2, 2)


def test_a_snapshot_knows_what_an_object_may_run() -> None:
    job = cluster(4, 4)
    metadata = manifest(4, 4)["metadata"]
    kept = parse_record(orjson.loads(orjson.dumps(record_of(metadata, job))), job.resource)
    assert replicas.extras_of(workload({"small": (4, 6)}), kept) == replicas.extras_of(
        workload({"small": (4, 6)}), job
    )


def test_a_start_sets_bounds_and_remembers_them_and_the_end_puts_them_back() -> None:
    made = manifest(2, 8, kept={})
    admission = workload().admission
    assert admission is not None
    noted, changes = replicas.bounding(cluster(2, 8, kept={}), admission)
    record = {"small": {"bound": 8, "replicas": 2}, "big": {"bound": 1, "replicas": 1}}
    assert bounds_of(noted) == record
    groups = merge_patch(changes, made)["spec"]["workerGroupSpecs"]
    assert [each["maxReplicas"] for each in groups] == [2, 1]
    named: Json = {"scaleStrategy": {"workersToDelete": ["p4"]}}
    noted, changes = replicas.unbounding(cluster(5, 5, kept=record, **named))
    groups = merge_patch(changes, manifest(5, 5, **named))["spec"]["workerGroupSpecs"]
    assert noted == {BOUNDS_ANNOTATION: None}
    assert [(each["replicas"], each["maxReplicas"]) for each in groups] == [(2, 8), (1, 1)]
    assert groups[0]["scaleStrategy"] == {}
    assert replicas.unbounding(cluster(kept={})) == ({}, [])


def test_a_second_start_keeps_what_is_remembered_and_a_users_replicas_are_its_own() -> None:
    admission = workload().admission
    assert admission is not None
    noted, _ = replicas.bounding(cluster(4, 2), admission)
    assert bounds_of(noted)["small"] == {"bound": 8, "replicas": 2}
    noted, _ = replicas.bounding(cluster(2, 8, kept={}, autoscales=False), admission)
    assert bounds_of(noted)["small"] == {"bound": 8}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "[]",
        '{"a": 1}',
        '{"a": {"bound": true}}',
        '{"a": {"more": 1}}',
        '{"a": {"bound": -1}}',
        "9" * LONGEST,
    ],
)
def test_what_is_no_record_counts_as_none(text: str) -> None:
    assert bounds_of({BOUNDS_ANNOTATION: text}) == {}

"""Large Workloads share a bounded part of the memory: a flood of one namespace parks that namespace alone."""

from dataclasses import replace
from typing import Any

import pytest

from admitter.api import weights
from admitter.cache.room import OF_ONE, OWN_BYTES, ROOM_BYTES
from admitter.cache.views import WorkloadView, parse_workload
from admitter.client.errors import NotFoundError
from admitter.client.source import Source
from admitter.client.store import Key
from admitter.controllers.workload.memory_room import SMALL_BYTES, MemoryRoom

Json = dict[str, Any]
VALUES = 250


def manifest(name: str, namespace: str = "a", values: int = VALUES, version: int = 1, **status: Any) -> Json:
    """A Workload that keeps away from so many nodes."""
    hosts = [f"{number:060d}" for number in range(values)]
    expressions = [{"key": "host", "operator": "NotIn", "values": hosts}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}, "affinity": affinity}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"{namespace}/{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": metadata, "spec": {"queueName": "main", "podSets": [pod_set]}, "status": status}


LARGE = parse_workload(manifest("any")).size
ONE_MANY = OF_ONE // LARGE
"""So many of one namespace are held."""


class Reads:
    """An API server that has some Workloads, and is asked again only a few times."""

    def __init__(self) -> None:
        self.there: dict[str, Json] = {}

    async def get(self, path: str) -> Json:
        name = path.rsplit("/", 1)[1]
        if name not in self.there:
            raise NotFoundError(404, "NotFound", "gone")
        return self.there[name]


class Held:
    """A store with a room, filled with large ones."""

    def __init__(self, *, namespaces: dict[str, int]) -> None:
        source = Source("/workloads", parse_workload)
        self.store = source.store
        self.reads = Reads()
        self.room = MemoryRoom(source, self.reads)  # type: ignore[arg-type]  # reads are all that it needs
        for namespace, number in namespaces.items():
            for each in range(number):
                self.add(manifest(f"w{each:05}", namespace))

    def add(self, raw: Json) -> WorkloadView:
        self.store.apply(parse_workload(raw))
        self.reads.there[raw["metadata"]["name"]] = raw
        return self.of((raw["metadata"]["namespace"], raw["metadata"]["name"]))

    def of(self, key: Key) -> WorkloadView:
        found = self.store.get(key)
        assert found is not None
        return found

    def parked(self, namespace: str) -> int:
        return sum(view.parked for view in self.store if view.namespace == namespace)


def test_a_flood_of_one_namespace_parks_that_namespace_alone() -> None:
    held = Held(namespaces={"a": ONE_MANY + 100, "b": 20})
    assert held.parked("a") == 100
    assert held.parked("b") == 0
    parked = next(view for view in held.store if view.parked)
    assert parked.spec == {"queueName": "main", "podSets": []}


def test_each_namespace_has_a_part_that_others_can_not_fill() -> None:
    floods = {f"flood-{number}": ONE_MANY + 10 for number in range(4)}
    held = Held(namespaces=floods)
    of_floods = sum(view.size for view in held.store if not view.parked)
    assert ROOM_BYTES - 4 * LARGE < of_floods <= ROOM_BYTES
    for number in range(OWN_BYTES // LARGE):
        assert not held.add(manifest(f"late-{number}", "late")).parked
    assert held.add(manifest("beyond", "late")).parked


def test_those_of_usual_size_and_those_that_hold_quota_are_always_held() -> None:
    held = Held(namespaces={"a": ONE_MANY + 1})
    usual = held.add(manifest("usual", values=10))
    assert usual.size <= SMALL_BYTES
    assert not usual.parked
    admission = {"clusterQueue": "main", "podSets": [{"name": "main", "count": 1}]}
    assert not held.add(manifest("runs", admission=admission)).parked


def test_what_has_finished_takes_no_room() -> None:
    held = Held(namespaces={"a": 1})
    over = {"type": "Finished", "status": "True"}
    done = held.add(manifest("w00000", version=2, conditions=[over]))
    assert (done.parked, done.spec["podSets"]) == (False, [])
    for number in range(1, ONE_MANY):
        assert not held.add(manifest(f"w{number:05}")).parked


async def test_what_is_parked_comes_in_when_others_have_gone() -> None:
    held = Held(namespaces={"a": ONE_MANY + 50})
    parked = sorted(view.name for view in held.store if view.parked)
    heard: list[tuple[str, bool]] = []
    for name in ("w00000", "w00001"):
        held.store.delete(("a", name), f"a/{name}")
    del held.reads.there[parked[0]]  # its deletion has not been heard of yet
    held.store.listen(lambda _, new: heard.append((new.name, new.parked)) if new is not None else None)
    await held.room.look_again()
    assert heard == [(parked[1], False)]
    assert held.of(("a", parked[1])).spec["podSets"]


async def test_nothing_is_read_again_while_there_is_no_room() -> None:
    held = Held(namespaces={"a": ONE_MANY + 50})
    before = held.parked("a")
    held.store.listen(lambda _, new: pytest.fail(f"{new} has changed"))
    await held.room.look_again()
    assert held.parked("a") == before


def test_a_list_is_parked_while_it_is_read() -> None:
    """Views of a list are cut down before the last page is there, and once more as they are taken in."""
    source = Source("/workloads", parse_workload)
    store = source.store
    MemoryRoom(source, Reads())  # type: ignore[arg-type]  # as above
    views = [store.keep(parse_workload(manifest(f"w{number:05}"))) for number in range(ONE_MANY + 100)]
    assert sum(view.parked for view in views) == 100
    store.replace(views, 1)
    assert {view.name for view in store if view.parked} == {view.name for view in views if view.parked}


def test_a_newer_version_that_says_less_is_held() -> None:
    held = Held(namespaces={"a": ONE_MANY + 1})
    last = held.of(("a", f"w{ONE_MANY:05}"))
    assert last.parked
    assert replace(last, parked=False) != last
    assert not held.add(manifest(last.name, values=5, version=2)).parked


def test_the_weight_counts_every_name_and_value() -> None:
    pod_set = {
        "requests": {"cpu": "1", "nvidia.com/gpu": "1"},
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "value": "yes"}, {"operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "host", "operator": "In", "values": ["a", "bc"]}]},
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                    ]
                }
            }
        },
    }
    entries = 2 + 1 + 2 + 2 + 2  # requests, labels, tolerations, terms, requirements
    characters = 3 + 14 + 5 + 6 + 4 + 3 + 13 + 1
    assert weights.weight([pod_set]) == entries * weights.ENTRY + 3 * weights.VALUE + characters
    assert weights.weight([pod_set] * 2) == 2 * weights.weight([pod_set])
    assert weights.weight([{"name": "main", "affinity": {"nodeAffinity": {}}}]) == 0

"""What LimitRanges and RuntimeClasses add to requests is what they say now."""

from typing import Any

import orjson

from admitter.cache.views import ObjectView, parse_object
from admitter.cache.world import World

Json = dict[str, Any]


def _made(name: str, namespace: str, version: int, **body: Json) -> ObjectView:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
    metadata |= {"namespace": namespace, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return parse_object({"metadata": metadata, **body})


def _limits(version: int, cpu: str, namespace: str = "a") -> ObjectView:
    return _made("limits", namespace, version, spec={"limits": [{"defaultRequest": {"cpu": cpu}}]})


def test_a_limit_range_counts_as_it_is_now_and_in_its_namespace_alone() -> None:
    world = World()
    rules, seen = world.request_rules, []
    world.limit_ranges.listen(lambda _old, _new: seen.append(rules.limits_in("a")))
    assert rules.limits_in("a") == b"[]"
    for version, cpu in ((1, "1"), (2, "2")):
        world.limit_ranges.apply(_limits(version, cpu))
        found = rules.limits_in("a")
        assert orjson.loads(found) == [{"limits": [{"defaultRequest": {"cpu": cpu}}]}]
        assert rules.limits_in("a") is found, "it is put together once"
        assert seen[-1] == found, "also for what looks at it when it is told of the change"
    world.limit_ranges.apply(_limits(3, "3", "b"))
    assert rules.limits_in("a") != rules.limits_in("b")
    world.limit_ranges.replace([_limits(3, "3", "b")], 4)
    assert rules.limits_in("a") == b"[]"


def test_runtime_classes_count_as_they_are_now() -> None:
    world = World()
    assert orjson.loads(world.request_rules.classes) == {}
    world.runtime_classes.apply(_made("kata", "", 1, overhead={"podFixed": {"cpu": "250m"}}))
    classes = world.request_rules.classes
    assert orjson.loads(classes) == {"kata": {"overhead": {"podFixed": {"cpu": "250m"}}}}
    assert world.request_rules.classes is classes

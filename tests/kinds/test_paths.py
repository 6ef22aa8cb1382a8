"""Merge patches of several places in an object, some of which are in lists."""

from typing import Any

import pytest

from admitter.kinds.paths import Change, merge_patch, merged

Json = dict[str, Any]

OBJECT: Json = {
    "metadata": {"annotations": {"a": "b"}},
    "spec": {
        "on": False,
        "first": {"x": 1},
        "list": [{"t": {"x": 1, "y": 2}}, {"t": {}, "deep": [[{"z": 1}]]}],
    },
}


@pytest.mark.parametrize(
    ("changes", "patch"),
    [
        (
            [((), {"spec": {"on": True}}), (("spec", "first"), {"y": 2})],
            {"spec": {"on": True, "first": {"y": 2}}},
        ),
        ([(("spec",), {"on": True}), (("spec",), {"off": 1})], {"spec": {"on": True, "off": 1}}),
        ([(("spec", "first", "x"), 2)], {"spec": {"first": {"x": 2}}}),
        ([(("spec", "new"), None)], {"spec": {"new": None}}),
        (
            [(("spec", "list", 0, "t"), {"y": None, "n": {"m": 1}}), (("spec", "list", 1, "t"), {"k": 1})],
            {
                "spec": {
                    "list": [
                        {"t": {"x": 1, "n": {"m": 1}}},
                        {"t": {"k": 1}, "deep": [[{"z": 1}]]},
                    ]
                }
            },
        ),
        (
            [(("spec", "list", 1, "deep", 0, 0), {"z": 2}), (("spec", "list", 1, "new"), {"a": 1})],
            {"spec": {"list": [OBJECT["spec"]["list"][0], {"t": {}, "deep": [[{"z": 2}]], "new": {"a": 1}}]}},
        ),
    ],
    ids=["in two places", "in one place", "a value", "none", "in a list", "in lists of lists"],
)
def test_one_patch_changes_all_places(changes: list[Change], patch: Json) -> None:
    assert merge_patch(changes, OBJECT) == patch
    assert merged(OBJECT, patch)["metadata"] == OBJECT["metadata"]


def test_an_object_is_needed_only_for_lists() -> None:
    assert merge_patch([(("spec", "a", "b"), {"c": 1})], None) == {"spec": {"a": {"b": {"c": 1}}}}

"""What `status.resize` says is checked when its Workload is read: what uses it meets nothing else."""

import copy
from typing import Any

import pytest

from admitter.cache.resize_status import PartStatus, resize_of
from admitter.cache.world import World
from admitter.client.errors import UnreadableError
from tests.abuse.samples import stored

Json = dict[str, Any]


def read(change: Json) -> Any:
    raw = copy.deepcopy(stored("workloads"))
    raw["status"]["resize"] |= change
    return resize_of(World().source_of("workloads").read(raw))


def test_it_is_read_by_pod_set() -> None:
    part = {"name": "main", "wanted": 3, "granted": 5}
    found = read({"wanted": 3, "granted": 5, "podSets": [part]})
    assert found.parts == (("main", PartStatus(3, 5)),)
    assert (found.target, found.shrinks) == (3, True)
    assert read({"podSets": []}).parts == ()


@pytest.mark.parametrize(
    "change",
    [
        {"wanted": "2"},
        {"granted": -1},
        {"granted": None},
        {"changedAt": "soon"},
        {"podSets": {}},
        {"podSets": [{"name": "main", "wanted": 1}]},
        {"podSets": [{"name": "main", "wanted": 1, "granted": 2**31}]},
        {"podSets": [{"name": 7, "wanted": 1, "granted": 1}]},
    ],
)
def test_what_it_can_not_say_is_named(change: Json) -> None:
    with pytest.raises(UnreadableError, match=r"status\.resize"):
        read(change)

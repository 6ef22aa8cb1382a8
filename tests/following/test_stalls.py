"""How long the largest objects of described kinds hold up all others."""

import asyncio
import copy
import gc
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import pytest

from admitter.cache.described_views import source_of_kind
from admitter.client.informer import read_all
from admitter.client.transport import Transport
from admitter.kinds.registry import Kinds
from tests.convergence.test_children import SHIPPED

Json = dict[str, Any]

OBJECTS = 50
LONGEST_SECONDS = 0.3
"""Of the processor, in one turn: it takes 0.1 as a rule, most of it for the size of a page."""
CONTAINER: Json = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
CONDITION: Json = {"type": "a", "status": "True", "message": "m"}


def job_set(containers: int, jobs: int = 1, **status: Any) -> Json:
    template = {"spec": {"containers": [CONTAINER] * containers}}
    replicated = [{"name": f"r{n}", "template": {"spec": {"template": template}}} for n in range(jobs)]
    return {"spec": {"suspend": True, "replicatedJobs": replicated}, "status": status}


def affine(names: int) -> Json:
    made = job_set(1)
    expression = {"key": "k", "operator": "In", "values": [f"{n:063}" for n in range(names)]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    return made


SHAPES = {
    "containers": job_set(25_000),
    "pod sets": job_set(3_000, 8),
    "many pod sets": job_set(1, 12_000),
    "just within the bound": job_set(3_000),
    "affinity": affine(20_000),
    "status": job_set(1, replicatedJobsStatus=[{"active": 0}] * 90_000),
    "conditions": job_set(1, conditions=[CONDITION] * 28_000),
}


class Api:
    """Has so many of an object, in pages as small as those of the largest objects are."""

    def __init__(self, shape: Json) -> None:
        self.items = []
        for number in range(OBJECTS):
            metadata = {"name": f"a{number}", "namespace": "team", "uid": f"u{number}"}
            metadata |= {"resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
            self.items.append(copy.copy(shape) | {"metadata": metadata})

    async def get(self, _path: str, query: Mapping[str, str]) -> Json:
        begin = int(query.get("continue", 0))
        end = begin + 25
        more = {"continue": str(end)} if end < OBJECTS else {}
        return {"items": self.items[begin:end], "metadata": {"resourceVersion": "1", **more}}


async def longest_turn(work: "asyncio.Task[str]") -> float:
    """The most of the processor, in seconds, that was used while no other had a turn."""
    longest, before = 0.0, time.process_time()
    gc.disable()  # looking through what other tests have left takes as long as what is timed
    try:
        while not work.done():
            await asyncio.sleep(0)
            now = time.process_time()
            longest, before = max(longest, now - before), now
    finally:
        gc.enable()
    return longest


@pytest.mark.parametrize("shape", SHAPES)
async def test_the_largest_objects_hold_up_others_for_a_moment_only(shape: str) -> None:
    kinds = Kinds([SHIPPED["jobset"]], {})
    source = source_of_kind(kinds.declared[0], kinds, lambda *_: None)
    task = asyncio.create_task(read_all(cast("Transport", Api(SHAPES[shape])), source))
    assert await longest_turn(task) < LONGEST_SECONDS
    with suppress(StopIteration):
        assert next(iter(source.store)).pod_sets == (), "it waits, with a reason"

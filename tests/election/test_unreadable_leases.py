"""A Lease that can't be read is left out: it ends no process, and no process takes it."""

import json
from typing import Any, cast

import pytest

from admitter.client.decoding import decoded
from admitter.client.transport import Transport
from admitter.election.elector import shard_leases
from admitter.election.leases import LeaseCache, LeaseRecord, whole_number
from tests.abuse.mutator import mutated
from tests.abuse.samples import stored
from tests.scale import scaled

Json = dict[str, Any]
SEEDS = range(scaled(150, 3000))


class Listed:
    """An API server that has some Leases."""

    def __init__(self, items: list[Json]) -> None:
        self._items = items

    async def get(self, _path: str, _query: dict[str, str]) -> Json:
        return {"items": self._items}


async def test_changed_leases_harm_no_other() -> None:
    sound = stored("leases")
    sound["metadata"]["name"] = "sound"
    changed = [decoded(mutated(stored("leases"), str(seed)).text) for seed in SEEDS]
    cache = LeaseCache(cast("Transport", Listed([*changed, sound])), 15.0)
    await cache.refresh()
    assert "sound" in {record.name for record in cache}
    assert list(shard_leases(cache)) == []


async def test_a_lease_with_a_holder_that_can_not_be_read_is_left_out() -> None:
    lease = json.loads(json.dumps(stored("leases")))
    lease["spec"]["holderIdentity"] = ["a"]
    cache = LeaseCache(cast("Transport", Listed([lease])), 15.0)
    await cache.refresh()
    assert list(cache) == []


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("", None), ("-1", None), ("9" * 5_000, None)])
def test_numbers_in_labels_have_an_end(text: str, number: int | None) -> None:
    assert whole_number(text) == number
    record = LeaseRecord("a", "1", "", 0, 0.0, {"admitter.dev/shards": text}, {"admitter.dev/shard": text})
    assert bool(list(shard_leases([record]))) == (number is not None)

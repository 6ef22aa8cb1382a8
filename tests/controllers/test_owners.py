"""Owners of shards while trees are joined, split and moved: no quota is given away by two."""

import asyncio
from itertools import count
from typing import Any

import pytest

from admitter.controllers.succession import Succession
from admitter.election.rendezvous import shard_of
from tests.controllers.owners import NUMBER, ROOM, Owner, Owners, used_in

CALM = 8.0
"""Seconds after which every shard has its owner, and every tree is full."""


def names(scene: Owners) -> tuple[str, str]:
    """Two cohorts of different owners."""
    owners = {shard: o.name for o in scene.all.values() for shard in o.world.shards.epochs}
    first = "tree-0"
    second = next(
        name
        for name in map("tree-{}".format, count(1))
        if owners[shard_of(name, NUMBER)] != owners[shard_of(first, NUMBER)]
    )
    return first, second


async def spread(scene: Owners) -> tuple[str, str]:
    """Wait until shards have owners; make a queue in each of two trees of different ones."""
    await scene.pass_time(CALM)
    here, there = names(scene)
    scene.server.put("clusterqueues", "left", {"cohort": here})
    scene.server.put("clusterqueues", "right", {"cohort": there})
    return here, there


async def test_each_tree_has_an_owner_that_fills_it() -> None:
    async with Owners("a", "b") as scene:
        here, there = await spread(scene)
        await scene.pass_time(CALM)
        assert scene.owner_of("left") is not scene.owner_of("right")
        assert used_in(scene.server.truth, ("cohort", here)) == ROOM
        assert used_in(scene.server.truth, ("cohort", there)) == ROOM
    assert scene.server.wrong == []


async def slow_down(scene: Owners) -> Owner:
    """Let the owner of one queue learn everything late, and its admissions be on their way for long."""
    late = scene.owner_of("left")
    await scene.pass_time(0.1)
    late.lag, late.slowness = 3.0, 2.0
    await scene.pass_time(0.2)
    return late


async def move(scene: Owners) -> str:
    """Move a queue while its owner, which learns of it late, admits slowly; returns where it comes to."""
    here, there = await spread(scene)
    late = await slow_down(scene)
    scene.server.reshape("clusterqueues", "left", {"cohort": there})
    await scene.pass_time(CALM)
    assert late.world.shards.root("left") != ("cohort", here)
    return there


async def test_a_queue_that_moves_into_anothers_tree_is_given_no_quota_until_its_owner_knows() -> None:
    async with Owners("a", "b") as scene:
        there = await move(scene)
        await scene.pass_time(CALM)
        late = [queue for queue, shard in scene.server.admitted if queue == "left"]
        assert late, "it was admitted in"
        assert used_in(scene.server.truth, ("cohort", there)) >= ROOM
    assert scene.server.wrong == []


@pytest.mark.parametrize("left_out", ["_agreed", "drained", "read_holders"])
async def test_without_any_part_of_the_agreement_quota_is_given_away_twice(
    left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        await asyncio.sleep(0)

    async with Owners("a", "b") as scene:
        await scene.pass_time(CALM)
        match left_out:
            case "_agreed":
                monkeypatch.setattr(Succession, "_agreed", nothing)
            case "drained":
                for owner in scene.all.values():
                    monkeypatch.setattr(owner, "drained", nothing)
            case _:
                monkeypatch.setattr(f"admitter.controllers.succession.{left_out}", nothing)
                for owner in scene.all.values():
                    owner.lag = 2.0
        await move(scene)
    assert scene.server.wrong != []


async def test_a_cohort_that_gets_a_parent_of_another_owner_joins_its_queues_there() -> None:
    async with Owners("a", "b") as scene:
        here, there = await spread(scene)
        late = await slow_down(scene)
        scene.server.reshape("cohorts", here, {"parent": there})
        await scene.pass_time(2 * CALM)
        assert scene.owner_of("left") is scene.owner_of("right")
        scene.server.reshape("cohorts", here, {})
        await scene.pass_time(2 * CALM)
        assert scene.owner_of("left") is late
        assert used_in(scene.server.truth, ("cohort", there)) >= ROOM
    assert scene.server.wrong == []


async def test_an_owner_that_stops_is_waited_for_until_another_has_read_the_trees() -> None:
    async with Owners("a", "b", "c") as scene:
        _, there = await spread(scene)
        late = await slow_down(scene)
        scene.server.reshape("clusterqueues", "left", {"cohort": there})
        late.stop()
        del scene.all[late.name]
        await scene.pass_time(3 * CALM)
        owned = [shard for owner in scene.all.values() for shard in owner.world.shards.epochs]
        assert sorted(owned) == list(range(NUMBER)), "everything has its owner"
        assert used_in(scene.server.truth, ("cohort", there)) >= ROOM
        assert scene.owner_of("right").world.shards.contested == {}
    assert scene.server.wrong == []


async def test_one_replica_alone_owns_everything_and_waits_for_no_other() -> None:
    async with Owners("a") as scene:
        await scene.pass_time(5)
        (alone,) = scene.all.values()
        assert sorted(alone.world.shards.epochs) == list(range(NUMBER))
        scene.server.put("clusterqueues", "left", {"cohort": "here"})
        await scene.pass_time(1)
        scene.server.reshape("clusterqueues", "left", {"cohort": "there"})
        await scene.pass_time(1.5)
        assert alone.world.shards.contested == {}
        assert used_in(scene.server.truth, ("cohort", "there")) == ROOM
    assert scene.server.wrong == []

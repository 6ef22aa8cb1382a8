"""Several members, several shards: each has one owner, and in the end the one with the right to it."""

import pytest

from admitter.election.elector import (
    FORGOTTEN_SECONDS,
    OUT_OF_TURN_SECONDS,
    STEADY_SECONDS,
    TURN_SECONDS,
    lease_name,
)
from admitter.election.rendezvous import ranked
from admitter.names import MEMBER_LABEL, SHARD_LABEL, SHARDS_ANNOTATION
from tests.election.members import Members
from tests.scale import scaled

SHARDS = 4


def rightful(scene: Members) -> list[str]:
    """The member that should have each shard."""
    names = {member.identity: member.name for member in scene.all.values()}
    return [names[ranked(names, shard)[0]] for shard in range(scene.number)]


async def test_shards_spread_over_members_by_right() -> None:
    async with Members("abc", SHARDS) as scene:
        await scene.until(8)
        assert scene.owners() == rightful(scene)
        assert len(set(scene.owners())) > 1
        for shard in range(SHARDS):
            metadata = scene.server.leases[lease_name(shard)]["metadata"]
            assert metadata["labels"][SHARD_LABEL] == str(shard)
            assert metadata["annotations"][SHARDS_ANNOTATION] == str(SHARDS)


async def test_the_shards_of_a_crashed_member_are_taken_within_seconds_and_no_others_move() -> None:
    async with Members("abc", SHARDS) as scene:
        await scene.until(8)
        before = scene.owners()
        dead = before[0]
        terms = {name: len(member.terms) for name, member in scene.all.items()}
        scene.kill(dead)
        await scene.pass_time(3)
        after = scene.owners()
        assert after == rightful(scene)
        assert all(now == then for now, then in zip(after, before, strict=True) if then != dead), (
            "only its own move"
        )
        taken = sum(len(m.terms) - terms[m.name] for m in scene.all.values())
        assert taken == before.count(dead)


async def test_a_new_member_gets_its_shards_when_their_owners_have_ended_what_was_on_its_way() -> None:
    async with Members("ab", SHARDS) as scene:
        await scene.until(8)
        before = scene.owners()
        here = [member.identity for member in scene.all.values()]
        new = next(n for n in map("new{}".format, range(99)) if ranked([*here, f"{n}-1"], 0)[0] == f"{n}-1")
        scene.start(new)
        await scene.pass_time(STEADY_SECONDS + 3)
        after = scene.owners()
        assert after == rightful(scene)
        moved = [now for now, then in zip(after, before, strict=True) if now != then]
        assert set(moved) == {new}, "the others keep what is theirs"
        assert all(term.handed_over for _, _, term in scene.all[new].terms), "nothing is on its way"


async def test_a_member_that_leaves_in_order_is_followed_at_once() -> None:
    async with Members("ab", SHARDS) as scene:
        await scene.until(8)
        (leaving,) = {scene.owners()[0]}
        scene.all[leaving].leaving.set()
        await scene.pass_time(0.7)
        del scene.all[leaving]
        assert scene.owners() == rightful(scene)


async def test_a_shard_that_its_heir_does_not_take_is_taken_by_the_next_that_keeps_it_for_a_while() -> None:
    async with Members("ab", SHARDS) as scene:
        await scene.until(8)
        owner = scene.owners()[1]
        other = scene.all[{"a": "b", "b": "a"}[owner]]
        heir = scene.all[owner]

        async def never(*_: object) -> None:
            await heir.elector.clocks.sleep(10_000)

        lock = heir.elector._locks[1]
        lock._take = never  # type: ignore[assignment,method-assign]  # it says that it is there, and takes nothing
        heir.release_requested(1)
        await scene.pass_time(TURN_SECONDS + 1)
        assert scene.owners()[1] == other.name
        await scene.pass_time(OUT_OF_TURN_SECONDS / 2, step=0.5)
        assert scene.owners()[1] == other.name


async def test_a_member_with_another_number_of_shards_waits_until_the_others_are_gone() -> None:
    async with Members("a", SHARDS) as scene:
        await scene.until(5)
        odd = scene.start("x", number=2)
        await scene.pass_time(10)
        assert odd.shards == set()
        assert odd.elector.other_shard_count == SHARDS
        scene.kill("a")
        await scene.pass_time(5)
        assert odd.shards == {0, 1}
        assert lease_name(2) not in scene.server.leases, "no member may wake up and believe that it has it"


async def test_a_single_shard_has_no_members_and_its_owner_does_not_look() -> None:
    async with Members("ab", 1) as scene:
        await scene.until(5)
        (owner,) = scene.owners()
        assert set(scene.server.leases) == {lease_name(0)}
        scene.kill({"a": "b", "b": "a"}[owner])
        before = scene.server.calls
        await scene.pass_time(4)
        assert scene.server.calls - before <= 2 * 4 / 0.4 + 2, "renewals alone, each there and back"


async def test_members_that_are_gone_for_long_are_removed() -> None:
    async with Members("ab", SHARDS) as scene:
        await scene.until(8)
        scene.kill("b")
        await scene.pass_time(FORGOTTEN_SECONDS + 5, step=0.5)
        members = [x for x in scene.server.leases.values() if MEMBER_LABEL in x["metadata"]["labels"]]
        assert [x["spec"]["holderIdentity"] for x in members] == [scene.all["a"].identity]


@pytest.mark.parametrize("seed", range(scaled(4, 80)))
async def test_no_two_are_ever_sure_of_one_shard_and_in_the_end_each_has_its_own(seed: int) -> None:
    async with Members("abc", 3, seed, slowness=0.3, losses=0.1) as scene:
        for minute in range(1, 6):
            one = scene.random.choice(list(scene.all.values()))
            one.paused_until = scene.time.now + scene.random.random() * 6
            scene.server.down = scene.random.random() < 0.2
            await scene.until(minute * 6.0)
        scene.server.down, scene.server.losses, scene.server.slowness = False, 0.0, 0.1
        await scene.pass_time(OUT_OF_TURN_SECONDS + 15, step=0.5)
        assert scene.owners() == rightful(scene)

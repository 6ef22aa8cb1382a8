"""Which process has the right to which shard, and what moves when one comes or goes."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from admitter.election.rendezvous import ranked, shard_of

MEMBERS = st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=8)
SHARDS = range(64)


@given(MEMBERS)
def test_every_shard_has_one_owner_on_which_all_agree(members: set[str]) -> None:
    for shard in SHARDS:
        order = ranked(members, shard)
        assert sorted(order) == sorted(members)
        assert order == ranked(sorted(members, reverse=True), shard)


@given(MEMBERS, st.data())
def test_a_member_that_leaves_moves_its_own_shards_and_no_others(
    members: set[str], data: st.DataObject
) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    left = members - {gone}
    for shard in SHARDS if left else ():
        order = ranked(members, shard)
        assert ranked(left, shard) == [member for member in order if member != gone]


def test_shards_and_trees_are_spread_evenly() -> None:
    owners = Counter(ranked(["a", "b", "c", "d"], shard)[0] for shard in SHARDS)
    assert min(owners.values()) >= 8
    trees = Counter(shard_of(f"tree-{number}", 8) for number in range(800))
    assert 60 <= min(trees.values()) <= max(trees.values()) <= 140


def test_what_a_name_hashes_to_never_changes() -> None:
    assert [shard_of(name, 8) for name in ("default", "research", "elastic-quota")] == [2, 4, 4]

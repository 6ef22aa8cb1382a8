"""Rendezvous hashing: which member has the right to which shard, without any agreement between them.

Of all members the one with the highest hash together with a shard has the right to it. So when a member comes
or goes, only the shards move that it gets or had.
"""

from collections.abc import Iterable
from hashlib import blake2b

_BYTES = 8


def _number(*words: object) -> int:
    """The same number for the same words, in every process."""
    digest = blake2b("\n".join(map(str, words)).encode(), digest_size=_BYTES).digest()
    return int.from_bytes(digest)


def shard_of(name: str, shard_count: int) -> int:
    """The shard, of so many, of the tree with a root of this name."""
    return _number(name) % shard_count


def ranked(members: Iterable[str], shard: int) -> list[str]:
    """Members by their right to a shard; the first one is to have it."""
    return sorted(members, key=lambda member: (_number(member, shard), member), reverse=True)

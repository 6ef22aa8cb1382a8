"""Who of several gets what, as all of them can tell without asking one another: rendezvous hashing.

Of all members the one whose hash with a shard is the highest has the right to it. So when a member comes or
goes, only the shards move that it gets or had.
"""

from collections.abc import Iterable
from hashlib import blake2b

_BYTES = 8


def _number(*words: object) -> int:
    """The same number for the same words, in every process."""
    digest = blake2b("\n".join(map(str, words)).encode(), digest_size=_BYTES).digest()
    return int.from_bytes(digest)


def shard_of(name: str, number: int) -> int:
    """Which of so many shards something of a name belongs to."""
    return _number(name) % number


def ranked(members: Iterable[str], shard: int) -> list[str]:
    """Members by their right to a shard; the first one is to have it."""
    return sorted(members, key=lambda member: (_number(member, shard), member), reverse=True)

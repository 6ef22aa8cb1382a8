"""Whether a controller decides, as its Leases say: in a sentence for people, and as JSON for programs.

An answer that is computed from a snapshot says what a controller would do. Without a controller nothing of it
happens, so each answer about a cluster says that too. Previous step: `admitter.insight.lease_watch`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from admitter.election.rendezvous import shard_of
from admitter.insight.stamps import spell, stamp
from admitter.names import NAMESPACE

Json = dict[str, Any]

SHOWN: Final = 3
"""Shards, controllers and trees that a sentence names; the others are counted."""
REMEDY: Final = (
    f"Nothing is admitted until one runs: kubectl get deployment,pods -n {NAMESPACE} shows that of the "
    "installation, and admitter run starts one by hand."
)
REMEDY_OF_SHARDS: Final = (
    f"Nothing is admitted there until one takes over: kubectl get pods -n {NAMESPACE} shows the replicas."
)


class ControllerState(StrEnum):
    """Whether a controller decides."""

    LEADING = "Leading"  # one decides, or one about each shard
    PARTIAL = "Partial"  # of some shards no controller decides
    ABSENT = "Absent"  # none decides about anything
    UNKNOWN = "Unknown"  # the Leases can't be read, or have not been looked at for long enough


@dataclass(frozen=True, slots=True)
class ShardLease:
    """The Lease of one shard, as it was seen."""

    shard: int
    name: str  # of the Lease
    # whether a controller holds and renews it; None: it has not been looked at for long enough
    alive: bool | None
    exists: bool = True  # whether there is such a Lease
    holder: str = ""  # the identity of the process that holds it, or held it last; empty: it is not known
    released: bool = False  # whether that process has handed it over, and no other has taken it
    # since when its holder has it, in seconds since the epoch by the holder's clock
    since: float | None = None
    renewed: float | None = None  # when it was renewed or handed over last, likewise


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """Which controllers decide."""

    shards: tuple[ShardLease, ...]  # the Lease of each shard; empty if they can't be read
    seen: float  # when the Leases were as they are here, in seconds since the epoch
    problem: str = ""  # why nothing is known; empty if something is
    count: int = 1  # the number of shards

    @property
    def state(self) -> ControllerState:
        alive = [each.alive for each in self.shards]
        if self.problem or None in alive:
            return ControllerState.UNKNOWN
        if all(alive):
            return ControllerState.LEADING
        return ControllerState.PARTIAL if any(alive) else ControllerState.ABSENT

    @property
    def lacks_decisions(self) -> bool:
        """Whether there is something about which no controller decides."""
        return self.state in {ControllerState.PARTIAL, ControllerState.ABSENT}

    def about(self, root: str) -> "ControllerStatus":
        """Of the shard alone that decides about the tree with a root of this name; empty: of shard 0."""
        number = shard_of(root, self.count) if root and self.count > 1 else 0
        return replace(self, shards=tuple(each for each in self.shards if each.shard == number))

    def sentence(self, roots: Iterable[str] = ()) -> str:
        """Which controller leads and since when, or that none decides and what to do about it.

        It names those of these roots of trees that no controller decides about.
        """
        if self.problem:
            return f"Whether a controller runs is unknown: {self.problem}"
        match self.state:
            case ControllerState.UNKNOWN:
                return "Whether a controller runs is not known yet: its Lease is being looked at."
            case ControllerState.LEADING:
                return self._leading()
            case _:
                return self._lacking(roots)

    def _leading(self) -> str:
        if len(self.shards) == 1:
            (only,) = self.shards
            about = f" shard {only.shard} of {self.count}" if self.count > 1 else ""
            return f"Controller {only.holder} leads{about}{_since(only.since, self.seen)}."
        led: defaultdict[str, list[str]] = defaultdict(list)
        for each in self.shards:
            led[each.holder].append(str(each.shard))
        who = [f"{holder} ({', '.join(shards)})" for holder, shards in led.items()]
        return f"All {self.count} shards have a leader: {_some(who)}."

    def _lacking(self, roots: Iterable[str]) -> str:
        lost = [each for each in self.shards if not each.alive]
        if self.count == 1:
            (only,) = lost
            if not only.exists:
                return f"No controller has run here yet: there is no {_title(only)}. {REMEDY}"
            return f"No controller decides: {_title(only)} {_fate(only, self.seen)}. {REMEDY}"
        trees = [root for root in roots if shard_of(root, self.count) in {each.shard for each in lost}]
        named = f" Trees without a controller: {_some(trees)}." if trees else ""
        if len(lost) == self.count:
            newest = max(lost, key=lambda each: each.renewed or 0.0)
            which = f"No controller decides about any of {self.count} shards"
            return f"{which}: {_title(newest)} {_fate(newest, self.seen)}. {REMEDY}"
        fates = [f"{each.shard} ({_title(each)} {_fate(each, self.seen)})" for each in lost]
        which = f"No controller decides about {'shard' if len(lost) == 1 else 'shards'} {_some(fates)}"
        return f"{which}, of {self.count}.{named} {REMEDY_OF_SHARDS}"

    def as_json(self, roots: Iterable[str] = ()) -> Json:
        """The same for programs. Holder and times are those of the only shard; of several, null."""
        only = self.shards[0] if len(self.shards) == 1 else None
        return {
            "state": self.state,
            "message": self.sentence(roots),
            "holder": (only.holder or None) if only is not None else None,
            "since": _stamp(only.since) if only is not None else None,
            "renewed": _stamp(only.renewed) if only is not None else None,
            "shards": list(self._shards_json()),
        }

    def _shards_json(self) -> Iterator[Json]:
        for each in self.shards:
            yield {
                "shard": each.shard,
                "lease": f"{NAMESPACE}/{each.name}",
                "leading": each.alive,
                "holder": each.holder or None,
                "since": _stamp(each.since),
                "renewed": _stamp(each.renewed),
            }


def _title(lease: ShardLease) -> str:
    return f"Lease {NAMESPACE}/{lease.name}"


def _fate(lease: ShardLease, now: float) -> str:
    """What has become of a Lease that no controller renews."""
    if not lease.exists:
        return "does not exist"
    by = f" by {lease.holder}" if lease.holder else ""
    if lease.renewed is None:
        return f"is not renewed{by}"
    did = "was handed over" if lease.released else "was last renewed"
    ago = f"{spell(now - lease.renewed)} ago" if lease.renewed < now else f"at {_moment(lease.renewed, now)}"
    return f"{did} {ago}{by}" + (", and no other controller has taken it" if lease.released else "")


def _since(since: float | None, now: float) -> str:
    if since is None:
        return ""
    return f" since {_moment(since, now)}" + (f" ({spell(now - since)})" if since < now else "")


def _moment(time: float, now: float) -> str:
    """A moment, with its day unless that is today."""
    then, today = datetime.fromtimestamp(time, UTC), datetime.fromtimestamp(now, UTC)
    return f"{then:%H:%M} UTC" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M} UTC"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _stamp(moment: float | None) -> str | None:
    return stamp(moment) if moment is not None else None

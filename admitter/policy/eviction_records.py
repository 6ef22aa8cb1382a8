"""The record of evictions in a ClusterQueue's status, which limits count (docs/design/eviction-limits.md)."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from admitter.api.eviction_limits import MOST_EVICTIONS_OF_QUEUE
from admitter.cache.timestamps import seconds
from admitter.cache.views import Json, ObjectView, at, timestamp
from admitter.cache.world import World
from admitter.client.store import either
from admitter.engine.commands import SetEvictions
from admitter.engine.cycle import Engine
from admitter.engine.quota.evictions import Past

FIELD: Final = "evictions"
LEAD_SECONDS: Final = 1
"""An eviction is to begin so long after it is recorded; else it is recorded again."""


def record_of(status: Mapping[str, Any]) -> Past:
    """The record in a status, the oldest eviction first."""
    raw = status.get(FIELD)
    return tuple(sorted((seconds(each["at"]), str(each["uid"])) for each in raw)) if raw else ()


def written_record(record: Past) -> list[Json]:
    """A record as a status has it, as far as it is kept."""
    return [{"at": timestamp(at(when)), "uid": uid} for when, uid in record[-MOST_EVICTIONS_OF_QUEUE:]]


def begins_at(now: float) -> float:
    """When an eviction that is recorded now begins at the latest: a whole second."""
    return float(ceil(now) + LEAD_SECONDS)


def take_record(engine: Engine, old: ObjectView | None, new: ObjectView | None) -> bool:
    """Let an engine know the record of a ClusterQueue; returns whether that could make a difference."""
    known, told = (each.status.get(FIELD) if each is not None else None for each in (old, new))
    if known == told:
        return False
    engine.apply(SetEvictions(either(old, new).name, record_of(new.status) if new is not None else ()))
    return True


def any_limits(world: World) -> bool:
    """Whether any ClusterQueue or Cohort limits the evictions of all Workloads that it has."""
    stores = (world.cluster_queues, world.cohorts)
    return any((view.spec.get("preemption") or {}).get("maxEvictions") for store in stores for view in store)


def note_eviction(engine: Engine, queue: str, uid: str, now: float) -> None:
    """Let an engine know of an eviction that begins now, where limits count it."""
    if engine.tree.limiting(queue):
        known = engine.ledger.evictions.of(queue)
        engine.apply(SetEvictions(queue, (*known, (now, uid))[-MOST_EVICTIONS_OF_QUEUE:]))

"""StatefulSets with the label of a queue: once one is scaled, its pods do not tell how many it is to have."""

from dataclasses import dataclass

from admitter.cache.views import Json, Meta, meta


@dataclass(frozen=True, slots=True)
class StatefulSetView(Meta):
    """A StatefulSet, of which only the number of its pods counts."""

    replicas: int


def parse_stateful_set(raw: Json) -> StatefulSetView:
    replicas = (raw.get("spec") or {}).get("replicas")
    return StatefulSetView(*meta(raw["metadata"]), replicas=1 if replicas is None else replicas)

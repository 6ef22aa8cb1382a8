"""What is wrong with an object that an administrator wrote, as its condition `Active` says it."""

from typing import Final

from admitter.api.base import R, checked
from admitter.api.conditions import ActiveReason
from admitter.cache.views import ObjectView
from admitter.client.store import Key, Store

Defect = tuple[ActiveReason, str]  # a reason, and a sentence

HARMLESS: Final = frozenset(
    {
        *(ActiveReason.NAMESPACE_NOT_FOUND, ActiveReason.NAMESPACE_NOT_MANAGED),
        ActiveReason.LOCAL_QUEUE_TAKEN,
    }
)
"""Defects of an elastic quota or a ClusterQueue with which it is in force all the same."""


def parsed(kind: type[R], view: ObjectView) -> tuple[R | None, Defect | None]:
    """An object as its model reads it, or all that is wrong with it."""
    made, found = checked(kind, {"metadata": {"name": view.name}, "spec": view.spec})
    return made, (ActiveReason.INVALID_SPEC, "; ".join(map(str, found))) if found else None


def unreadable(store: Store[ObjectView], key: Key) -> Defect | None:
    """That the newest version of an object can't be read, if so: what was known of it stays in force."""
    found = store.unreadable.get(key)
    return (ActiveReason.UNREADABLE, found.words) if found is not None else None

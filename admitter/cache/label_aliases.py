"""What labels say that have two names: Admitter's own, and that of another system."""

from collections.abc import Mapping
from sys import intern
from typing import Any

from admitter.names import (
    CAPACITY_ALIAS_LABEL,
    CAPACITY_LABEL,
    PRIORITY_CLASS_ALIAS_LABEL,
    PRIORITY_CLASS_LABEL,
)


def named_class(metadata: Mapping[str, Any]) -> str:
    """The WorkloadPriorityClass that the labels of an object name; empty if they name none."""
    labels = metadata.get("labels") or {}
    return intern(labels.get(PRIORITY_CLASS_LABEL) or labels.get(PRIORITY_CLASS_ALIAS_LABEL) or "")


def capacity(metadata: Mapping[str, Any]) -> str:
    """What an object's labels say of its capacity; nothing if they do not agree."""
    labels = metadata.get("labels") or {}
    said = {labels.get(CAPACITY_LABEL, ""), labels.get(CAPACITY_ALIAS_LABEL, "")}
    return said.pop() if len(said) == 1 else ""

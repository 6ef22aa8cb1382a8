"""What pods request beside what they say: defaults of LimitRanges, and the overhead of RuntimeClasses."""

from typing import Final

import orjson

from admitter.cache.views import ObjectView
from admitter.client.store import Index, Store

NONE: Final = b"[]"
"""No LimitRanges."""


class RequestRules:
    """The rules as JSON: they are the same for all Jobs of a namespace until one of them changes."""

    def __init__(self, limit_ranges: Store[ObjectView], runtime_classes: Store[ObjectView]) -> None:
        self._limit_ranges, self._runtime_classes = limit_ranges, runtime_classes
        self._by_namespace = Index(limit_ranges, lambda each: each.namespace)
        self._limits: dict[str, bytes] = {}  # by namespace, of those that have some
        self._classes: bytes | None = None
        # after the index, so that nothing is made of what it was before
        limit_ranges.listen(lambda _old, _new: self._limits.clear())
        runtime_classes.listen(self._class_changed)

    def limits_in(self, namespace: str) -> bytes:
        """The specs of the LimitRanges of a namespace."""
        found = self._limits.get(namespace)
        if found is None:
            ranges = map(self._limit_ranges.get, self._by_namespace.get(namespace))
            specs = [each.spec for each in ranges if each is not None]
            if not specs:
                return NONE  # as of most namespaces, which may be many
            found = self._limits[namespace] = orjson.dumps(specs)
        return found

    @property
    def classes(self) -> bytes:
        """All RuntimeClasses by name."""
        if self._classes is None:
            self._classes = orjson.dumps({each.name: each.body for each in self._runtime_classes})
        return self._classes

    def _class_changed(self, _old: ObjectView | None, _new: ObjectView | None) -> None:
        self._classes = None

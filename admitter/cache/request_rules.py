"""What pods request beside what they say: defaults of LimitRanges, and the overhead of RuntimeClasses."""

import orjson

from admitter.cache.views import ObjectView
from admitter.client.store import Index, Store


class RequestRules:
    """The rules by namespace, as JSON: they are the same for all Jobs of it until one of them changes."""

    def __init__(self, limit_ranges: Store[ObjectView], runtime_classes: Store[ObjectView]) -> None:
        self._limit_ranges, self._runtime_classes = limit_ranges, runtime_classes
        self._by_namespace = Index(limit_ranges, lambda each: each.namespace)
        self._known: dict[str, tuple[bytes, bytes]] = {}
        for store in (limit_ranges, runtime_classes):
            store.listen(self._changed)  # after the index, so that none is made of what it was before

    def of(self, namespace: str) -> tuple[bytes, bytes]:
        """The specs of the LimitRanges of a namespace, and all RuntimeClasses by name."""
        found = self._known.get(namespace)
        if found is None:
            ranges = map(self._limit_ranges.get, self._by_namespace.get(namespace))
            limits = [each.spec for each in ranges if each is not None]
            classes = {each.name: each.body for each in self._runtime_classes}
            found = self._known[namespace] = (orjson.dumps(limits), orjson.dumps(classes))
        return found

    def _changed(self, _old: ObjectView | None, _new: ObjectView | None) -> None:
        self._known.clear()

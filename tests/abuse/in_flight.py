"""Changes objects between the API server and those that read it, past every schema and policy."""

from collections import Counter
from typing import Any, Final

import orjson

from tests.abuse.mutator import mutated
from tests.abuse.samples import MARK

Json = dict[str, Any]

MOST_KEPT: Final = 500
"""So many changed versions are kept: more than one process reads each."""
_MARKED: Final = (MARK, *(f"{kind}-{MARK}" for kind in ("job", "experiment", "pod", "podgroup")))
"""Beginnings of the names of objects that are changed, and of what is made for them."""


class InFlight:
    """What a proxy passes on instead of answers and events (`tests.faults.streams.Change`).

    The same version of an object is always changed in the same way. What tells the end of an object, or where
    a watch stands, is passed on as it is: without these no watch means anything.

    Attributes:
        classes: how often each class of changes was passed on.
        objects: how many versions of objects were.
        names: of the objects.
    """

    def __init__(self, seed: int) -> None:
        """Prepare.

        Args:
            seed: of all changes.
        """
        self.classes: Counter[str] = Counter()
        self.objects = 0
        self.names: set[str] = set()
        self._seed = seed
        self._made: dict[str, bytes] = {}

    def __call__(self, path: str, text: bytes) -> bytes:
        """An event or an answer as it is passed on."""
        if MARK.encode() not in text or "/events" in path:
            return text
        try:
            read: Json = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text  # the API server itself says something else than JSON
        if "items" in read:
            return self._list(read)
        if read.keys() == {"type", "object"}:
            return self._event(read, text)
        return self._changed(read) if _is_marked(read) else text

    def _list(self, read: Json) -> bytes:
        items = [self._changed(each) if _is_marked(each) else orjson.dumps(each) for each in read["items"]]
        around = orjson.dumps(read | {"items": []})
        return around.replace(b'"items":[]', b'"items":[' + b",".join(items) + b"]")

    def _event(self, read: Json, text: bytes) -> bytes:
        if read["type"] not in {"ADDED", "MODIFIED"} or not _is_marked(read["object"]):
            return text
        kind: str = read["type"]
        return b'{"type":"' + kind.encode() + b'","object":' + self._changed(read["object"]) + b"}"

    def _changed(self, valid: Json) -> bytes:
        metadata = valid["metadata"]
        seed = f"{self._seed}-{metadata['name']}-{metadata['resourceVersion']}"
        known = self._made.get(seed)
        if known is not None:
            return known
        made = mutated(valid, seed)
        if len(self._made) > MOST_KEPT:
            self._made.clear()
        self._made[seed] = made.text
        self.classes.update(made.classes)
        self.objects += 1
        self.names.add(metadata["name"])
        return made.text


def _is_marked(read: Json) -> bool:
    return str(read.get("metadata", {}).get("name", "")).startswith(_MARKED)

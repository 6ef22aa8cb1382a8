"""Objects that describe pods of others, such as runtimes of TrainJobs, and how much of them is kept.

What expressions and paths can use is kept, as text, and only so much of it as there is room for.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import orjson

from admitter.api.forms import DESCRIBED, fitted
from admitter.cache.room import fits
from admitter.cache.views import LONGEST_TEMPLATE, Meta, meta
from admitter.client.source import Source
from admitter.client.store import Key
from admitter.kinds import KindError

Json = dict[str, Any]

_METADATA: Final = ("name", "namespace", "labels", "annotations")
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The object once more."""


@dataclass(frozen=True, slots=True)
class RelatedView(Meta):
    """An object, as JSON without its status; empty if there is no room for it, or it is too long."""

    text: bytes
    size: int  # bytes of the text, or of what it would be

    def content(self, kind: str) -> Json:
        """The object, which is of this kind.

        Raises:
            KindError: it is not kept.
        """
        if not self.text:
            said = f"{kind} {self.name}, which its pods are described by, takes {self.size} bytes"
            if self.size > LONGEST_TEMPLATE:
                raise KindError(f"{said}, and at most {LONGEST_TEMPLATE} are read")
            raise KindError(f"{said}, and the others leave it no room")
        found: Json = orjson.loads(self.text)
        return found


def parse_related(raw: Json) -> RelatedView:
    """The view of an object; ValueError if it can't be written."""
    metadata = {name: value for name, value in raw["metadata"].items() if name in _METADATA}
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _APPLIED}
    try:
        text = orjson.dumps({k: v for k, v in raw.items() if k != "status"} | {"metadata": metadata})
    except TypeError as error:
        raise ValueError(str(error)) from error
    return RelatedView(*meta(raw["metadata"]), text if len(text) <= LONGEST_TEMPLATE else b"", len(text))


def source_of_related(path: str) -> Source[RelatedView]:
    """What is read of the objects of a collection."""
    return Source(path, parse_related, fitted=partial(fitted, DESCRIBED))


class RelatedRoom:
    """The room that there is for all of them together, of which each namespace has a part."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Key], int] = {}  # bytes that are kept, by collection and object
        self._of: Counter[str] = Counter()  # the same, by namespace

    def keep(self, path: str, view: RelatedView) -> RelatedView:
        """An object of a collection, as far as there is room for it."""
        self.free(path, view.key)
        if not view.text or not self.has(view):
            return replace(view, text=b"")
        self._held[path, view.key] = view.size
        self._of[view.namespace] += view.size
        return view

    def free(self, path: str, key: Key) -> None:
        """An object of a collection is not kept any more."""
        self._of[key[0]] -= self._held.pop((path, key), 0)
        if not self._of[key[0]]:
            del self._of[key[0]]

    def has(self, view: RelatedView) -> bool:
        """Whether there is room for an object that is not kept."""
        held = (self._of[view.namespace], self._of.total())
        return view.size <= LONGEST_TEMPLATE and fits(*held, view.size)

"""What is read of the API server: a collection, how its objects are parsed, and where they are kept.

A module that follows a source imports `admitter.client.informer`. Nothing here needs a network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic

from admitter.client.errors import UnreadableError
from admitter.client.store import Rest, Store, Unreadable, V

Json = dict[str, Any]

LONGEST_WORDS: Final = 300
"""Characters of what is said of an object that can't be read."""


@dataclass(frozen=True, slots=True)
class Source(Generic[V]):
    """A collection of the API server, and the store for what is in it.

    This is the one place where an object is read: whatever is wrong with it, it is noted in the store, and no
    other object is harmed.
    """

    path: str  # of the collection, such as `/apis/batch/v1/jobs`
    parse: Callable[[Json], V]  # keeps the fields that are used
    selector: str = ""  # a label selector, to watch less than everything
    name: str = ""  # the name of the only object that is read; empty: all are
    optional: bool = False  # whether the API server may lack the kind: there is none of it then
    store: Store[V] = field(default_factory=Store)
    # the object with all fields that are used as they have to be; ValueError if they are not
    fitted: Callable[[Json], Json] = lambda raw: raw
    # what is to be known of an object that can't be read instead of what was; None: that stays
    rest: Callable[[Json, V | None], V | None] = lambda _raw, _old: None

    @property
    def query(self) -> dict[str, str]:
        """The selectors, as calls have them."""
        found = {"labelSelector": self.selector} if self.selector else {}
        return found | ({"fieldSelector": f"metadata.name={self.name}"} if self.name else {})

    def read(self, raw: Json) -> V:
        """The view of an object; UnreadableError if it can't be read."""
        try:
            return self.parse(self.fitted(raw))
        except ValueError as error:
            words = str(error)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one object
            import structlog  # noqa: PLC0415  # slow to load, and hardly ever needed

            structlog.get_logger(__name__).exception("an object breaks its parser", path=self.path)
            words = f"{type(error).__name__}: {error}"
        raise UnreadableError(words[:LONGEST_WORDS])

    def seen(self, raw: Json) -> V | Unreadable | None:
        """The view of an object, or that it can't be read; None if not even its name can."""
        try:
            return self.read(raw)
        except UnreadableError as error:
            return self._unreadable(raw, str(error))

    def take(self, raw: Json) -> V:
        """Take an object into the store; returns its view. If it can't be read, that is noted and raised."""
        try:
            view = self.read(raw)
        except UnreadableError as error:
            unreadable = self._unreadable(raw, str(error))
            if unreadable is not None:
                self.store.mark_unreadable(unreadable, self.rest_of(raw))
            raise
        self.store.apply(view)
        return view

    def rest_of(self, raw: Json) -> Rest[V]:
        """What is to be known of an object that can't be read."""

        def rest(old: V | None) -> V | None:
            try:
                return self.rest(raw, old)
            except Exception:  # noqa: BLE001  # whatever is wrong with one object
                return None

        return rest

    def _unreadable(self, raw: Json, words: str) -> Unreadable | None:
        import structlog  # noqa: PLC0415  # slow to load, and hardly ever needed

        log = structlog.get_logger(__name__)
        try:
            metadata = raw["metadata"]
            key, uid = self.store.key_of(metadata), metadata["uid"]
            version = int(metadata["resourceVersion"])
            readable = all(isinstance(text, str) for text in (*key, uid))
        except (KeyError, TypeError, ValueError, AttributeError):
            readable = False
        if not readable:
            log.warning("an object without a readable name is left out", path=self.path, error=words)
            return None
        known = self.store.unreadable.get(key)
        if known is None or (known.uid, known.words) != (uid, words):
            log.warning("an object can't be read", path=self.path, namespace=key[0], name=key[1], error=words)
        return Unreadable(key, uid, version, words)

"""What the controller knows of one kind: the newest version seen of every object.

Watch events and the answers to the controller's own writes both end here. Resource versions of
one kind grow, so an older version never replaces a newer one, and the controller sees its own
writes at once instead of deciding again on what it has just changed.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from admitter.client.signal import Signal

Key = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is empty."""


class View(Protocol):
    """The fields of an object that are used, parsed."""

    @property
    def key(self) -> Key: ...

    @property
    def uid(self) -> str: ...

    @property
    def version(self) -> int:
        """The object's resource version."""


def key_of(metadata: Mapping[str, Any]) -> Key:
    return (metadata.get("namespace", ""), metadata["name"])


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object of which the newest version can't be read; the words say which field is wrong, and why."""

    key: Key
    uid: str
    version: int
    words: str


V = TypeVar("V", bound=View)
Rest = Callable[[V | None], V | None]
"""From what was known of an object that can't be read any more, to what is to be known of it instead."""
Listener = Callable[[V | None, V | None], None]
"""Called with the old and the new view of an object; `None` is: there was none, there is none."""

_REMEMBERED_DELETIONS: Final = 10_000


def either(old: V | None, new: V | None) -> V:
    """The view of an object after a change, or before it if the object is gone."""
    view = new if new is not None else old
    assert view is not None, "a change has a before or an after"
    return view


class Store(Generic[V]):
    """Objects of one kind by key, and the listeners to their changes."""

    def __init__(
        self,
        remembered: int = _REMEMBERED_DELETIONS,
        key_of: Callable[[Mapping[str, Any]], Key] = key_of,
    ) -> None:
        """Begin with nothing, and remember so many deletions.

        A write's answer may arrive after the event of the object's deletion, and must not bring it back; a
        store of a process that never writes needs none. `key_of` gives the key of the view of an object with
        some metadata.
        """
        self.key_of = key_of
        self.version = 0  # the newest resource version that anything has been heard of at
        # whether changes come from a whole list now, so that there may have been others between them
        self.listing = False
        # what of an object is kept; asked again for the same version it must say the same
        self.keep: Callable[[V], V] = lambda view: view
        # objects of which the newest version can't be read. What was known of such an object before stays in
        # force until it can be read again or is gone
        self.unreadable: dict[Key, Unreadable] = {}
        # an object can't be read, or can again, or is gone
        self.unreadable_changed: Signal[[Unreadable]] = Signal()
        self._listed = 0
        self._objects: dict[Key, V] = {}
        self._listeners: list[Listener[V]] = []
        self._remembered = remembered
        self._deleted: OrderedDict[str, None] = OrderedDict()

    def listen(self, listener: Listener[V]) -> None:
        self._listeners.append(listener)

    def follow(self, listener: Listener[V]) -> None:
        """Call `listener` with each object that there is, and at every change from now on."""
        for view in self:
            listener(None, view)
        self.listen(listener)

    def include(self, part: "Store[V]") -> None:
        """Have what another store has too, which has none of the keys that are here."""
        part.follow(self._included)
        part.unreadable_changed.listen(lambda now: self._included_unreadable(now, part.unreadable))

    def _included(self, old: V | None, new: V | None) -> None:
        if new is not None:
            self._objects[new.key] = new
        elif old is not None:
            self._objects.pop(old.key, None)
        self._notify(old, new)

    def _included_unreadable(self, now: Unreadable, unreadable: Mapping[Key, Unreadable]) -> None:
        if now.key in unreadable:
            self.unreadable[now.key] = now
        else:
            self.unreadable.pop(now.key, None)
        self.unreadable_changed(now)

    def get(self, key: Key) -> V | None:
        return self._objects.get(key)

    def knows(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a version of an object is known, or a newer one."""
        try:
            key, version = self.key_of(metadata), int(metadata["resourceVersion"])
            found = (self._objects.get(key), self.unreadable.get(key))
        except (KeyError, TypeError, ValueError, AttributeError):
            return False  # its name can't be read
        return any(known is not None and known.version >= version for known in found)

    def __iter__(self) -> Iterator[V]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def apply(self, view: V) -> None:
        """Take in a version of an object, unless a newer one or its deletion is known."""
        old = self._objects.get(view.key)
        known = old.version if old is not None else self._listed  # what a list lacks was gone by then
        if view.uid in self._deleted or known >= view.version:
            return
        self.version = max(self.version, view.version)
        if old is not None and old.uid != view.uid:
            self._forget(old)
            old = None
        corrected = self.unreadable.get(view.key)
        if corrected is not None and corrected.version < view.version:
            del self.unreadable[view.key]
        self._put(old, view)
        if corrected is not None:
            self.unreadable_changed(corrected)

    def mark_unreadable(self, now: Unreadable, rest: "Rest[V]") -> None:
        """Take in that an object can't be read any more: what was known of it stays in force.

        Unless `rest` says what is to be known of it instead of what was known before.
        """
        old = self._objects.get(now.key)
        before = self.unreadable.get(now.key)
        known = old.version if old is not None else self._listed
        known = max(known, before.version) if before is not None else known
        if now.uid in self._deleted or known >= now.version:
            return
        self.version = max(self.version, now.version)
        if old is not None and old.uid != now.uid:
            self._forget(old)
            old = None
        self.unreadable[now.key] = now
        instead = rest(old)
        if instead is not None:
            self._put(old, instead)
        self.unreadable_changed(now)

    def take_again(self, view: V) -> None:
        """Take in an object of which less was kept until now, if it is still known in no newer version."""
        old = self._objects.get(view.key)
        if old is not None and old.uid == view.uid and old.version <= view.version:
            self._put(old, view)

    def _put(self, old: V | None, view: V) -> None:
        kept = self._objects[view.key] = self.keep(view)
        self._notify(old, kept)

    def delete(self, key: Key, uid: str) -> None:
        """Take in an object's deletion; one of an earlier object of the same name is known already."""
        self._remember(uid)
        self._corrected(key, uid)
        old = self._objects.get(key)
        if old is not None and old.uid == uid:
            self._forget(old)

    def _corrected(self, key: Key, uid: str) -> None:
        known = self.unreadable.get(key)
        if known is not None and known.uid == uid:
            del self.unreadable[key]
            self.unreadable_changed(known)

    def replace(
        self, views: list[V], version: int, unreadable: "Iterable[tuple[Unreadable, Rest[V]]]" = ()
    ) -> None:
        """Take in a whole list: what it lacks, and is not newer than the list, is gone.

        What can't be read exists too; `mark_unreadable` takes it. The version is that of the list.
        """
        self.listing = True
        unreadable_now = list(unreadable)
        listed = {view.key for view in views} | {each.key for each, _ in unreadable_now}
        for each in [u for u in self.unreadable.values() if u.key not in listed and u.version <= version]:
            self._corrected(each.key, each.uid)
        for old in [v for v in self._objects.values() if v.key not in listed and v.version <= version]:
            self._remember(old.uid)
            self._forget(old)
        for view in views:
            self.apply(view)
        for now, rest in unreadable_now:
            self.mark_unreadable(now, rest)
        self._listed, self.listing = version, False
        self.heard(version)

    def clear(self) -> None:
        """Know nothing any more, though all of it may be there still."""
        for each in list(self.unreadable.values()):
            self._corrected(each.key, each.uid)
        for old in list(self._objects.values()):
            self._forget(old)

    def heard(self, version: int) -> None:
        """Everything is known up to a resource version."""
        self.version = max(self.version, version)

    def _forget(self, old: V) -> None:
        del self._objects[old.key]
        self._notify(old, None)

    def _remember(self, uid: str) -> None:
        self._deleted[uid] = None
        if len(self._deleted) > self._remembered:
            self._deleted.popitem(last=False)

    def _notify(self, old: V | None, new: V | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:  # a defect that one object brings out must not end the watch of all others
                import structlog  # noqa: PLC0415  # slow to load, and hardly ever needed

                log = structlog.get_logger(__name__)
                log.exception("change not handled", old=old and old.key, new=new and new.key)


class Index(Generic[V]):
    """The keys of a store's objects by something that they have, kept up to date; None leaves one out."""

    def __init__(self, store: Store[V], by: Callable[[V], Hashable | None]) -> None:
        self._by = by
        self._keys: defaultdict[Hashable, set[Key]] = defaultdict(set)
        store.follow(self._changed)

    def get(self, value: Hashable) -> list[Key]:
        """The keys of all objects that have the value, in order."""
        return sorted(self._keys.get(value, ()))

    def _changed(self, old: V | None, new: V | None) -> None:
        before = self._by(old) if old is not None else None
        after = self._by(new) if new is not None else None
        if before == after:
            return
        if old is not None and before is not None:
            self._keys[before].discard(old.key)
            if not self._keys[before]:
                del self._keys[before]
        if new is not None and after is not None:
            self._keys[after].add(new.key)


class Lookup(Generic[V]):
    """The key of the one object in a store that has something, kept up to date; no two have it at a time."""

    def __init__(self, store: Store[V], by: Callable[[V], Hashable]) -> None:
        self._by = by
        self._keys: dict[Hashable, Key] = {}
        store.follow(self._changed)

    def get(self, value: Hashable) -> Key | None:
        return self._keys.get(value)

    def _changed(self, old: V | None, new: V | None) -> None:
        if old is not None and (new is None or self._by(old) != self._by(new)):
            self._keys.pop(self._by(old), None)
        if new is not None:
            self._keys[self._by(new)] = new.key

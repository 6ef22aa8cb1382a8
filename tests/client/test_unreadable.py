"""An object that can't be read is noted, stays what it was, and is not taken for one that is gone."""

from typing import Any

import pytest

from admitter.cache.views import ObjectView, parse_object
from admitter.client.errors import UnreadableError
from admitter.client.source import Source
from admitter.client.store import Unreadable
from tests.client.faulty_server import thing

Json = dict[str, Any]
KEY = ("ns", "a")


class Followed:
    """A source with objects that can be read unless they say that they can't.

    Attributes:
        seen: versions before and after each change.
        invalid: the words of what could not be read, in order, and of what has ended.
    """

    def __init__(self) -> None:
        self.source: Source[ObjectView] = Source("/things", parse_object, fitted=self._fitted)
        self.store = self.source.store
        self.seen: list[tuple[int | None, int | None]] = []
        self.invalid: list[tuple[int, bool]] = []
        self.store.listen(lambda old, new: self.seen.append((old and old.version, new and new.version)))  # type: ignore[arg-type]
        self.store.unreadable_changed.listen(self._note)

    def _note(self, unreadable: Unreadable) -> None:
        self.invalid.append((unreadable.version, unreadable.key in self.store.unreadable))

    @staticmethod
    def _fitted(raw: Json) -> Json:
        if "invalid" in raw:
            raise ValueError(raw["invalid"])
        return raw

    def take(self, raw: Json) -> None:
        found = self.source.seen(raw)
        if isinstance(found, Unreadable):
            self.store.mark_unreadable(found, self.source.rest_of(raw))
        elif found is not None:
            self.store.apply(found)


def invalid(name: str, version: int, **metadata: str) -> Json:
    return thing(name, version, **metadata) | {"invalid": "spec.count: is a text"}


def test_what_was_known_stays_until_it_can_be_read_again() -> None:
    followed = Followed()
    followed.take(thing("a", 5))
    followed.take(invalid("a", 6))
    known = followed.store.get(KEY)
    assert known is not None
    assert known.version == 5
    assert followed.store.unreadable[KEY].words == "spec.count: is a text"
    followed.take(thing("a", 7))
    assert not followed.store.unreadable
    assert followed.seen == [(None, 5), (5, 7)]
    assert followed.invalid == [(6, True), (6, False)]


def test_one_that_is_deleted_is_gone_whether_it_could_be_read_or_not() -> None:
    followed = Followed()
    followed.take(thing("a", 5))
    followed.take(invalid("a", 6))
    followed.store.delete(KEY, "uid-a")
    assert (len(followed.store), followed.store.unreadable) == (0, {})
    followed.take(invalid("a", 6))
    assert followed.store.unreadable == {}, "an event that comes late"


def test_another_object_of_the_name_ends_the_one_before() -> None:
    followed = Followed()
    followed.take(thing("a", 5))
    followed.take(invalid("a", 6, uid="another"))
    assert len(followed.store) == 0
    assert followed.store.unreadable[KEY].uid == "another"


def test_a_list_does_not_lose_what_it_can_not_read() -> None:
    followed = Followed()
    followed.take(thing("a", 5))
    followed.take(invalid("gone", 6))
    raw = invalid("a", 7)
    found = followed.source.seen(raw)
    assert isinstance(found, Unreadable)
    followed.store.replace([], 9, [(found, followed.source.rest_of(raw))])
    assert [view.name for view in followed.store] == ["a"]
    assert followed.store.unreadable.keys() == {KEY}


def test_an_older_version_and_an_echo_change_nothing() -> None:
    followed = Followed()
    followed.take(thing("a", 5))
    followed.take(invalid("a", 4))
    assert followed.store.unreadable == {}
    followed.take(invalid("a", 6))
    assert followed.store.knows(invalid("a", 6)["metadata"])
    assert not followed.store.knows(invalid("a", 7)["metadata"])


def test_an_answer_that_can_not_be_read_is_noted_and_raised() -> None:
    followed = Followed()
    with pytest.raises(UnreadableError, match="is a text"):
        followed.source.take(invalid("a", 6))
    assert followed.store.unreadable.keys() == {KEY}


@pytest.mark.parametrize("name", [None, [], {}, 7])
def test_one_without_a_readable_name_is_left_out(name: object) -> None:
    raw = thing("a", 6)
    raw["metadata"]["name"] = name
    followed = Followed()
    followed.take(raw | {"invalid": "metadata.name: is no text"})
    assert (len(followed.store), followed.store.unreadable) == (0, {})
    assert not followed.store.knows(raw["metadata"])

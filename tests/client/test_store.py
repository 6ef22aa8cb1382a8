"""A store never goes back in time."""

from dataclasses import dataclass

from admitter.client.store import Index, Key, Store


@dataclass(frozen=True)
class Thing:
    name: str
    version: int
    uid: str = "u1"
    group: str | None = None

    @property
    def key(self) -> Key:
        return ("ns", self.name)


def followed() -> tuple[Store[Thing], list[tuple[int | None, int | None]]]:
    store: Store[Thing] = Store()
    seen: list[tuple[int | None, int | None]] = []
    store.listen(lambda old, new: seen.append((old.version if old else None, new.version if new else None)))
    return store, seen


def test_an_older_version_changes_nothing() -> None:
    store, seen = followed()
    store.apply(Thing("a", 5))
    store.apply(Thing("a", 4))
    store.apply(Thing("a", 5))
    assert seen == [(None, 5)]


def test_the_answer_to_a_write_does_not_bring_back_what_was_deleted() -> None:
    store, seen = followed()
    store.apply(Thing("a", 5))
    store.delete(("ns", "a"), "u1")
    store.apply(Thing("a", 6))
    assert len(store) == 0
    assert seen == [(None, 5), (5, None)]


def test_the_deletion_of_an_earlier_object_of_that_name_is_old_news() -> None:
    store, _ = followed()
    store.apply(Thing("a", 5, uid="u1"))
    store.apply(Thing("a", 9, uid="u2"))
    store.delete(("ns", "a"), "u1")
    assert store.get(("ns", "a")) == Thing("a", 9, uid="u2")


def test_an_object_made_again_is_an_end_and_a_beginning() -> None:
    store, seen = followed()
    store.apply(Thing("a", 5, uid="u1"))
    store.apply(Thing("a", 9, uid="u2"))
    assert seen == [(None, 5), (5, None), (None, 9)]


def test_a_list_ends_what_it_lacks_but_not_what_is_newer() -> None:
    store, _ = followed()
    store.apply(Thing("gone", 3, uid="g"))
    store.apply(Thing("written since", 12, uid="w"))
    store.replace([Thing("listed", 8, uid="l")], version=10)
    assert sorted(thing.name for thing in store) == ["listed", "written since"]


def test_a_listener_that_fails_does_not_stop_the_others() -> None:
    store: Store[Thing] = Store()
    seen: list[str] = []

    def fails(_old: Thing | None, _new: Thing | None) -> None:
        raise RuntimeError("poisoned")

    store.listen(fails)
    store.listen(lambda _old, new: seen.append(new.name if new else ""))
    store.apply(Thing("a", 1))
    assert seen == ["a"]


def test_an_index_follows_its_store() -> None:
    store: Store[Thing] = Store()
    store.apply(Thing("a", 1, uid="a", group="x"))
    index = Index(store, lambda thing: thing.group)
    store.apply(Thing("b", 2, uid="b", group="x"))
    assert index.get("x") == [("ns", "a"), ("ns", "b")]
    store.apply(Thing("a", 3, uid="a", group="y"))
    store.apply(Thing("b", 4, uid="b", group=None))
    assert (index.get("x"), index.get("y")) == ([], [("ns", "a")])
    store.delete(("ns", "a"), "a")
    assert index.get("y") == []

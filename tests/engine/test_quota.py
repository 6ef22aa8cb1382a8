"""The quota tree. Sources: docs/coming-from-kueue.md, docs/design/engine.md."""

import sys

import pytest

from admitter.engine.policy import Cohort, Queue
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Tree
from tests.engine.builders import cohort, queue

KEY = ("default", "gpu")


def tree(*definitions: Queue | Cohort) -> Tree:
    made = Tree()
    for definition in definitions:
        if isinstance(definition, Queue):
            made.set_queue(definition)
        else:
            made.set_cohort(definition)
    return made


def gpus(name: str, limits: str, parent: str = "") -> Queue:
    return queue(name, {"gpu": {"default": limits}}, cohort=parent)


def team(name: str, parent: str = "", limits: str = "0") -> Cohort:
    return cohort(name, parent, {"gpu": {"default": limits}})


def available(book: Book, name: str) -> int:
    return book.cell(name, KEY).available()


def test_a_queue_without_cohort_has_its_minimum() -> None:
    book = Book(tree(gpus("a", "9..20")))
    assert available(book, "a") == 9
    book.add("a", [(KEY, 4)])
    assert available(book, "a") == 5


def test_two_queues_share_what_is_unused() -> None:
    book = Book(tree(gpus("a", "9", "ab"), gpus("b", "12", "ab")))
    assert available(book, "a") == available(book, "b") == 21
    book.add("b", [(KEY, 5)])
    assert available(book, "a") == 16


def test_a_minimum_that_is_lent_out_is_not_free() -> None:
    book = Book(tree(gpus("a", "9", "ab"), gpus("b", "12", "ab")))
    book.add("b", [(KEY, 21)])
    assert available(book, "a") == 0
    assert book.cell("b", KEY).borrows()
    assert not book.cell("a", KEY).borrows()


def test_max_bounds_what_is_borrowed() -> None:
    book = Book(tree(gpus("a", "9..12", "ab"), gpus("b", "12", "ab")))
    assert available(book, "a") == 12
    book.add("a", [(KEY, 10)])
    assert available(book, "a") == 2


def test_the_lending_limit_keeps_quota_at_home() -> None:
    book = Book(tree(gpus("a", "9/3", "ab"), gpus("b", "12", "ab")))
    assert available(book, "b") == 15
    book.add("b", [(KEY, 15)])
    assert available(book, "a") == 6, "what was not lent is still free"
    book.add("a", [(KEY, 6)])
    assert available(book, "a") == 0


def test_what_others_lend_is_on_top_of_what_is_kept() -> None:
    book = Book(tree(gpus("a", "9/3", "ab"), gpus("b", "12/0", "ab")))
    assert available(book, "a") == 9
    assert available(book, "b") == 15
    book.add("a", [(KEY, 7)])
    assert available(book, "b") == 14, "7 of a: 6 that it keeps, 1 of what it lends"


def test_three_levels() -> None:
    book = Book(
        tree(
            team("company", limits="4"),
            team("research", "company", "2..12"),
            team("product", "company", "0/1"),
            gpus("vision", "3", "research"),
            gpus("speech", "3..5", "research"),
            gpus("search", "6", "product"),
        )
    )
    # research: 2 + 3 + 3 = 8 of its own; company: 4, 8 of research, and the 1 that product lends.
    assert available(book, "vision") == 12, (
        "its own 8, 4 of the company, 1 of product, capped by research's max"
    )
    assert available(book, "speech") == 5
    assert available(book, "search") == 18, "product keeps 5 and reaches the company's 13"
    book.add("vision", [(KEY, 9)])
    assert book.at(("cohort", "research"), KEY).borrows()
    assert available(book, "speech") == 3, "research's max of 12 leaves 3"
    assert available(book, "search") == 9


def test_a_cohort_that_is_only_named_works() -> None:
    book = Book(tree(gpus("a", "1", "c"), gpus("b", "2", "c"), team("c2"), gpus("d", "5", "c2")))
    assert available(book, "a") == 3
    assert available(book, "d") == 5


def test_use_stays_counted_when_a_limit_is_cut_and_when_definitions_go() -> None:
    made = tree(gpus("a", "9", "ab"), gpus("b", "12", "ab"))
    book = Book(made)
    book.add("a", [(KEY, 15)])
    made.set_queue(gpus("a", "2", "ab"))
    assert available(book, "b") == 0
    assert book.used("a") == {KEY: 15}
    made.remove_queue("a")
    assert available(book, "b") == 12, "a left the cohort, and its quota and use with it"
    made.set_queue(gpus("a", "9", "ab"))
    assert available(book, "b") == 6


def test_a_queue_that_moves_takes_its_use_along() -> None:
    made = tree(gpus("a", "4", "x"), gpus("b", "4", "x"), gpus("c", "4", "y"))
    book = Book(made)
    book.add("a", [(KEY, 6)])
    assert (available(book, "b"), available(book, "c")) == (2, 4)
    made.set_queue(gpus("a", "4", "y"))
    assert (available(book, "b"), available(book, "c")) == (4, 2)


@pytest.mark.parametrize(
    ("parents", "cycles"),
    [
        ({"a": "a"}, [("a",)]),
        ({"a": "b", "b": "a"}, [("a", "b")]),
        ({"c": "b", "b": "a", "a": "c", "d": "a"}, [("a", "c", "b")]),
        ({"a": "b", "b": "c"}, []),
    ],
    ids=["its own parent", "two", "three, and one below", "none"],
)
def test_cycles_of_parents_are_found_and_cut(parents: dict[str, str], cycles: list[tuple[str, ...]]) -> None:
    made = tree(*(team(name, parent, "1") for name, parent in parents.items()))
    for name in parents:
        made.set_queue(gpus(f"queue-{name}", "1", name))
    assert {made.cycle(name) for name in parents} - {()} == set(cycles)
    book = Book(made)
    for cycle in cycles:
        for name in cycle:
            # its own minimum, its queue's, and what hangs below it from outside of the cycle
            below = sum(1 for child, parent in parents.items() if parent == name and child not in cycle)
            assert available(book, f"queue-{name}") == 2 + 2 * below


def test_removing_restores_every_cell() -> None:
    made = tree(
        team("top", limits="3"), team("mid", "top", "1/1"), gpus("a", "4/2", "mid"), gpus("b", "2", "top")
    )
    book = Book(made)
    book.add("b", [(KEY, 3)])
    before = [available(book, name) for name in ("a", "b")]
    for amount in (1, 5, 9):
        book.add("a", [(KEY, amount)])
        book.add("a", [(KEY, amount)], -1)
        assert [available(book, name) for name in ("a", "b")] == before


def test_a_tree_may_be_deeper_than_calls_may_be() -> None:
    depth = sys.getrecursionlimit() + 100
    parents = (cohort(f"c{level}", f"c{level - 1}" if level else "") for level in range(depth))
    book = Book(tree(*parents, team("c0", limits="5"), gpus("q", "1", f"c{depth - 1}")))
    assert available(book, "q") == 6

"""Which place of the quota tree lends to which queue: an attribution, by arithmetic alone.

The engine knows how much each place borrows, and not of which other place: unused quota of a Cohort is one
amount. It is attributed from the leaves of the tree upwards. In each Cohort, what the places below it borrow
is taken from what the others leave unused there, and from the Cohort's own quota, in proportion to how much
each of them leaves. What is then missing is borrowed, and what is left is offered, one Cohort higher up.
So no place lends to itself, and the loans of each place add up to what it borrows and lends.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.engine.quota.book import Book
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.tree import Node, Tree

Parts = tuple[tuple[Node, int], ...]
"""Places, and an amount of each that is not 0."""
_NOTHING: Final[Parts] = ()


@dataclass(frozen=True, slots=True)
class Market:
    """Quota of one resource in one flavor that is lent between the places right below a Cohort."""

    cohort: Node  # at a tree's top also a queue, if it stands alone
    key: FlavorResource
    lenders: Parts  # queues and Cohorts with own quota that others below the Cohort use, and how much
    borrowers: Parts  # queues that use it; their sum is that of the lenders
    beyond: Parts = _NOTHING  # at a tree's top: queues that use quota that there is not, and how much


@dataclass(frozen=True, slots=True)
class Loan:
    """Quota of one place that a queue of another one uses."""

    lender: Node | None  # with own quota: a queue or a Cohort; None: the tree does not have so much
    borrower: Node  # a queue
    amount: int  # in the resource's unit


def markets(tree: Tree, book: Book) -> Iterator[Market]:
    """What is lent in all Cohorts, of those below first; Cohorts in which nothing is lent are left out."""
    parents = tree.parents()
    wanting = {key for node in parents for key, cell in book.cells(node).items() if _lacks(cell)}
    offers: defaultdict[tuple[Node, FlavorResource], list[tuple[Node, int]]] = defaultdict(list)
    wishes: defaultdict[tuple[Node, FlavorResource], list[tuple[Node, int]]] = defaultdict(list)
    for node in sorted(parents, key=lambda each: (-len(tree.path(each)), each)) if wanting else ():
        parent = parents[node]
        for key, cell in book.cells(node).items():
            if key not in wanting:
                continue
            offered, wished, found = _at(node, key, cell, offers.pop((node, key), []), wishes)
            if parent is not None:
                offers[parent, key] += offered
                wishes[parent, key] += wished
                wished = _NOTHING
            if found.lenders or wished:
                yield Market(node, key, found.lenders, found.borrowers, wished)


def _lacks(cell: Cell) -> int:
    """How much of the use of a place the others have to provide, or the Cohort."""
    return max(0, cell.taken - cell.lent)


def _leaves(cell: Cell) -> int:
    """How much a place lends the Cohort above, and does not take back."""
    return max(0, cell.lent - cell.taken)


def _at(
    node: Node,
    key: FlavorResource,
    cell: Cell,
    offered: list[tuple[Node, int]],
    wishes: defaultdict[tuple[Node, FlavorResource], list[tuple[Node, int]]],
) -> tuple[Parts, Parts, Market]:
    """What a place offers and wants above it, and what is lent below it."""
    if node[0] == "queue":
        leaves, lacks = _leaves(cell), _lacks(cell)
        own: Parts = ((node, leaves),) if leaves else _NOTHING
        return own, ((node, lacks),) if lacks else _NOTHING, Market(node, key, _NOTHING, _NOTHING)
    own = ((node, cell.quota.minimum),) if cell.quota.minimum else _NOTHING
    there, wanted = (*offered, *own), tuple(wishes.pop((node, key), ()))
    amount = min(_sum(there), _sum(wanted))
    lenders, borrowers = _part(there, amount), _part(wanted, amount)
    left = _part(_less(there, lenders), _leaves(cell)) if cell.parent is not None else _NOTHING
    return left, _less(wanted, borrowers), Market(node, key, lenders, borrowers)


def _sum(parts: Iterable[tuple[Node, int]]) -> int:
    return sum(amount for _, amount in parts)


def _part(parts: Parts, amount: int) -> Parts:
    """So much of some parts, in proportion to them."""
    shares = apportioned(amount, [size for _, size in parts])
    return tuple((node, share) for (node, _), share in zip(parts, shares, strict=True) if share)


def _less(parts: Parts, taken: Parts) -> Parts:
    """What is left of some parts."""
    gone = Counter(dict(taken))
    return tuple((node, amount - gone[node]) for node, amount in parts if amount > gone[node])


def apportioned(amount: int, parts: Sequence[int]) -> list[int]:
    """An amount, at most their sum, divided in proportion to parts: whole numbers with that sum.

    None is more than its part. The largest fractions are rounded up, of equal ones the first.
    """
    whole = sum(parts)
    assert 0 <= amount <= whole, "there is no more to divide"
    if not amount:
        return [0] * len(parts)
    shares = [amount * part // whole for part in parts]
    by_fraction = sorted(range(len(parts)), key=lambda index: -(amount * parts[index] % whole))
    for index in by_fraction[: amount - sum(shares)]:
        shares[index] += 1
    return shares


def loans(market: Market) -> Iterator[Loan]:
    """Each lender's part of what each queue borrows, in proportion to both."""
    borrowers, left = [node for node, _ in market.borrowers], [amount for _, amount in market.borrowers]
    for lender, amount in market.lenders:
        whole, before, given = sum(left), 0, 0
        for index, wanted in enumerate(left):  # rounded at the sums, so that the parts come to the amount
            before += wanted
            part = before * amount // whole - given
            given += part
            if part:
                yield Loan(lender, borrowers[index], part)
                left[index] -= part
    for borrower, amount in market.beyond:
        yield Loan(None, borrower, amount)


def lent(tree: Tree, found: Iterable[Market]) -> Counter[tuple[Node, FlavorResource]]:
    """How much of the own quota of each place, and of all below it, others use that are not below it."""
    sums: Counter[tuple[Node, FlavorResource]] = Counter()
    for market in found:
        for lender, amount in market.lenders:
            for place in tree.path(lender):
                if place == market.cohort:
                    break
                sums[place, market.key] += amount
    return sums

"""Which places of the quota tree are shown, and in which order."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.engine.quota.tree import Node
from admitter.insight.overview import OverviewLine, OverviewUse
from admitter.top.scene import part


class SortOrder(StrEnum):
    """What places of one Cohort are ordered by."""

    NAME = "name"
    USE = "use"
    WAITING = "waiting"
    RECENT = "admitted a minute"


@dataclass(frozen=True, slots=True)
class TreePosition:
    """A line of the tree, as it is shown."""

    line: OverviewLine
    use: OverviewUse | None  # of the resource that is shown; None: the place has none of it
    below: int  # how many places there are below it
    folded: bool  # whether these are hidden


_ORDERS: Final[dict[SortOrder, Callable[[TreePosition], float]]] = {
    SortOrder.NAME: lambda _: 0.0,
    SortOrder.USE: lambda place: -part(place.use),
    SortOrder.WAITING: lambda place: -place.line.waiting,
    SortOrder.RECENT: lambda place: -place.line.recent,
}


def arranged(
    lines: Iterable[OverviewLine],
    key: FlavorResource | None,
    order: SortOrder,
    folded: Collection[Node],
    words: str,
) -> list[TreePosition]:
    """The places to show, each above those below it; those with the same parent in order, or else by name.

    Places below a folded one are hidden, unless the user searches some words: then places that have them in
    their name or problem, in capitals or not, are shown with all above and below them.
    """
    below: defaultdict[Node | None, list[OverviewLine]] = defaultdict(list)
    for line in lines:
        below[line.parent].append(line)
    wanted = _wanted(lines, words.casefold()) if words else None
    counts = _counts(lines)
    shown: list[TreePosition] = []

    def sorted_places(parent: Node | None) -> list[TreePosition]:
        found = [
            TreePosition(line, _use(line, key), counts[line.node], not words and line.node in folded)
            for line in below[parent]
            if wanted is None or line.node in wanted
        ]
        return sorted(found, key=_ORDERS[order])

    left = sorted_places(None)[::-1]
    while left:
        place = left.pop()
        shown.append(place)
        if not place.folded:
            left += sorted_places(place.line.node)[::-1]
    return shown


def _use(line: OverviewLine, key: FlavorResource | None) -> OverviewUse | None:
    return next((use for use in line.uses if (use.flavor, use.resource) == key), None)


def _counts(lines: Iterable[OverviewLine]) -> defaultdict[Node, int]:
    """How many places are below each one."""
    found: defaultdict[Node, int] = defaultdict(int)
    for line in reversed(list(lines)):
        if line.parent is not None:
            found[line.parent] += 1 + found[line.node]
    return found


def _wanted(lines: Iterable[OverviewLine], words: str) -> set[Node]:
    """Those that are found, all below them, and all above them."""
    parents = {line.node: line.parent for line in lines}
    found: set[Node] = set()
    down: set[Node] = set()
    for line in lines:
        matches = words in f"{line.title} {line.problem}".casefold()
        if not matches and line.parent not in down:
            continue
        down.add(line.node)
        node: Node | None = line.node
        while node is not None and node not in found:
            found.add(node)
            node = parents.get(node)
    return found

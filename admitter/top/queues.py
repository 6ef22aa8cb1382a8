"""The tree of Cohorts and queues."""

from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType

from admitter.engine.model import FlavorResource
from admitter.engine.quota.tree import Node
from admitter.insight.overview import OverviewLine
from admitter.top.columns import Column, clipped, shortened
from admitter.top.scene import TopState
from admitter.top.table import Table
from admitter.top.tree import SortOrder, TreePosition, arranged
from admitter.top.view import ListView
from admitter.top.words import amount, bar, place, spelled_use
from admitter.top.workloads import WorkloadsView
from admitter.visible import visible

_EMPTY: Final = (
    "There are no ClusterQueues, Cohorts or elastic quotas in this cluster.\n\n"
    "A ClusterQueue or an ElasticQuota grants quota to namespaces: Admitter's README begins with one."
)


def _name(shown: TreePosition, width: int) -> str:
    """A name below that of its Cohort, with marks for what is hidden below it, and for a problem."""
    line = shown.line
    mark = ("▸ " if shown.folded else "▾ ") if line.node[0] == "cohort" else ""
    name = line.title.removeprefix("ClusterQueue ").removeprefix("Cohort ")
    below = f" ({shown.below})" if shown.folded else ""
    problem = " !" if line.problem else ""
    room = width - len(problem) - len(below)
    head = "  " * min(line.depth, room // 6) + mark
    return f"{head}{shortened(name, room - len(head))}{below}{problem}"


def _amount(attribute: str, shown: TreePosition) -> str:
    """One amount of the resource that is shown; nothing where there is none of it."""
    value = getattr(shown.use, attribute, None)
    return amount(shown.use.resource, value) if shown.use is not None and value is not None else ""


def _loan(shown: TreePosition, sign: str, attribute: str) -> str:
    value = getattr(shown.use, attribute, 0)
    return f"{sign}{amount(shown.use.resource, value)}" if shown.use is not None and value else ""


COLUMNS: Final[tuple[Column[TreePosition], ...]] = (
    Column("NAME", 18, 0, _name, most=48),
    Column(
        "USE", 14, 2, lambda p, width: bar(p.use, width) if p.use else "", most=30, style="cyan", drawn=True
    ),
    Column("USED", 6, 1, lambda p, _: _amount("used", p), right=True),
    Column("MIN", 6, 5, lambda p, _: _amount("minimum", p), right=True),
    Column("MAX", 6, 6, lambda p, _: _amount("maximum", p), right=True),
    Column("LOAN", 7, 4, lambda p, _: _loan(p, "+", "borrowed") or _loan(p, "-", "lent"), right=True),
    Column("WAIT", 5, 3, lambda p, _: str(p.line.waiting), right=True, style="yellow"),
    Column("ADM", 5, 7, lambda p, _: str(p.line.admitted), right=True),
    Column("ADM/M", 5, 8, lambda p, _: str(p.line.recent), right=True, style="green"),
    Column("PROBLEM", 20, 9, lambda p, width: clipped(p.line.problem, width), most=80, style="red"),
)
"""By rank: a name, what it uses, the bar, waiting, loans, limits, admitted. 80 characters have room
for all but the problem, which is below the table too."""


class QueuesView(ListView):
    """The tree of Cohorts and queues with the use of one resource."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "resource(1)", "next resource"),
        Binding("R", "resource(-1)", "previous resource"),
        Binding("n", "order('NAME')", "order by name"),
        Binding("u", "order('USE')", "order by use"),
        Binding("w", "order('WAITING')", "order by waiting"),
        Binding("a", "order('RECENT')", "order by admitted a minute"),
        Binding("left,h", "fold", "fold"),
        Binding("right,l", "unfold", "unfold"),
        Binding("minus", "fold_all", "fold all"),
        Binding("plus,equals_sign", "unfold_all", "unfold all"),
    ]
    keys = "? keys  q quit  Enter Workloads  / filter  r resource  n u w a order  ←→ fold"

    def __init__(self, state: TopState) -> None:
        super().__init__(state)
        self.table: Table[TreePosition] = Table(COLUMNS, lambda shown: shown.line.node)
        self._order = SortOrder.NAME
        self._folded: set[Node] = set()
        self._key: FlavorResource | None = None

    def scene_changed(self) -> None:
        scene = self.state.scene
        if scene is not None:
            if self._key not in scene.resources:
                self._key = scene.fullest
            found = arranged(scene.lines, self._key, self._order, self._folded, self.words)
            self.table.show(found)
            self.explain_empty(_EMPTY if not scene.lines else f"Nothing has “{self.words}” in its name.")
        else:
            self.explain_empty("Reading the cluster …")
        self.show_head()

    def on_table_moved(self) -> None:
        current = self.table.current
        self.detail.say(_detail(current.line, self._key) if current is not None else "")
        self.show_head()

    def about(self) -> tuple[str, str]:
        scene = self.state.scene
        if scene is None or not scene.lines:
            return "", ""
        shown = "no resource is limited"
        if self._key is not None:
            number = f" ({scene.resources.index(self._key) + 1} of {len(scene.resources)})"
            shown = place(self._key) + number
        return f"{shown}, by {self._order}{self.searched()}", self.in_view()

    def action_resource(self, by: int) -> None:
        scene = self.state.scene
        if scene is not None and self._key is not None:
            at = scene.resources.index(self._key) + by
            self._key = scene.resources[at % len(scene.resources)]
            self.scene_changed()

    def action_order(self, name: str) -> None:
        self._order = SortOrder[name]
        self.scene_changed()

    def action_fold(self) -> None:
        """Hide what is below the current place; if nothing is, go to the one above it."""
        current = self.table.current
        scene = self.state.scene
        if current is None or scene is None:
            return
        if current.below and not current.folded and not self.words:
            self._folded.add(current.line.node)
            self.scene_changed()
        elif current.line.parent is not None:
            self.table.go_to(current.line.parent)

    def action_unfold(self) -> None:
        current = self.table.current
        if current is not None:
            self._folded.discard(current.line.node)
            self.scene_changed()

    def action_fold_all(self) -> None:
        scene = self.state.scene
        if scene is not None:
            self._folded = {line.node for line in scene.lines if line.node[0] == "cohort"}
            self.scene_changed()

    def action_unfold_all(self) -> None:
        self._folded.clear()
        self.scene_changed()

    def on_table_chosen(self) -> None:
        current = self.table.current
        if current is not None:
            self.app.push_screen(WorkloadsView(self.state, current.line.node, current.line.title))


def _detail(line: OverviewLine, key: FlavorResource | None) -> Text:
    """All of a place: what is wrong with it, and what it uses; first of the resource that is shown."""
    uses = sorted(line.uses, key=lambda use: (use.flavor, use.resource) != key)
    counts = f"{line.waiting} waiting, {line.admitted} admitted, {line.recent} of them in the last minute"
    made = Text(f"{visible(line.title)}: {counts}. ", style="")
    if line.problem:
        made.append(f"{visible(line.problem)}. ", style="red")
    made.append(visible("; ".join(spelled_use(use) for use in uses)))
    return made

"""The Workloads of a queue, or of all queues below a Cohort, in the order of their turn."""

from collections.abc import Iterator

from admitter.engine.quota.tree import Node
from admitter.insight.listing import Row
from admitter.top.columns import Column
from admitter.top.explanation import ExplanationView
from admitter.top.scene import TopScene, TopState
from admitter.top.table import Table
from admitter.top.view import ListView
from admitter.top.words import age


class WorkloadsView(ListView):
    """Workloads of one place of the tree: those that hold quota, then those that wait, in order."""

    keys = "? keys  q quit  Esc back  Enter explanation  / filter"

    def __init__(self, state: TopState, node: Node, title: str) -> None:
        super().__init__(state)
        self._node = node
        self._place = title
        self._now = 0.0
        columns: tuple[Column[Row], ...] = (
            Column("#", 5, 4, lambda row, _: str(row.position or ""), right=True),
            Column("NAME", 16, 0, lambda row, _: row.job, most=60),
            Column("NAMESPACE", 12, 3, lambda row, _: row.workload.namespace, most=40),
            *([Column("QUEUE", 8, 7, lambda row, _: row.queue, most=40)] if node[0] == "cohort" else []),
            Column("PRIO", 5, 5, lambda row, _: str(row.workload.spec.get("priority", 0)), right=True),
            Column("STATE", 8, 2, lambda row, _: row.state),
            Column("REASON", 14, 1, lambda row, _: row.reason, most=28, style="yellow"),
            Column("AGE", 4, 6, lambda row, _: age(self._now - row.workload.created), right=True),
        )
        self.table: Table[Row] = Table(columns, lambda row: row.workload.uid)

    def scene_changed(self) -> None:
        scene = self.state.scene
        assert scene is not None, "a place was chosen in a scene"
        self._now = scene.known.taken
        words = self.words.casefold()
        found = [row for row in _rows(scene, self._node) if not words or words in _searched(row)]
        self.table.show(found)
        self.explain_empty(
            f"Nothing has “{self.words}” in it." if words else "No Workload waits or runs here."
        )
        self.show_head()

    def on_table_moved(self) -> None:
        row = self.table.current
        self.detail.say(_detail(row) if row is not None else "")
        self.show_head()

    def about(self) -> tuple[str, str]:
        return f"{self._place}{self.searched()}", self.in_view()

    def on_table_chosen(self) -> None:
        row = self.table.current
        if row is not None:
            self.app.push_screen(ExplanationView(self.state, row))


def _rows(scene: TopScene, node: Node) -> Iterator[Row]:
    """Those of a queue, or of all queues below a Cohort."""
    below = {node}
    for line in scene.lines:
        if line.parent in below:
            below.add(line.node)
        if line.node in below and line.node[0] == "queue":
            yield from scene.rows.get(line.node[1], ())


def _searched(row: Row) -> str:
    view = row.workload
    return f"{view.namespace}/{row.job} {view.name} {row.state} {row.reason}".casefold()


def _detail(row: Row) -> str:
    view = row.workload
    message = str(view.status.get("message") or "")
    return f"{view.namespace}/{row.job} (Workload {view.name}), LocalQueue {view.queue}. {message}"

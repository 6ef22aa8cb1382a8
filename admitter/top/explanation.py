"""Why one Workload waits, in the words of `admitter explain`."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from admitter.insight.explain.explainer import Answer, Explainer, UnknownError
from admitter.insight.explain.outlook import controllers_of, first, start_of, with_blocking
from admitter.insight.explain.status_summary import summary, summary_lines
from admitter.insight.explain.text import has_start, opening, start, start_line, would_let_in
from admitter.insight.forecast.playing import Playing
from admitter.insight.listing import Row
from admitter.policy.snapshot import Facts, Snapshot
from admitter.top.background import in_background
from admitter.top.scene import TopState
from admitter.top.view import TextView, TopView


class ExplanationView(TopView):
    """One Workload's explanation, of the moment at which it was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask", "ask again"),
        Binding("k", "scroll('scroll_up')", "up"),
        Binding("j", "scroll('scroll_down')", "down"),
        Binding("g", "scroll('scroll_home')", "beginning"),
        Binding("G", "scroll('scroll_end')", "end"),
    ]
    keys = "? keys  q quit  Esc back  ↑↓ scroll  r ask again"

    def __init__(self, state: TopState, row: Row) -> None:
        super().__init__(state)
        self._row = row
        self._asked_at = 0.0
        self.text = TextView("text")
        self._scroll = VerticalScroll(self.text)

    def body(self) -> Iterable[Widget]:
        return (self._scroll,)

    def on_mount(self) -> None:
        self._scroll.focus()
        self.action_ask()

    def about(self) -> tuple[str, str]:
        """The Workload that is explained, and the time: the text does not change by itself."""
        return (
            f"{self._row.workload.namespace}/{self._row.job}",
            f"explained at {datetime.fromtimestamp(self._asked_at, UTC):%H:%M:%S}",
        )

    def action_ask(self) -> None:
        scene = self.state.scene
        assert scene is not None, "a Workload was chosen in a scene"
        self._asked_at = scene.known.taken
        self.show_head()
        self.run_worker(self._explain(scene.known), exclusive=True)

    def action_scroll(self, method: str) -> None:
        getattr(self._scroll, method)(animate=False)

    async def _explain(self, known: Facts) -> None:
        """Show the quick part first; then the start, which may take long to estimate."""
        view, allowance = self._row.workload, self.state.allowance
        self.text.say("\n".join([*summary_lines(summary(view)), "Asking …"]))

        def ask(_: Callable[[], None]) -> tuple[Snapshot, Explainer, Answer]:
            snapshot = Snapshot(known)
            explainer = Explainer(snapshot)
            return snapshot, explainer, first(explainer, view.namespace, view.name)

        def look_ahead(proceed: Callable[[], None]) -> list[str]:
            deadline = allowance.begin()

            def go_on() -> None:
                proceed()
                deadline.proceed()

            answer = with_blocking(explainer, found, deadline)
            estimate = start_of(known, snapshot, answer, Playing(proceed=go_on))
            starts = [start_line(start(estimate), deciding)] if estimate is not None else []
            return [*would_let_in(answer, known.taken), *starts]

        try:
            snapshot, explainer, found = await in_background(ask)
        except UnknownError:
            self.text.say("It is gone: there is no such Job and no such Workload any more.")
            return
        deciding = controllers_of(self.state.feed.controllers(), found, snapshot)
        begun = list(opening(found, snapshot, deciding))
        waits = [start_line("running playouts …", deciding)] if has_start(found) else []
        self.text.say("\n".join([*begun, *waits]))
        self.text.say("\n".join([*begun, *await in_background(look_ahead)]))

"""Why one Workload waits, in the words of `admitter explain`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from admitter.insight.estimates import Estimate, Estimator
from admitter.insight.listing import Row
from admitter.insight.playing import interruptible
from admitter.insight.text import lines
from admitter.insight.why import Answer, Explainer, UnknownError, is_hopeless
from admitter.simulate.picture import Facts, Picture
from admitter.top.background import in_background
from admitter.top.view import View, Words


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer, and the picture that it was found in."""

    answer: Answer
    picture: Picture

    def has_estimate(self) -> bool:
        """Whether there is a start to be estimated."""
        found = self.answer.explanation
        return found is not None and not is_hopeless(found.refusal)

    def words(self, estimate: Estimate | None) -> str:
        """All of it."""
        return "\n".join(lines(self.answer, estimate, self.picture))


class ExplanationView(View):
    """One Workload's explanation, of the moment at which it was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask", "ask again"),
        Binding("k", "scroll('scroll_up')", "up"),
        Binding("j", "scroll('scroll_down')", "down"),
        Binding("g", "scroll('scroll_home')", "beginning"),
        Binding("G", "scroll('scroll_end')", "end"),
    ]
    keys = "? keys  q quit  Esc back  ↑↓ scroll  r ask again"

    def __init__(self, row: Row) -> None:
        """Explain a Workload.

        Args:
            row: it, in a list.
        """
        super().__init__()
        self._row = row
        self._asked_at = 0.0
        self.text = Words("text")
        self._scroll = VerticalScroll(self.text)

    def body(self) -> Iterable[Widget]:
        """The text, which can be scrolled."""
        return (self._scroll,)

    def on_mount(self) -> None:
        """Ask."""
        self._scroll.focus()
        self.action_ask()

    def about(self) -> tuple[str, str]:
        """Whose explanation it is, and of when: it does not change by itself."""
        return (
            f"{self._row.workload.namespace}/{self._row.job}",
            f"explained at {datetime.fromtimestamp(self._asked_at, UTC):%H:%M:%S}",
        )

    def action_ask(self) -> None:
        """Explain it as it is now."""
        scene = self.top.scene
        assert scene is not None, "a Workload was chosen in a scene"
        self._asked_at = scene.known.taken
        self.show_head()
        self.run_worker(self._explain(scene.known), exclusive=True)

    def action_scroll(self, method: str) -> None:
        """Scroll without anything that moves by itself."""
        getattr(self._scroll, method)(animate=False)

    async def _explain(self, known: Facts) -> None:
        """Say first what takes a moment; then when it starts, which takes as long as the tree is large."""
        self.text.say("Asking …")
        view = self._row.workload

        def ask(_: Callable[[], None]) -> _Asked:
            picture = Picture(known)
            return _Asked(Explainer(picture).explain(view.namespace, view.name), picture)

        def estimate(proceed: Callable[[], None]) -> Estimate | None:
            estimator = Estimator(known, asked.picture, play=interruptible(proceed))
            return estimator.of([view]).get(view.uid)

        try:
            asked = await in_background(ask)
        except UnknownError:
            self.text.say("It is gone: there is no such Job and no such Workload any more.")
            return
        if not asked.has_estimate():
            self.text.say(asked.words(None))
            return
        self.text.say(f"{asked.words(None)}\nStart: trying the future …")
        self.text.say(asked.words(await in_background(estimate)))

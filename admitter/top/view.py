"""What all views have: what is shown, since when, what is wrong, and the keys; and the view of all keys."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Key, Paste, Resize, ScreenResume
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from admitter.top.columns import shortened
from admitter.top.scene import TopState
from admitter.top.table import Table
from admitter.visible import visible

LOWEST: Final = 2
"""Screens when no view is above another: the empty one of every application, and the tree."""

KEYS: Final = """\
████│▒▒··]  █ own, ▒ borrowed, · not used; │ at min, ] at max
LOAN        +2: 2 are borrowed; -2: 2 of its own are lent to others
WAIT, ADM   how many wait, how many are admitted; ADM/M: in the last minute
!           a problem: below the table when the line is the current one

On all lists
  ↑ ↓ k j   one line           PgUp PgDn  one page
  Home g    first line         End G      last line
  /         filter             Esc        no filter; back
Queues
  Enter     Workloads of the queue, or of all below the Cohort
  r R       next, previous resource
  n u w a   order by name, part in use, waiting, admitted a minute
  ← → h l   fold, unfold       - +        fold, unfold all
Workloads
  Enter     explanation
Explanation
  r         ask again
?           this page          q          quit"""


class TextView(Static):
    """A text that is drawn again only if it has changed."""

    def __init__(self, classes: str = "") -> None:
        super().__init__("", classes=classes, markup=False)
        self.words = Text()

    def say(self, words: Text | str) -> None:
        made = Text(visible(words, lines=True)) if isinstance(words, str) else words
        if made != self.words:
            self.words = made
            self.update(made)


class TopView(Screen[None]):
    """One full screen. Views are stacked; Escape goes back to the one below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back")]
    keys: ClassVar[str] = ""  # the line at the bottom

    def __init__(self, state: TopState) -> None:
        super().__init__()
        self.state = state
        self._title, self._totals, self._about = TextView("line"), TextView("line"), TextView("line")
        self._trouble = TextView("trouble")

    def compose(self) -> ComposeResult:
        yield from (self._title, self._totals, self._about, self._trouble)
        yield from self.body()
        keys = TextView("line keys")
        keys.say(self.keys)
        yield keys

    def body(self) -> Iterable[Widget]:
        """What is between head and keys."""
        raise NotImplementedError

    def on_screen_resume(self, _: ScreenResume) -> None:
        """Show what has changed while another view was above."""
        self.scene_changed()

    def on_resize(self, _: Resize) -> None:
        self.show_head()

    def scene_changed(self) -> None:
        self.show_head()

    def show_head(self) -> None:
        scene, width = self.state.scene, self.size.width
        time = f"{datetime.fromtimestamp(scene.known.taken, UTC):%H:%M:%S} UTC" if scene is not None else ""
        self._title.say(beside(f"admitter top  {self.state.feed.title}", time, width, "bold"))
        self._totals.say(self._summary(scene.totals() if scene is not None else ""))
        self._about.say(beside(*self.about(), width, ""))
        problems = self.state.problems()
        self._trouble.say(problems)
        self._trouble.display = bool(problems)

    def _summary(self, totals: str) -> Text | str:
        """The cluster in numbers, and which controller leads where there is room for it."""
        leader, width = self.state.leader(), self.size.width
        fits = cell_len(totals) + cell_len(leader) + 2 <= width
        return beside(totals, leader, width, "") if leader and fits else totals

    def about(self) -> tuple[str, str]:
        """What the view shows, for the left and the right end of a line."""
        return "", ""

    def action_back(self) -> None:
        if len(self.app.screen_stack) > LOWEST:
            self.app.pop_screen()


class ListView(TopView):
    """A view of a list, which can be searched.

    What is searched is typed without a widget of its own that has the focus: over a slow link several keys
    come at once, and those that came with the first would go to whatever had the focus before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "search", "filter")]

    table: Table[Any]

    def __init__(self, state: TopState) -> None:
        super().__init__(state)
        self.empty = TextView("empty")
        self.detail = TextView("detail")
        self.words = ""
        self._searching = False
        self._prompt = TextView("line prompt")

    def body(self) -> Iterable[Widget]:
        """The table, or why there is none; what is current in full."""
        return self.table, self.empty, self.detail, self._prompt

    def on_mount(self) -> None:
        self.table.focus()

    def action_search(self) -> None:
        self._searching = True
        self._searched_changed()

    def type_key(self, event: Key) -> bool:
        """Search with each letter; whether the key belongs to that."""
        if not self._searching:
            return False
        if event.key == "enter":
            self._searching = False
        elif event.key == "backspace":
            self.words = self.words[:-1]
        elif event.character is not None and event.is_printable:
            self.words += event.character
        else:
            return False
        self._searched_changed()
        return True

    def on_paste(self, event: Paste) -> None:
        if self._searching:
            self.words += event.text.partition("\n")[0]
            self._searched_changed()

    def _searched_changed(self) -> None:
        self._prompt.display = self._searching
        self._prompt.say(f"/{self.words}▏")
        self.scene_changed()

    def action_back(self) -> None:
        """Search no more; if nothing is searched, go to the view below."""
        if self._searching or self.words:
            self._searching, self.words = False, ""
            self._searched_changed()
        else:
            super().action_back()

    def explain_empty(self, words: str) -> None:
        self.empty.say(words)
        self.set_class(self.table.current is None, "-empty")

    def in_view(self) -> str:
        first, last, of_all = self.table.in_view
        return f"{first:,}–{last:,} of {of_all:,}" if of_all else ""

    def searched(self) -> str:
        return f", filter “{self.words}”" if self.words else ""


def beside(left: str, right: str, width: int, style: str) -> Text:
    """A line with something at both of its ends; the left one is shortened if there is no room for both."""
    left, right = visible(left), visible(right)
    cut = shortened(left, max(1, width - cell_len(right) - 2))
    blank = " " * (width - cell_len(cut) - cell_len(right))
    return Text.assemble((cut, style), blank, right)


class HelpView(TopView):
    """All keys."""

    keys = "q quit  Esc back  ↑↓ scroll"

    def body(self) -> Iterable[Widget]:
        text = TextView("text")
        leader = self.state.leader()
        text.say(f"{KEYS}\n\n{leader}" if leader else KEYS)
        return (VerticalScroll(text),)

"""A list of any length, of which what is in view is drawn, and drawn again only where it has changed."""

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from admitter.top.columns import Column, Placed, fitting, headings, line

T = TypeVar("T")


class Table(Widget, Generic[T], can_focus=True):
    """Items, a line each, under headings; one of them is the current one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up"),
        Binding("down,j", "move(1)", "down"),
        Binding("pageup,ctrl+b", "page(-1)", "page up"),
        Binding("pagedown,ctrl+f", "page(1)", "page down"),
        Binding("home,g", "move_to(0)", "first"),
        Binding("end,G", "move_to(-1)", "last"),
        Binding("enter", "choose", "open"),
    ]

    class Chosen(Message):
        """The current item was chosen."""

    class Moved(Message):
        """What is current, or in view, may have changed."""

    def __init__(self, columns: Sequence[Column[T]], key: Callable[[T], Hashable]) -> None:
        """Show those columns that fit; the item with the same key stays current when the list changes."""
        super().__init__()
        self._columns = columns
        self._placed: Placed[T] = ()
        self._key = key
        self._items: Sequence[T] = ()
        self._cursor = 0
        self._first = 0
        self._drawn: dict[int, Text] = {}

    @property
    def current(self) -> T | None:
        """The item that the cursor is on; None: the list is empty."""
        return self._items[self._cursor] if self._items else None

    @property
    def columns(self) -> list[str]:
        return [column.title for column, _ in self._placed]

    @property
    def in_view(self) -> tuple[int, int, int]:
        """The numbers of the first and the last item in view, from 1, and of all items."""
        last = min(self._first + self._rows, len(self._items))
        return min(self._first + 1, last), last, len(self._items)

    @property
    def _rows(self) -> int:
        return max(1, self.size.height - 1)

    def show(self, items: Sequence[T]) -> None:
        """Show a list. The current item stays current; at the very beginning the first item does."""
        current, at_top = self.current, self._cursor == 0
        self._items = items
        if current is None or at_top:
            self._settle()
        else:
            self.go_to(self._key(current))

    def go_to(self, key: Hashable) -> None:
        """Make the item with this key the current one, if it is in the list."""
        places = (place for place, item in enumerate(self._items) if self._key(item) == key)
        self._move_to(next(places, self._cursor))

    def _move_to(self, place: int) -> None:
        self._cursor = place
        self._settle()

    def _settle(self) -> None:
        """Bring the current item into view, and draw what has changed."""
        self._cursor = max(0, min(self._cursor, len(self._items) - 1))
        lowest = max(0, len(self._items) - self._rows)
        self._first = max(self._cursor - self._rows + 1, min(self._first, self._cursor, lowest))
        for y in range(1, self.size.height):
            if self._drawn.get(y) != self._content(y):
                self.refresh(Region(0, y, self.size.width, 1))
        self.post_message(self.Moved())

    def _content(self, y: int) -> Text:
        place = self._first + y - 1
        if place >= len(self._items):
            return Text(end="")
        return line(self._placed, self._items[place], current=place == self._cursor)

    def render_line(self, y: int) -> Strip:
        if y == 0:
            content = headings(self._placed)
            content.stylize("bold underline")
        else:
            self._drawn[y] = content = self._content(y)
        strip = Strip(content.render(self.app.console)).adjust_cell_length(self.size.width)
        return strip.apply_style(self.rich_style)

    def on_resize(self, event: Resize) -> None:
        self._placed = fitting(self._columns, event.size.width)
        self._drawn.clear()
        self.refresh()
        self._settle()

    def action_move(self, by: int) -> None:
        if self._items:
            self._move_to(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._move_to(self._cursor + by * self._rows)

    def action_move_to(self, place: int) -> None:
        self._move_to(place if place >= 0 else len(self._items) - 1)

    def action_choose(self) -> None:
        if self._items:
            self.post_message(self.Chosen())

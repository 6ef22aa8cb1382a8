"""The screen of `admitter top`: views above each other, and the scene that they show.

A scene comes at the pace of its feed, which is at most one a second; in between only keys change the screen.
There are no animations, and colours are the sixteen of the terminal: so it works over a slow link.
"""

from typing import ClassVar, Final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key

from admitter.insight.forecast.deadline import Allowance
from admitter.top.queues import QueuesView
from admitter.top.scene import Feed, TopScene, TopState
from admitter.top.view import HelpView, ListView, TopView

LOOK_SECONDS: Final = 1.0
"""How often the connection to the API server and the controllers are checked, in seconds."""


class Top(App[None]):
    """The application: brings scenes to the views."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("question_mark", "keys", "keys"),
    ]
    CSS = """
    TextView { height: auto; width: 100%; }
    TextView.line { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    TextView.trouble { color: ansi_red; text-style: bold; }
    TextView.keys { dock: bottom; text-style: bold; }
    TextView.detail { height: 3; }
    TextView.prompt { display: none; }
    TextView.empty { height: 1fr; padding: 1 2; display: none; }
    TextView.text { padding: 0 1; }
    Table { height: 1fr; }
    .-empty Table { height: 1; }
    .-empty TextView.empty { display: block; }
    VerticalScroll { height: 1fr; scrollbar-size-vertical: 0; }
    """

    def __init__(self, feed: Feed, allowance: Allowance) -> None:
        super().__init__(ansi_color=True)
        self._state = TopState(feed, allowance)
        self.animation_level = "none"

    def on_mount(self) -> None:
        self.theme = "ansi-dark"
        self.push_screen(QueuesView(self._state))
        self.run_worker(self._state.feed.follow(self.take))
        self.set_interval(LOOK_SECONDS, self.look)

    def on_key(self, event: Key) -> None:
        """Search, if something is searched; other keys do what they are bound to."""
        if isinstance(self.screen, ListView) and self.screen.type_key(event):
            event.prevent_default()

    def take(self, scene: TopScene) -> None:
        self._state.scene = scene
        if isinstance(self.screen, TopView):
            self.screen.scene_changed()

    def look(self) -> None:
        state, seen = self._state, (self._state.feed.trouble(), self._state.feed.controllers())
        if seen != (state.trouble, state.controllers):
            state.trouble, state.controllers = seen
            if isinstance(self.screen, TopView):
                self.screen.show_head()

    def action_keys(self) -> None:
        if not isinstance(self.screen, HelpView):
            self.push_screen(HelpView(self._state))

"""`admitter top` as its users see it, without a terminal: keys go in, lines of text come out."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from admitter.insight.controller_status import ControllerStatus
from admitter.insight.forecast.deadline import NO_LIMIT, Allowance
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.top.app import Top
from admitter.top.scene import TopScene, scene
from tests.insight.states import State

SIZE = (80, 24)


def scene_of(state: State) -> TopScene:
    """What there is to show of a state."""
    known = facts(state.snapshot())
    return scene(known, Snapshot(known))


class Script:
    """Shows what it is given, and has the trouble and the controllers that it is given."""

    def __init__(self, first: TopScene | None) -> None:
        self.title = "training  https://10.0.0.1:6443"
        self.words = ""
        self.deciding: ControllerStatus | None = None
        self._first = first

    async def follow(self, show: Callable[[TopScene], None]) -> None:
        """Show the first one; tests hand over the others."""
        if self._first is not None:
            show(self._first)

    def trouble(self) -> str:
        """What is set."""
        return self.words

    def controllers(self) -> ControllerStatus | None:
        """What is set."""
        return self.deciding


class Glass:
    """The screen, and the keys below it."""

    def __init__(self, app: Top, script: Script, pilot: Pilot[None]) -> None:
        self.app = app
        self.script = script
        self._pilot = pilot

    async def press(self, *keys: str) -> list[str]:
        """Press keys one after the other; what is on the screen then."""
        await self._pilot.press(*keys)
        return await self.lines()

    async def lines(self) -> list[str]:
        """What is on the screen once all is drawn, without blanks at the ends."""
        await self._pilot.pause()
        strips = self.app.screen._compositor.render_strips()
        return ["".join(strip.text for strip in row).rstrip() for row in strips]

    async def line(self, words: str) -> str:
        """The first line that has these words."""
        return next(line for line in await self.lines() if words in line)

    async def show(self, state: State) -> list[str]:
        """Show a later state."""
        self.app.take(scene_of(state))
        return await self.lines()

    async def trouble(self, words: str) -> list[str]:
        """Have trouble, or none."""
        self.script.words = words
        self.app.look()
        return await self.lines()

    async def decided(self, controllers: ControllerStatus | None) -> list[str]:
        """Have controllers, or none."""
        self.script.deciding = controllers
        self.app.look()
        return await self.lines()

    async def explained(self) -> list[str]:
        """Wait until all that was asked is answered."""
        await self._pilot.pause()
        await self.app.workers.wait_for_complete()
        return await self.lines()

    async def resize(self, width: int, height: int) -> list[str]:
        """Change the size of the terminal."""
        await self._pilot.resize_terminal(width, height)
        return await self.lines()


@asynccontextmanager
async def watching(
    first: State | TopScene | None, size: tuple[int, int] = SIZE, allowance: Allowance = NO_LIMIT
) -> AsyncIterator[Glass]:
    """Look at a state; None: nothing has been read yet. Estimates may take as long as is allowed."""
    script = Script(scene_of(first) if isinstance(first, State) else first)
    app = Top(script, allowance)
    async with app.run_test(size=size) as pilot:
        glass = Glass(app, script, pilot)
        await glass.explained()
        yield glass


def names(lines: list[str]) -> list[str]:
    """The names in a tree, as they are drawn, without marks."""
    heading = next(number for number, line in enumerate(lines) if line.startswith("NAME "))
    rows = lines[heading + 1 : lines.index("", heading)]
    return [row.split()[1] if row.lstrip()[0] in "▾▸" else row.split()[0] for row in rows]

"""A bar for what takes longer than a moment, on a terminal only."""

import time
from types import TracebackType
from typing import Final, Self

from rich import progress
from rich.console import Console

QUIET_SECONDS: Final = 2.0


class Progress:
    """Shows how much of something is done, once it has taken two seconds."""

    def __init__(self, total: int, console: Console) -> None:
        self._total = total
        self._bar = progress.Progress(
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)
        self._enabled = console.is_terminal
        self._started = False
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started:
            self._bar.stop()

    def show(self, left: int) -> None:
        """So much is left to do."""
        if not self._enabled:
            return
        if not self._started and time.monotonic() - self._begin > QUIET_SECONDS:
            self._started = True
            self._bar.start()
        if self._started:
            self._bar.update(self._task, completed=self._total - left)

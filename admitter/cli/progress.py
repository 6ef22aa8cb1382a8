"""A bar for what takes longer than a moment, on a terminal only."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich import progress
from rich.console import Console

QUIET_SECONDS: Final = 2.0


@contextmanager
def showing_progress(total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Show how much of something is done, once it has taken two seconds.

    Yields a function to be called with how much is left.
    """
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    bar = progress.Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=total)
    begin = time.monotonic()

    def show(left: int) -> None:
        if console.is_terminal and time.monotonic() - begin > QUIET_SECONDS:
            bar.start()  # does nothing once it has begun
            bar.update(task, completed=total - left)

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()

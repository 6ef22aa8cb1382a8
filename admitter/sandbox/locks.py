"""A lock between processes; the one that waits says for which process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console


@contextmanager
def exclusive(lock: Path, doing: str, console: Console) -> Iterator[None]:
    """Hold a lock file, which the system releases when its holder ends, however that happens.

    The console shows which process holds the lock, if another does, and what for: "is building the control
    plane".
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    holder = lock.with_suffix(".holder")
    file_lock = FileLock(lock)
    try:
        file_lock.acquire(timeout=0)
    except Timeout:
        console.print(f"Another admitter{_process(holder)} {doing}: waiting for it.", soft_wrap=True)
        file_lock.acquire()
    try:
        holder.write_text(str(os.getpid()))
        yield
    finally:
        holder.unlink(missing_ok=True)
        file_lock.release()


def _process(holder: Path) -> str:
    try:
        return f" (process {holder.read_text()})"
    except FileNotFoundError:  # it has the lock, and is about to write its number
        return ""

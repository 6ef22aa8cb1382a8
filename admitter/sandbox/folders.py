"""Where the sandbox keeps what it builds and runs, and locks that one process at a time holds there."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from admitter.sandbox.errors import SandboxError

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's cache folder of Admitter; whatever is in it can be made again."""
    return _base(environment, "XDG_CACHE_HOME", ".cache") / "admitter"


def state_folder(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the sandbox of that name; SandboxError if the name is not a DNS label."""
    if not _NAME.match(name):
        raise SandboxError(
            f"--name {name!r}: a sandbox's name has lower-case letters, digits and -, at most 63 in all"
        )
    return _base(environment, "XDG_STATE_HOME", ".local/state") / "admitter" / "sandbox" / name


def _base(environment: Mapping[str, str], variable: str, default: str) -> Path:
    given = Path(environment.get(variable, ""))
    # The XDG specification: a relative path is invalid and to be ignored.
    return given if given.is_absolute() else Path.home() / default


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

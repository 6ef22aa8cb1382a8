"""A folder of journals: numbered files of JSON lines, of which the oldest make room for new ones.

A file begins with a line that says what it is, and with what the engine knew by then: each can be replayed by
itself. A process writes one after another.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import orjson
import structlog

from admitter.journal.calls import VERSION, Call, JournalError, Json, written

PREFIX: Final = "decisions-"
SUFFIX: Final = ".jsonl"
MEGABYTE: Final = 1_000_000

log = structlog.get_logger(__name__)


class Journal:
    """Writes lines, and begins a new file when one is full.

    Decisions do not depend on it: if nothing can be written, that is said once and nothing is written before
    the next time that an engine begins.
    """

    def __init__(self, folder: Path, version: str, megabytes: int, files: int) -> None:
        """Write the first file at the first call.

        A file becomes about so many megabytes long; so many files are kept, the newest included. `version` is
        that of the program.
        """
        self._folder = folder
        self._version = version
        self._most = megabytes * MEGABYTE
        self._files = files
        self._left = 0
        self._file: BinaryIO | None = None

    def begin(self, state: Iterable[Call]) -> None:
        """Begin a file with what an engine knows."""
        self.close()
        self._guarded(lambda: self._begin(state))

    def write(self, call: Call, plan: Json | None = None) -> None:
        """Write a call, and of a cycle what it decided."""
        if self._file is not None:
            file, line = self._file, written(call, plan)
            self._left -= len(line)
            self._guarded(lambda: file.write(line))

    def decided(self, state: Callable[[], Iterable[Call]] | None) -> None:
        """A cycle is over: what was written is handed to the system, and if the file is full, one begins.

        `state` tells what the engine knows. None: the engine has not settled, and none begins yet.
        """
        if self._file is not None:
            self._guarded(self._file.flush)
            if self._left <= 0 and state is not None:
                self.begin(state())

    def close(self) -> None:
        if self._file is not None:
            self._guarded(self._file.close)
            self._file = None

    def _guarded(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            self._file = None
            words = {"folder": str(self._folder), "error": str(error)}
            log.warning("the journal can't be written, and ends", **words)

    def _begin(self, state: Iterable[Call]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        before = files(self._folder)
        number = _number(before[-1]) + 1 if before else 1
        # Should two processes have the same folder, neither writes to the other's file.
        self._file = (self._folder / f"{PREFIX}{number:06}{SUFFIX}").open("xb")
        header = {"journal": VERSION, "admitter": self._version}
        self._file.write(orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE))
        for call in state:
            self._file.write(written(call))
        self._file.flush()
        self._left = self._most  # however much is known, so much more is written
        for path in before[: max(0, len(before) + 1 - self._files)]:
            path.unlink(missing_ok=True)


def files(folder: Path) -> list[Path]:
    """The journals in a folder, the oldest first."""
    return sorted((path for path in folder.glob(f"{PREFIX}*{SUFFIX}") if _number(path)), key=_number)


def _number(path: Path) -> int:
    text = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
    return int(text) if text.isascii() and text.isdecimal() else 0


def lines(path: Path) -> Iterator[tuple[int, Json]]:
    """The lines of a journal with their numbers, the header first, and without a last one that is cut off.

    Raises:
        JournalError: it can't be read, or is no journal; the file and the line are named.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return  # the process ended while it was being written
                found = _read(path, number, line)
                if number == 1 and found.get("journal") != VERSION:
                    raise JournalError(f"{path}: is no journal of format {VERSION}")
                yield number, found
    except OSError as error:
        raise JournalError(f"{path}: can't be read: {error.strerror}") from error


def _read(path: Path, number: int, line: bytes) -> Json:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise JournalError(f"{path}:{number}: is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise JournalError(f"{path}:{number}: is no object")
    return found

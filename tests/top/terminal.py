"""A terminal of 80 × 24, in which a command runs as its users start it."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.patience import PATIENCE_SECONDS

QUIET_SECONDS = 1.5


class Terminal:
    """What came out of it, and keys that go in."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.written = b""
        self.process = process
        self._master = master

    def until(self, words: str) -> None:
        """Read until the command has written some words."""
        end = time.monotonic() + PATIENCE_SECONDS
        while words.encode() not in self.written:
            assert time.monotonic() < end, self.written.decode(errors="replace")
            self._read(1.0)

    def quiet(self) -> int:
        """Read until nothing more comes; how many bytes have been written so far."""
        while select.select([self._master], [], [], QUIET_SECONDS)[0]:
            assert self._read(0), "it has ended"
        return len(self.written)

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())

    def ended(self) -> int:
        """Wait for the end of the command; its exit status."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self._read(1.0):
            assert time.monotonic() < end, "it does not end"
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self, seconds: float) -> bool:
        """Take what there is; whether there may be more."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self._master, 65_536)
        except OSError:  # no process has the other end open any more
            return False
        self.written += piece
        return bool(piece)


@contextmanager
def terminal(*arguments: str, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run `admitter` with these arguments; it is ended if it does not end."""
    outside = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "admitter", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**outside, "TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)

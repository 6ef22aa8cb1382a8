"""`admitter run`, by a clock that jumps: `python -m tests.faults.replica FILE ARGUMENTS...`.

FILE holds eight bytes: by how many seconds the clock is wrong, as a double. A process that writes
them makes it jump.
"""

import mmap
import struct
import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

from admitter.cli import main, run


class Jumping(datetime):
    """A clock that is wrong by what a file says."""

    error: mmap.mmap

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        (seconds,) = struct.unpack("d", cls.error[:8])
        return super().now(tz) + timedelta(seconds=seconds)


def jump(file: Path, seconds: float) -> None:
    """Make the clock of the processes that run by a file wrong by so many seconds from now on."""
    with file.open("r+b" if file.exists() else "w+b") as opened:
        opened.write(struct.pack("d", seconds))


if __name__ == "__main__":
    with Path(sys.argv.pop(1)).open("rb") as opened:
        Jumping.error = mmap.mmap(opened.fileno(), 8, prot=mmap.PROT_READ)
    assert "datetime" in vars(run), "the clock of `admitter run` is made elsewhere now"
    vars(run)["datetime"] = Jumping
    main.main()

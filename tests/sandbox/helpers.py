"""What the tests of the sandbox share."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil


def eventually(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s it is not so that {what}"
        time.sleep(0.02)


def processes_in(folder: Path) -> list[str]:
    """Names of the processes that work in the folder, as supervisors and components do."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder:
                found.append(process.name())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return sorted(found)


@contextmanager
def started(*command: str, environment: Mapping[str, str] | None = None) -> Iterator["subprocess.Popen[str]"]:
    """A program that runs, and is killed if the test fails before it ends."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        preexec_fn=_heed_ctrl_c,  # noqa: PLW1509 (sets a signal's default action, no more)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _heed_ctrl_c() -> None:
    # Programs that a shell runs in the background ignore it, and so would the children of their tests.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sandbox_command(*arguments: str) -> list[str]:
    """The command line of `admitter sandbox` with these arguments."""
    return [sys.executable, "-c", "from admitter.cli.sandbox import app; app()", *arguments]


def write_program(path: Path, script: str) -> Path:
    """A shell script that stands for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path

"""What the tests of the sandbox share."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

_COMMAND = "from admitter.cli.sandbox import app; app()"


def eventually(condition: Callable[[], object], what: str, seconds: float = 30) -> None:
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


def start_command(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """`admitter sandbox` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_program(path: Path, script: str) -> Path:
    """A shell script that stands for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path

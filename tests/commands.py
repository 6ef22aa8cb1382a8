"""`admitter` as its users type it: in this process, or in one of its own if that is what is tested.

A process of its own takes a second of CPU to load what this one has loaded already.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import structlog
from typer.testing import CliRunner

from admitter.cli.main import main

Ended = subprocess.CompletedProcess[str]


def admitter(*arguments: str, content: str = "") -> Ended:
    """What a command says and how it ends, if `content` comes in; errors are told as `main` tells them."""
    typed = ["admitter", *arguments]
    with (
        CliRunner().isolation(input=content) as (output, errors, _),
        mock.patch.object(sys, "argv", typed),
        _own_log(),
    ):
        status = _status()
        sys.stdout.flush()
        sys.stderr.flush()
        said = [each.getvalue().decode().replace("\r\n", "\n") for each in (output, errors)]
    return subprocess.CompletedProcess(typed, status, *said)


def process(*arguments: str, content: str = "") -> Ended:
    """The same of a process of its own."""
    command = [sys.executable, "-m", "admitter", *arguments]
    return subprocess.run(command, input=content, capture_output=True, text=True, check=False)


def _status() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def _own_log() -> Iterator[None]:
    """What the command says of logs ends with it: its standard error is closed then."""
    before, configure = structlog.get_config(), structlog.configure

    def for_now(**options: Any) -> None:
        configure(**options | {"cache_logger_on_first_use": False})

    try:
        with mock.patch.object(structlog, "configure", for_now):
            yield
    finally:
        configure(**before)

"""Commands as their users type them, without a process of their own for each."""

import subprocess
import sys
from unittest import mock

from typer.testing import CliRunner

from admitter.cli.main import main


def admitter(*arguments: str, content: str = "") -> "subprocess.CompletedProcess[str]":
    """What a command says and how it ends, if `content` comes in; errors are told as `main` tells them."""
    typed = ["admitter", *arguments]
    with (
        CliRunner().isolation(input=content) as (output, errors, _),
        mock.patch.object(sys, "argv", typed),
    ):
        status = _status()
        sys.stdout.flush()
        sys.stderr.flush()
        said = [each.getvalue().decode().replace("\r\n", "\n") for each in (output, errors)]
    return subprocess.CompletedProcess(typed, status, *said)


def _status() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)  # a text, which Python would write, is none
    return 0

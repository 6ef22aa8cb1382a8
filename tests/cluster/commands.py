"""`admitter` as an administrator types it: in this process, or in one of its own if that is what is tested.

A process of its own takes a second of CPU to load what this one has loaded already.
"""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from admitter.cli.main import main

Ended = subprocess.CompletedProcess[str]


def admitter(*arguments: str, answer: str = "") -> Ended:
    """Run the command, with an answer to its question."""
    said, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    command = ["admitter", *arguments]
    with (
        redirect_stdout(said),
        redirect_stderr(errors),
        patch("sys.argv", command),
        patch("sys.stdin", io.StringIO(answer)),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return subprocess.CompletedProcess(command, status, _text(said), _text(errors))


def _text(stream: io.TextIOWrapper) -> str:
    """All that was written."""
    stream.seek(0)
    return stream.read()


def process(*arguments: str, answer: str = "") -> Ended:
    """Run it as a process of its own."""
    command = [sys.executable, "-m", "admitter", *arguments]
    return subprocess.run(command, input=answer, capture_output=True, text=True, check=False)


def installs(kubeconfig: object, *options: str) -> Ended:
    """Install Admitter without its Deployment, in this process; that it can't is a failure."""
    done = admitter("install", "--without-deployment", f"--kubeconfig={kubeconfig}", *options)
    assert done.returncode == 0, done.stderr
    return done

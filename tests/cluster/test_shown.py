"""What pages show of a cluster: their commands are typed one after the other, and print what is shown."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.operated import ASKED_KINDS
from tests.cluster.waiting import eventually
from tests.test_docs import ROOT, trimmed, typed

pytestmark = [pytest.mark.cluster, pytest.mark.long]

TUTORIAL = ("tutorials/own-kind.md",)
KINDS = ("kinds.md", "kinds/jobset.md", "kinds/ray.md", "kinds/trainjob.md")
"""Read in this order: the first starts what the others use."""
OPTIONAL = [
    pytest.param((f"kinds/{page}.md",), id=f"optional-{page}")
    for page in dict.fromkeys(kind.page or kind.resource for kind in ASKED_KINDS)
]
"""Each starts what it uses itself."""
LOOKING = (
    "kubectl get ",
    "kubectl describe ",
    "kubectl wait workloads ",
    "admitter get ",
    "admitter explain ",
)
VARIES = re.compile(
    r"(?P<dots>\.\.\.)"
    r"|(?P<age>\b\d+(?:ms|[smh])(?:\d+s)?\b|\b\d+ (?:min|s)\b(?: \d+ s\b)?)"
    r"|(?P<end>(?<=-)(?:[0-9a-f]{10}|[b-df-hj-np-tv-z2456789]{5})\b)"
    r"|(?P<gap>\s+)"
)
PATTERNS = {"dots": ".*", "age": r"[\d smin]+", "end": "[a-z0-9]+", "gap": r"\s+"}
DONE = "typed and done"


class Terminal:
    """A shell in the checkout, with `admitter` on its path, that knows no other sandbox."""

    def __init__(self, state: Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(state)}
        self._shell = subprocess.Popen(
            ["bash"],  # noqa: S607  # as its reader would
            cwd=ROOT,
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> str:
        """What a command prints."""
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.write(f"{command}\necho {DONE}\n")
        self._shell.stdin.flush()
        return "".join(iter(self._shell.stdout.readline, f"{DONE}\n"))

    def close(self) -> None:
        """End the shell, and the last thing that it has put into the background."""
        assert self._shell.stdin
        self._shell.stdin.write("kill $!\n")
        self._shell.communicate()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with ExitStack() as stack:
        stack.callback(ControlPlane.stop_in, tmp_path / "admitter" / "sandbox" / "default")
        made = Terminal(tmp_path)
        stack.callback(made.close)
        yield made


def pattern(shown: str) -> re.Pattern[str]:
    """What may be printed: ages, ends of names and gaps vary, and three dots stand for anything."""
    found, last = "", 0
    for part in VARIES.finditer(shown):
        assert part.lastgroup
        found += re.escape(shown[last : part.start()]) + PATTERNS[part.lastgroup]
        last = part.end()
    return re.compile(found + re.escape(shown[last:]), re.DOTALL)


def printed(terminal: Terminal, command: str, expected: re.Pattern[str]) -> str:
    """What a command prints, or one that only looks at last: the cluster takes its time."""
    said = ""

    def is_as_expected() -> bool:
        nonlocal said
        said = trimmed(terminal.type(command))
        return bool(expected.fullmatch(said))

    with suppress(AssertionError):  # the caller sees what was printed
        eventually(is_as_expected, timeout=180 if command.startswith(LOOKING) else 0, every=1)
    return said


def types(terminal: Terminal, page: Path, heading: str = "") -> int:
    """Type the commands of a page, or of one of its sections; returns how many print what is shown: all."""
    count = 0
    for command, shown in typed(page, heading):
        expected = pattern(trimmed(shown))
        said = printed(terminal, command, expected)
        assert expected.fullmatch(said), f"{page.relative_to(ROOT)}: $ {command}\n{said}"
        count += 1
    return count


@pytest.mark.parametrize(
    "pages", [pytest.param(TUTORIAL, id="tutorial"), pytest.param(KINDS, id="kinds"), *OPTIONAL]
)
def test_each_command_of_a_page_prints_what_is_shown(terminal: Terminal, pages: tuple[str, ...]) -> None:
    for page in pages:
        types(terminal, ROOT / "docs" / page)


def test_each_command_of_the_first_queue_prints_what_is_shown(terminal: Terminal) -> None:
    """They run in a sandbox as in any cluster, as the README says."""
    readme = ROOT / "README.md"
    assert "`admitter sandbox up --with-controller` gives you an empty cluster" in readme.read_text()
    terminal.type('admitter sandbox up --with-controller && eval "$(admitter sandbox env)"')
    assert types(terminal, readme, "Your first queue") >= 8

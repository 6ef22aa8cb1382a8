"""A command that has read a cluster ends at once: with its status, and nothing that it said is lost."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHAT_IF = "what-if --state docs/examples/monday.json --without ClusterQueue/team-b --fail-on never"


def _end(arguments: str, redirections: str = "") -> "subprocess.CompletedProcess[str]":
    line = f"{shlex.quote(sys.executable)} -m admitter {arguments} {redirections}"
    command = ["bash", "-c", line]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("redirections", ["", ">/dev/null", "2>&-", ">/dev/null 2>&-"])
def test_its_status_is_its_own_whatever_reads_its_output(redirections: str) -> None:
    assert _end(WHAT_IF, redirections).returncode == 3


def test_nothing_is_lost_in_a_pipe() -> None:
    made = _end(f"{WHAT_IF} -o json")
    assert made.stdout.startswith("{")
    assert made.stdout.endswith("}\n")


def test_a_full_disk_is_said() -> None:
    made = _end(WHAT_IF, ">/dev/full")
    assert made.returncode not in {0, 3}
    assert "No space left" in made.stderr

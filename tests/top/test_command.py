"""`admitter top` as it is typed."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from admitter.client.errors import ApiError, ClusterError, NotFoundError, UnreachableError
from admitter.insight.pages import spelled
from admitter.insight.snapshot_file import dump
from tests.top.clusters import company
from tests.top.terminal import terminal

COLOUR = re.compile(rb"\x1b\[[\d;]*(3[0-8]|4[0-8]|9[0-7])[\d;]*m")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(dump(company().snapshot()))
    return path


def test_a_snapshot_in_a_terminal(snapshot: Path) -> None:
    with terminal("top", "--state", str(snapshot), environment={}) as shown:
        shown.until("state.json, a snapshot")
        shown.until("team-b")
        first = shown.quiet()
        assert first < 25_000, "bytes until it is there, and while nothing changes"
        shown.press("j")
        shown.until("ClusterQueue team-a")
        assert shown.quiet() - first < 1_500, "bytes for a key"
        shown.press("/quack")
        shown.until("Nothing has “quack” in its name.")
        shown.press("\x1b")
        shown.quiet()  # a terminal sends Alt with a key as Escape and the key
        shown.press("q")
        assert shown.ended() == 0
    assert COLOUR.search(shown.written), "colours, where they are not unwanted"


def test_no_colours_if_they_are_unwanted(snapshot: Path) -> None:
    with terminal("top", "--state", str(snapshot), environment={"NO_COLOR": "1"}) as shown:
        shown.until("team-b")
        shown.press("q")
        assert shown.ended() == 0
    assert not COLOUR.search(shown.written)


def test_an_api_server_that_is_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    config = {
        "clusters": [{"name": "away", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "far-away", "context": {"cluster": "away", "user": "me"}}],
        "current-context": "far-away",
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    with terminal("top", "--kubeconfig", str(path), environment={}) as shown:
        shown.until(f"far-away  http://127.0.0.1:{port}")
        shown.until("No answer from the API server: ")
        shown.press("q")
        assert shown.ended() == 0


def test_without_a_terminal_it_names_what_needs_none(snapshot: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "admitter", "top", "--state", str(snapshot)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    words = "error: admitter top needs a terminal; admitter get workloads -A prints a list"
    assert answer.stderr.strip() == words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UnreachableError("GET /pods: refused"), "No answer from the API server: GET /pods: refused"),
        (
            ApiError(403, "Forbidden", "you may not"),
            "A right is missing: to list things in the whole cluster; ClusterRole admitter-reader gives it.",
        ),
        (
            ApiError(401, "Unauthorized", "unknown user"),
            "The API server does not know this user: unknown user",
        ),
        (NotFoundError(404, "NotFound", "no"), "There is no /things in this cluster: is Admitter installed?"),
        (ApiError(500, "InternalError", "oops"), "The API server says of /things: oops"),
    ],
)
def test_what_stands_in_the_way_is_said_with_what_helps(error: ClusterError, words: str) -> None:
    assert spelled("/things", error).startswith(words)

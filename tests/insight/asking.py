"""Commands that look at a snapshot, as their users type them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from admitter.cli.main import app
from admitter.insight.forecast import playing, timed
from admitter.insight.snapshot_file import dump
from tests.insight.states import Json, State

AT_LEISURE = ("--estimate-for", "1h")
"""What is said does not depend on how busy the machine is."""


def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play in turn, as where a process can't be copied: to copy this one takes longer than to play."""
    for module in (playing, timed):
        monkeypatch.setattr(module, "can_copy", lambda: False)


class Desk:
    """A user that asks about one state of a cluster."""

    def __init__(self, state: State, folder: Path) -> None:
        self._folder = folder
        self._state = folder / "state.json"
        self._state.write_bytes(dump(state.snapshot()))

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        """What a command prints."""
        return self.ask(*arguments, exit_code=exit_code).stdout

    def ask(self, *arguments: str, exit_code: int = 0) -> Result:
        """What a command prints, to standard error too."""
        answer = CliRunner().invoke(app, [*arguments, "--state", str(self._state)])
        assert answer.exit_code == exit_code, (answer.stderr, answer.exception)
        return answer

    def explain(self, name: str, namespace: str = "a") -> Any:
        """All that is said of a Job."""
        return json.loads(self.run("explain", name, "-n", namespace, *AT_LEISURE, "-o", "json"))

    def tell(self, name: str, namespace: str = "a") -> list[str]:
        """The same for people, a line each."""
        return self.run("explain", name, "-n", namespace, *AT_LEISURE).splitlines()

    def what_if(self, *manifests: Json, options: tuple[str, ...] = (), exit_code: int = 0) -> Any:
        """What a change would do."""
        path = self._folder / "change.yaml"
        path.write_text(yaml.safe_dump_all(manifests))
        given = ["-f", str(path)] if manifests else []
        return json.loads(
            self.run("what-if", *given, *AT_LEISURE, *options, "-o", "json", exit_code=exit_code)
        )

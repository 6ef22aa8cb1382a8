"""What `admitter sandbox up` asks of the control plane: to start one takes programs that are built first."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.sandbox.control_plane import ControlPlane


@dataclass
class Running:
    """A control plane that was started, beside which no operator is to run."""

    folder: Path
    started: bool = True


@pytest.mark.parametrize(("options", "wanted"), [(["--kubernetes", "1.33"], "1.33"), ([], None)])
def test_the_release_that_is_asked_for_is_the_one_that_starts(
    options: list[str], wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def start(folder: Path, *, kubernetes: str | None = None, **_: Any) -> Running:
        assert folder.name == "oldest"
        asked.append(kubernetes)
        return Running(tmp_path)

    monkeypatch.setattr(ControlPlane, "start", start)
    answer = CliRunner().invoke(app, ["sandbox", "up", *options, "--name", "oldest"])
    assert answer.exit_code == 0, answer.output
    assert asked == [wanted]
    assert "Sandbox oldest is up" in answer.stdout

"""The manifests of the tutorials: valid, clean for lint, and decided as the pages say."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.api.base import problems
from admitter.api.kinds import KINDS
from admitter.cli.main import app

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
OWN = {kind.__name__: kind for kind in KINDS}


def ran(*arguments: str) -> Any:
    answer = CliRunner().invoke(app, list(arguments))
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def states(example: str, until: str) -> dict[str, str]:
    result = ran("simulate", str(EXAMPLES / example), "--until", until, "-o", "json")
    assert result["errors"] == []
    return {row["job"]: row["state"] for row in result["workloads"]}


@pytest.mark.parametrize("example", ["first-queue", "two-teams"])
def test_the_manifests_of_a_tutorial_are_valid_and_lint_finds_nothing(example: str) -> None:
    for path in (EXAMPLES / example).glob("*.yaml"):
        for manifest in yaml.safe_load_all(path.read_text()):
            if manifest["apiVersion"].startswith("admitter.dev/"):
                assert problems(OWN[manifest["kind"]], manifest) == []
    assert ran("lint", str(EXAMPLES / example), "--fail-on", "note", "-o", "json") == []


def test_the_second_job_of_the_first_queue_starts_when_the_first_has_ended() -> None:
    assert states("first-queue", "5m") == {"sort-1": "Admitted", "sort-2": "Pending"}
    assert states("first-queue", "15m") == {"sort-1": "Finished", "sort-2": "Admitted"}


def test_a_team_reclaims_the_gpus_that_it_lent_and_the_borrower_returns() -> None:
    borrowed = {"resnet": "Admitted", "vit": "Admitted", "label": "Admitted"}
    assert states("two-teams", "20m") == borrowed
    assert states("two-teams", "40m") == {**borrowed, "whisper": "Admitted", "vit": "Pending"}
    assert states("two-teams", "95m")["vit"] == "Admitted"

"""Each command's help has examples, and what they type exists."""

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException
from typer.testing import CliRunner

from admitter.cli.main import app
from tools.docs.cli import Documented, commands

EVERY = [pytest.param(each, id=each.path.replace(" ", "-")) for each in commands()]


def typed(line: str) -> list[list[str]]:
    """The command lines of Admitter in one of a shell, as words."""
    found = re.findall(r"\badmitter( [^|>&;)]*)?", line)
    return [shlex.split(rest.replace('"', "")) for rest in found]


def parse(words: list[str]) -> None:
    """Parse a command line, and run nothing.

    Raises:
        UsageError: there is no such command or option, or a value can't be.
    """
    command: Any = typer.main.get_command(app)
    path = "admitter"
    while hasattr(command, "commands"):
        assert words, f"{path} needs a command"
        name, *words = words
        assert name in command.commands, f"{path} has no command {name}"
        command, path = command.commands[name], f"{path} {name}"
    command.make_context(path, list(words))


@pytest.mark.parametrize("documented", EVERY)
def test_a_command_has_examples_that_parse(
    documented: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documented.examples, f"{documented.path} has no line 'Examples:' with a list of `commands` below"
    monkeypatch.chdir(tmp_path)
    for line, _ in documented.examples:
        assert documented.path in line
        lines = typed(line)
        assert lines
        for words in lines:
            make_files(words)
            parse(words)


def make_files(words: list[str]) -> None:
    """Files and folders that an example reads are there."""
    for word in words:
        assert not os.path.isabs(word), f"{word} is not everybody's"  # noqa: PTH117  # of a text
        if re.search(r"\.(json|jsonl|yaml|kubeconfig)$", word):
            Path(word).touch()
        elif word.endswith("/"):
            Path(word).mkdir(exist_ok=True)


@pytest.mark.parametrize("documented", EVERY)
def test_help_shows_them(documented: Documented) -> None:
    answer = CliRunner().invoke(app, [*documented.path.split()[1:], "--help"], env={"COLUMNS": "200"})
    assert answer.exit_code == 0
    for line, _ in documented.examples:
        assert line in answer.stdout


@pytest.mark.parametrize(
    "line", ["admitter explian x", "admitter explain", "admitter lint --shout", "admitter lint -o xml quota"]
)
def test_an_example_that_is_wrong_would_be_found(line: str) -> None:
    (words,) = typed(line)
    with pytest.raises((AssertionError, TyperException)):
        parse(words)

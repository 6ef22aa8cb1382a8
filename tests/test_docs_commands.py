"""What pages show without running it: command lines that exist, columns that kinds have, texts of fields."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from admitter.api.kinds import KINDS
from admitter.cli.main import app
from tests.test_docs import PAGES, ROOT

KUBECTL_NAMES = {
    name: kind
    for kind in KINDS
    for name in (kind.plural, kind.plural.removesuffix("s"), kind.short_name, f"{kind.plural}.admitter.dev")
}


def command_lines(page: Path) -> Iterator[str]:
    """Those of Admitter in blocks and in code between words."""
    text = page.read_text()
    blocks = re.findall(r"^ *```(?:console|sh)?\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for line in [*lines, *re.findall(r"`([^`\n]+)`", prose)]:
        yield from re.findall(r"(?:^|[|(;] *|^kubectl )admitter (?=[a-z-])([^|>;)]*)", line)


def unknown(line: str) -> Iterator[str]:
    """Words of a command line that no command and no option has; only `--help` is everywhere.

    Words in capitals stand for something, three dots for more.
    """
    command: Any = typer.main.get_command(app)
    words = line.split()
    while words and hasattr(command, "commands"):
        if words[0].startswith("-") or words[0].isupper() or "…" in words[0]:
            break
        name, *words = words
        if name not in command.commands:
            yield f"no command {name}"
            return
        command = command.commands[name]
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        option = word.partition("=")[0].strip("[]…")
        if re.match(r"--?[a-zA-Z]", option) and option not in options:
            yield f"no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    assert [(line, wrong) for line in command_lines(page) for wrong in unknown(line)] == []


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("simulate FILE --until 4m", []),
        ("sandbox up --nods x", ["no option --nods"]),
        ("expalin x", ["no command expalin"]),
        ("get queues", ["no command queues"]),
    ],
)
def test_what_does_not_exist_is_found(line: str, wrong: list[str]) -> None:
    assert list(unknown(line)) == wrong


def test_command_lines_are_found() -> None:
    found = [line.split()[0] for page in PAGES for line in command_lines(page)]
    assert len(found) > 100
    assert {"explain", "run", "install", "simulate", "import", "sandbox"} <= set(found)


def tables() -> Iterator[tuple[str, list[str]]]:
    """What kubectl is asked to list on pages, and the headings that are shown."""
    for page in PAGES:
        for typed in re.split(r"^\$ ", page.read_text(), flags=re.MULTILINE)[1:]:
            command, _, output = typed.partition("\n")
            output = output.partition("```")[0]
            if command.startswith("kubectl get "):
                yield command, re.findall(r"^NAME(?:SPACE)? .*$", output, flags=re.MULTILINE)


def test_tables_of_kubectl_have_the_columns_of_their_kinds() -> None:
    compared = 0
    for command, headings in tables():
        asked = command.split()[2].split(",")
        kinds = [KUBECTL_NAMES[name] for name in asked if name in KUBECTL_NAMES]
        wide = "-o wide" in command
        for kind, heading in zip(kinds, headings, strict=bool(kinds)):
            columns = [column.name.upper() for column in kind.columns if wide or not column.wide]
            shown = re.split(r"\s{2,}", heading.removeprefix("NAMESPACE").strip())
            assert shown == ["NAME", *columns], command
            compared += 1
    assert compared >= 5


def test_what_kubectl_explains_is_what_the_definition_says() -> None:
    text = (ROOT / "README.md").read_text().partition("$ kubectl explain workload.status\n")[2]
    shown = re.findall(
        r"^  (\w+)\t<\S+>\n((?:  (?:enum|  ).*\n)+)", text.partition("```")[0], flags=re.MULTILINE
    )
    definition = yaml.load((ROOT / "crds" / "workloads.yaml").read_text(), yaml.CSafeLoader)
    (version,) = definition["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert {name for name, _ in shown} == set(fields)
    for name, words in shown:
        described = re.sub(r"^  enum: .*\n", "", words, flags=re.MULTILINE)
        assert " ".join(described.split()) == " ".join(fields[name]["description"].split()), name

"""Nothing is undocumented: each word that users meet has a row in the page that is its reference.

Metrics: tests/controllers/test_metrics.py. Lines of the log: tests/controllers/test_decisions.py. Keys of the
configuration: tests/cli/test_configuration.py. Exit statuses: tests/cli/test_exits.py.
"""

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter import names
from admitter.api import conditions
from admitter.api.base import own_name
from admitter.made_files import write_or_check
from tools.docs import pages
from tools.docs.cli import Documented, commands

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONTROLLERS = sorted((ROOT / "admitter" / "controllers").rglob("*.py"))

SECTIONS = {
    conditions.WorkloadState: "STATUS",
    conditions.ConditionType: "Conditions",
    conditions.WaitingReason: "Why a Workload waits",
    conditions.EvictedReason: "Why a Workload had to stop",
    conditions.PlacementReason: "Why a Job has no queue",
    conditions.EventReason: "What else events tell",
    conditions.PendingReason: "Whether it has to stop soon",
    conditions.FinishedReason: "How it ended",
    conditions.ActiveReason: "Whether a queue, elastic quota or flavor works",
}
"""Which part of docs/reasons.md has the words of which enumeration."""


def section(page: str, heading: str) -> str:
    """What stands under a heading."""
    found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {heading}"
    return found[2]


def rows(text: str) -> dict[str, str]:
    """The code in the first column of tables, and what stands behind it."""
    found = re.findall(r"^\| `([^`]+)`[^|]*\| (.*) \|$", text, flags=re.MULTILINE)
    assert len(found) == len({code for code, _ in found}), "a row is there twice"
    return dict(found)


def test_each_enumeration_of_words_is_documented() -> None:
    found = {
        each
        for each in vars(conditions).values()
        if isinstance(each, type) and issubclass(each, StrEnum) and each is not StrEnum
    }
    assert found == set(SECTIONS)


@pytest.mark.parametrize("enumeration", SECTIONS, ids=lambda each: each.__name__)
def test_each_word_has_a_row_with_its_meaning(enumeration: type[StrEnum]) -> None:
    written = rows(section((DOCS / "reasons.md").read_text(), SECTIONS[enumeration]))
    assert set(written) == set(enumeration)
    assert all(re.match(r"\S.{10,}", meaning) for meaning in written.values())


def test_each_reason_that_controllers_give_is_of_an_enumeration() -> None:
    """So that a new one, written where it arises, can't pass the tests above."""
    by_hand = [
        f"{path.name}:{node.lineno}"
        for path in CONTROLLERS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and called(node) in TELLING
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and re.fullmatch(r"([A-Z][a-z]+)+", argument.value)
    ]
    assert by_hand == []


TELLING = {"condition", "record", "_tell", "Waiting", "waiting", "evicted", "finished"}
"""What is called with a reason."""


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def words(value: Any) -> Iterator[str]:
    """The texts in a constant of admitter/names.py."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | dict):
        yield from value


def shared_names() -> set[str]:
    """Labels, annotations and resources: constants, and what manifests and code write by itself."""
    constants = {word for value in vars(names).values() for word in words(value)}
    named = {word for word in constants if re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[a-z].*", word)}
    files = [
        path
        for folder in ("admitter", "manifests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".yaml"}
    ]
    texts = [re.findall(r"\badmitter\.dev/[a-z][a-z.-]*[a-z](?!\d)\b", path.read_text()) for path in files]
    return (named | {word for found in texts for word in found}) - {names.API_VERSION}


def test_each_label_annotation_and_resource_has_a_row() -> None:
    found = shared_names()
    written = rows((DOCS / "reference" / "labels.md").read_text())
    assert set(written) == found
    assert own_name("nos.nebuly.com/gpu-memory") in found


def test_the_generated_parts_are_what_the_code_says() -> None:
    assert write_or_check(["--check"], pages.contents()) == 0


def fields(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each field below one, with its description."""
    for name, each in schema.get("properties", {}).items():
        yield f"{prefix}{name}", " ".join(each["description"].split())
        for inner, mark in ((each, "."), (each.get("items", {}), "[].")):
            yield from fields(inner, f"{prefix}{name}{mark}")


@pytest.mark.parametrize("file", sorted((ROOT / "crds").glob("*.yaml")), ids=lambda path: path.stem)
def test_each_field_of_a_kind_has_a_row_with_its_description(file: Path) -> None:
    spec = yaml.safe_load(file.read_text())["spec"]
    page, kind = (DOCS / "reference" / "api.md").read_text(), spec["names"]["kind"]
    assert f"\n| [{kind}](#{kind.lower()}) | " in page
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    for part in schema.keys() & {"spec", "status"}:
        written = rows(section(page, f"{kind} {part}"))
        found = dict(fields(schema[part]))
        assert set(written) == set(found)
        for path, description in found.items():
            cells = re.fullmatch(r"[^|]+ \| [^|]*\| (.*)", written[path])
            assert cells is not None
            assert cells[1] == description
            assert len(description) > 8, f"{kind} {part}.{path} is not described"


EVERY = [pytest.param(each, id=each.path.replace(" ", "-")) for each in commands()]


@pytest.mark.parametrize("documented", EVERY)
def test_each_command_and_option_has_a_row(documented: Documented) -> None:
    page = (DOCS / "reference" / "cli.md").read_text()
    text = section(page, documented.path)
    options = [name for each in documented.command.params for name in each.opts if name.startswith("-")]
    for option in options:
        assert re.search(rf"^\| [^|]*`{option}`[^|]* \| .* \| \S[^|]{{8,}} \|$", text, re.MULTILINE), option
    assert len(documented.meaning) > 15
    assert all(each.help for each in documented.command.params)


def test_a_page_without_its_mark_is_refused() -> None:
    with pytest.raises(ValueError, match=r"docs/reference/cli\.md has no line"):
        pages.rendered("cli.md", "# By hand\n")

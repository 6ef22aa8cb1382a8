"""What `make test-versions` runs is there: pytest is given the list, and a name that is gone would end it."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LISTED = (ROOT / "tests" / "versions.txt").read_text().split("\n")


@cache
def named_in(path: str) -> frozenset[str]:
    """The names of the tests of a file."""
    parts = ast.parse((ROOT / path).read_text()).body
    functions = (each for each in parts if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def missing(line: str) -> str:
    """What a line names that is not there; empty if all of it is."""
    path, _, name = line.partition("::")
    if not (ROOT / path).is_file():
        return path
    there = named_in(path)
    return "" if (name.partition("[")[0] in there if name else there) else line


@pytest.mark.parametrize("line", LISTED[:-1])
def test_a_line_of_the_list_names_a_test(line: str) -> None:
    assert missing(line) == ""


def test_the_list_has_each_test_once_and_ends_with_its_last_line() -> None:
    assert LISTED[-1] == ""
    assert len({*LISTED}) == len(LISTED)
    whole = {line for line in LISTED if "::" not in line}
    assert not [line for line in LISTED if "::" in line and line.partition("::")[0] in whole]


@pytest.mark.parametrize(
    "line",
    ["", "tests/cluster/test_gone.py", f"tests/{Path(__file__).name}::test_gone", "tests/commands.py"],
)
def test_what_is_not_there_is_found(line: str) -> None:
    assert missing(line) == line

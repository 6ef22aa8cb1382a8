"""The generated parts of docs/reference: what stands above the mark in a page is written by hand.

The text is where the code is: options' help, docstrings of commands, descriptions of fields. So a page can't
say anything else than the program does.
"""

import difflib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tools.docs import api, cli

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
MARK: Final = "<!-- What follows is written by `make crds`. Do not edit. -->\n"
GENERATED: Final[dict[str, Callable[[], Iterable[str]]]] = {"api.md": api.lines, "cli.md": cli.lines}
"""The pages, and what gives the lines below the mark."""


def rendered(name: str, found: str) -> str:
    """A page as it should be.

    Args:
        name: its file name.
        found: the page as it is, of which everything up to the mark stays.

    Raises:
        ValueError: there is no mark in it.
    """
    by_hand, mark, _ = found.partition(MARK)
    if not mark:
        raise ValueError(f"docs/reference/{name} has no line {MARK.strip()}")
    return "".join([by_hand, mark, *(f"{line}\n" for line in GENERATED[name]())])


def differences(folder: Path) -> list[str]:
    """How the pages in a folder differ from what they should be, as the lines of a diff."""
    lines: list[str] = []
    for name in GENERATED:
        found = (folder / name).read_text()
        wanted = rendered(name, found)
        of, by = f"docs/reference/{name}", f"docs/reference/{name} by the code"
        lines += difflib.unified_diff(found.splitlines(), wanted.splitlines(), of, by, lineterm="")
    return lines


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` say how they differ; 1 if they do."""
    if arguments == ["--check"]:
        lines = differences(FOLDER)
        if lines:
            sys.stdout.write(
                "\n".join([*lines, "", "docs/reference differs from the code: run make crds", ""])
            )
        return 1 if lines else 0
    for name in GENERATED:
        page = FOLDER / name
        page.write_text(rendered(name, page.read_text()))
    return 0

"""The generated parts of docs/reference: what stands above the mark in a page is written by hand.

The text is where the code is: options' help, docstrings of commands, descriptions of fields. So a page can't
say anything else than the program does.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from admitter.made_files import ROOT
from tools.docs import api, cli

FOLDER: Final = ROOT / "docs" / "reference"
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


def contents() -> dict[Path, str]:
    """The texts of the pages."""
    return {FOLDER / name: rendered(name, (FOLDER / name).read_text()) for name in GENERATED}

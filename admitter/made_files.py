"""Files that are made of code or of other files: `make crds` writes them, `--check` shows how they differ."""

import sys
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from os.path import relpath
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def differences(wanted: Mapping[Path, str], found: Iterable[Path] = ()) -> Iterable[str]:
    """How files differ from their wanted texts, as the lines of a diff; others that are found are to go."""
    for path in sorted({*wanted, *found}):
        is_now = path.read_text() if path.is_file() else ""
        name, made = relpath(path, ROOT), wanted.get(path, "")
        yield from unified_diff(
            is_now.splitlines(), made.splitlines(), name, f"{name} by its source", lineterm=""
        )


def write_or_check(arguments: list[str], wanted: Mapping[Path, str], found: Iterable[Path] = ()) -> int:
    """Write files and delete others that are found, or with `--check` show how they differ; 1 if they do."""
    if arguments == ["--check"]:
        lines = list(differences(wanted, found))
        if lines:
            sys.stdout.write(
                "\n".join([*lines, "", "these files differ from their source: run make crds", ""])
            )
        return 1 if lines else 0
    for path in set(found) - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0

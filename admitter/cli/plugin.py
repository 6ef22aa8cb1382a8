"""What `kubectl` asks of its plugin `kubectl admitter`: the words that may follow on a command line.

kubectl runs `kubectl_complete-admitter` with the words typed so far, the last one perhaps not complete. They
are answered as a shell is answered that shows a word with its meaning, which is how kubectl wants them.
"""

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from admitter.cli.main import app

NO_FILES: Final = ":4"
"""kubectl's sign that file names are not to be offered beside."""


def complete(words: list[str]) -> list[str]:
    """Words that may follow those typed after `kubectl admitter`, each with what it means behind a tab.

    The last word is to be completed.
    """
    asked = {
        "_ADMITTER_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_ARGS": shlex.join(["admitter", *words[:-1]]) + f" {''.join(words[-1:])}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    before = {name: os.environ.get(name) for name in asked}
    printed = io.StringIO()
    os.environ.update(asked)
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            app(prog_name="admitter", args=[])
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return list(_joined(printed.getvalue().splitlines()))


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """A word and its meaning a line: long ones are broken, and no word has a space."""
    word = ""
    for line in filter(None, lines):
        if "\t" not in line and " " in line:
            word += f" {line}"
            continue
        if word:
            yield word
        word = line
    if word:
        yield word


def main() -> None:
    sys.stdout.write("\n".join([*complete(sys.argv[1:]), NO_FILES]) + "\n")

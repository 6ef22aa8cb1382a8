"""How commands say what went wrong."""

import typer
from rich.console import Console
from rich.text import Text

from admitter.visible import visible


class CommandError(Exception):
    """What ends a command, in words for its user."""


class UsageError(typer.BadParameter):
    """Options that a command needs, or that exclude each other: no value of them is invalid."""

    def format_message(self) -> str:
        """The words alone, without the option that the library names before them."""
        return self.message


def complain(error: Exception) -> None:
    """Say it on standard error: in one line, unless it shows lines of a file."""
    words = Text.assemble(("error:", "bold red"), " ", visible(error, lines=True))
    Console(stderr=True).print(words, soft_wrap=True)

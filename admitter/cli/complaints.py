"""How commands say what went wrong."""

from rich.console import Console
from rich.text import Text

from admitter.visible import visible


class CommandError(Exception):
    """What ends a command, in words for its user."""


def complain(error: Exception) -> None:
    """Say it on standard error: in one line, unless it shows lines of a file."""
    words = Text.assemble(("error:", "bold red"), " ", visible(error, lines=True))
    Console(stderr=True).print(words, soft_wrap=True)

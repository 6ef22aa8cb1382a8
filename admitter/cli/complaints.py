"""How commands say what went wrong."""

from rich.console import Console
from rich.markup import escape


class CommandError(Exception):
    """What ends a command, in words for its user."""


def complain(error: Exception) -> None:
    """Say it in one line on standard error."""
    Console(stderr=True).print(
        f"[bold red]error:[/bold red] {escape(str(error))}", highlight=False, soft_wrap=True
    )

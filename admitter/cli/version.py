"""`admitter version`."""

import typer

from admitter import __version__


def version() -> None:
    """Print the version.

    Examples:
    - `admitter version`
    """
    typer.echo(__version__)

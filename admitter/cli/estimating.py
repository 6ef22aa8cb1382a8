"""For how long commands make estimates, and what they say before they have anything better."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Annotated, Final

import typer

from admitter.cli.options import seconds_of
from admitter.insight.forecast.deadline import ESTIMATE_SECONDS, Allowance

SOON: Final = 0.25
"""The seconds from reading the cluster until `explain` answers, at the latest."""
DEFAULT: Final = f"{ESTIMATE_SECONDS:g}s"

EstimateFor = Annotated[
    str,
    typer.Option(
        help="How long estimates may take, such as 500ms, 2s or 1m. Where playouts are slow there are "
        "fewer of them, and the answer says so. 0s: none.",
        metavar="DURATION",
    ),
]


def allowed(estimate_for: str) -> Allowance:
    """What --estimate-for allows.

    Raises:
        BadParameter: it is no duration.
    """
    return Allowance(seconds_of(estimate_for, "--estimate-for"))


@contextmanager
def unless_soon(say: Callable[[], None]) -> Iterator[None]:
    """Say something in the middle of work that is not done soon; when it is done, all of it has been said."""
    timer = Timer(SOON, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()

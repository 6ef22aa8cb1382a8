"""Builds the programs that tests with a cluster need, the first time: `python -m tests.programs`.

A build takes minutes of both cores: it comes before the tests, which have limits of time.
"""

import os

from rich.console import Console

from admitter.sandbox.build import ensure_programs
from admitter.sandbox.operators.definitions import OPERATORS
from admitter.sandbox.operators.programs import ensure_operators
from tests.chart.helm import ensure_helm

KUBERNETES = os.environ.get("ADMITTER_TEST_KUBERNETES")
"""The release that sandboxes of the tests run; None: the newest that is supported."""


def build(*, helm: bool = True, operators: bool = True) -> None:
    """Build what is not there yet.

    Raises:
        SandboxError: a build fails.
    """
    console = Console(stderr=True)
    ensure_programs(console, kubernetes=KUBERNETES)
    if helm:
        ensure_helm(console)
    if operators:
        ensure_operators(console, OPERATORS.values())


if __name__ == "__main__":
    build()

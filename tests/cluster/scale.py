"""How much a test of ring 2 does.

`make test` does as much as reaches every branch; `make test-thorough` runs the same code at the scale that is
named beside it.
"""

import os

THOROUGH = "ADMITTER_EXAMPLES" in os.environ


def scaled(usual: int, thorough: int) -> int:
    """A number for `make test`, or the one for `make test-thorough`."""
    return thorough if THOROUGH else usual

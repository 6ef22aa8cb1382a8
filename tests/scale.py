"""How much a test does.

`make test` and `make test-long` do as much as reaches every branch, the same in each run.
`make test-thorough` runs the same code with as many examples as `ADMITTER_EXAMPLES` says, others each time,
and at the scale that stands beside the usual one.
"""

import os
from typing import Final

from hypothesis import Phase, settings

_EXAMPLES: Final = os.environ.get("ADMITTER_EXAMPLES")
THOROUGH: Final = _EXAMPLES is not None


def examples(usual: int) -> int:
    """How many random examples: a number for `make test`, or what `make test-thorough` asks for."""
    return int(_EXAMPLES) if _EXAMPLES is not None else usual


def scaled(usual: int, thorough: int) -> int:
    """A number for `make test`, or the one for `make test-thorough`."""
    return thorough if THOROUGH else usual


def histories(usual: int, steps: int = 30) -> settings:
    """The settings of a state machine: so many random histories, of so many steps.

    A history that fails is long and takes hours to shrink: it is printed as it is.
    """
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=examples(usual), stateful_step_count=steps, phases=phases)

"""What has to be true of queues holds in random scenarios of everything that they can say.

Three hundred by default; `ADMITTER_EXAMPLES` says how many of each part instead, `ADMITTER_SEED` which is
the first.
"""

import os
from collections import Counter
from typing import Final

import pytest

from tests.engine.scenarios.generator import PARTS, scenario
from tests.engine.scenarios.judges import judges
from tests.engine.scenarios.playing import play

EXAMPLES: Final = int(os.environ.get("ADMITTER_EXAMPLES", "60"))
FIRST: Final = int(os.environ.get("ADMITTER_SEED", "0"))


@pytest.mark.parametrize("part", range(len(PARTS)), ids=PARTS)
def test_rules_hold_in_random_scenarios(part: int) -> None:
    first = FIRST - FIRST % len(PARTS) + part
    met: Counter[str] = Counter()
    for seed in range(first, first + EXAMPLES * len(PARTS), len(PARTS)):
        case = scenario(seed)
        outcome = play(case)
        assert not outcome.rule, outcome.told(case)
        met.update(outcome.met)
    unmet = [judge.rule for judge in judges() if not met[judge.rule]]
    assert not unmet, f"nothing was met that these rules judge: {unmet}"


def test_a_seed_gives_the_same_scenario() -> None:
    assert [scenario(seed) for seed in range(20)] == [scenario(seed) for seed in range(20)]

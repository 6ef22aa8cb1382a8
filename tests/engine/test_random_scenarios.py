"""What has to be true of queues holds in random scenarios of everything that they can say.

Thirty of each part; `ADMITTER_EXAMPLES` says how many instead, `ADMITTER_SEED` which is the first.
"""

import os
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from tests.engine.scenarios import cases
from tests.engine.scenarios.all_checks import checks
from tests.engine.scenarios.generator import PARTS, scenario, without_limits
from tests.engine.scenarios.playing import play
from tests.engine.scenarios.starving import starves
from tests.scale import examples

EXAMPLES: Final = examples(30)
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
    unmet = [check.rule for check in checks() if not met[check.rule]]
    assert not unmet, f"nothing was met that these rules check: {unmet}"


@pytest.mark.parametrize("part", range(len(PARTS)), ids=PARTS)
def test_rules_hold_when_classes_of_what_runs_and_waits_get_other_values(part: int) -> None:
    for number in range(EXAMPLES // 2):
        case = revalued(scenario(FIRST - FIRST % len(PARTS) + part + number * len(PARTS)))
        outcome = play(case)
        assert not outcome.rule, outcome.told(case)


def revalued(case: cases.Scenario) -> cases.Scenario:
    """The same, but administrators change values of classes on the way."""
    random, steps = Random(case.seed), list[cases.Step]()
    for step in case.steps:
        steps.append(step)
        if random.random() < 0.3:
            change = random.choice((cases.Revalue, cases.Revalue, cases.Change))
            steps.append(cases.Step(random.randint(0, 3), change(random.randint(0, 9), random.randint(0, 2))))
    return replace(case, steps=tuple(steps))


@pytest.mark.parametrize("seed", [6282, 52130, 56092, 59465, 62966, 78969, 81597])
def test_rules_hold_where_they_once_did_not(seed: int) -> None:
    case = without_limits(seed)
    outcome = play(case)
    assert not outcome.rule, outcome.told(case)


@pytest.mark.parametrize("part", range(len(PARTS)), ids=PARTS)
def test_an_owner_starts_whatever_others_ask(part: int) -> None:
    first = FIRST - FIRST % len(PARTS) + part
    waited = 0
    for seed in range(first, first + EXAMPLES * len(PARTS) // 4, len(PARTS)):
        met, message, story = starves(seed)
        assert not message, "\n".join(
            ("", *story, f"alone: python -m tests.engine.scenarios {seed} --owners")
        )
        waited += met
    # An elastic quota takes back what it owns: there the owner starts at once.
    assert waited or PARTS[part] == "elastic", "no owner had to wait"


def test_a_seed_gives_the_same_scenario() -> None:
    assert [scenario(seed) for seed in range(20)] == [scenario(seed) for seed in range(20)]

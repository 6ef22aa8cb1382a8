"""Scenarios played and checked, told as a story, and made shorter if a rule does not hold."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from tests.engine.scenarios.all_checks import checks
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.driver import BrokenRuleError, Play
from tests.engine.scenarios.shorter import shortened


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a scenario.

    Attributes:
        rule: the one that does not hold; empty if all do.
        message: how it does not.
        story: definitions and events, a line each.
        met: how often each rule had something to check.
    """

    rule: str
    message: str
    story: tuple[str, ...]
    met: Counter[str]

    def told(self, scenario: Scenario) -> str:
        """All of it, and how to play it alone."""
        alone = f"python -m tests.engine.scenarios {scenario.seed}"
        return "\n".join(("", *self.story, f"{self.rule}: {self.message}", f"alone: {alone}"))


def play(scenario: Scenario, without: Collection[str] = ()) -> Outcome:
    """Play a scenario to its end, or until a rule does not hold.

    Args:
        scenario: what is played.
        without: rules that are not checked.
    """
    played = Play(scenario, [check for check in checks() if check.rule not in without])
    rule = message = ""
    try:
        played.run()
    except BrokenRuleError as broken:
        rule, message = broken.rule, str(broken)
    met = Counter({check.rule: check.met for check in played.checks})
    return Outcome(rule, message, (*scenario.told(), *played.log), met)


def shorter(scenario: Scenario, without: Collection[str] = ()) -> Scenario:
    """What is left of a scenario without all that the same rule can do without to be broken."""
    rule = play(scenario, without).rule
    return shortened(scenario, lambda candidate: play(candidate, without).rule == rule)

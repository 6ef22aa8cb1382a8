"""Scenarios played and judged, told as a story, and made shorter if a rule does not hold."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.driver import BrokenRuleError, Play
from tests.engine.scenarios.judges import judges


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a scenario.

    Attributes:
        rule: the one that does not hold; empty if all do.
        message: how it does not.
        story: definitions and events, a line each.
        met: how often each rule had something to judge.
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
        without: rules that are not judged.
    """
    played = Play(scenario, [judge for judge in judges() if judge.rule not in without])
    rule = message = ""
    try:
        played.run()
    except BrokenRuleError as broken:
        rule, message = broken.rule, str(broken)
    met = Counter({judge.rule: judge.met for judge in played.judges})
    return Outcome(rule, message, (*scenario.told(), *played.log), met)


def shorter(scenario: Scenario, without: Collection[str] = ()) -> Scenario:
    """What is left of a scenario without all that the same rule can do without to be broken."""
    rule = play(scenario, without).rule
    while True:
        for candidate in _shorter(scenario):
            if play(candidate, without).rule == rule:
                scenario = candidate
                break
        else:
            return scenario


def _shorter(scenario: Scenario) -> Iterator[Scenario]:
    """The same with a little less."""
    steps = scenario.steps
    for place in range(len(steps)):
        yield replace(scenario, steps=(*steps[:place], *steps[place + 1 :]))
    used = {step.event.workload.queue for step in steps if isinstance(step.event, cases.Arrive)}
    for queue in scenario.queues:
        if queue.name not in used:
            yield replace(scenario, queues=tuple(each for each in scenario.queues if each is not queue))
    for cohort in scenario.cohorts:
        if not any(each.parent == cohort.name for each in scenario.cohorts):
            yield replace(scenario, cohorts=tuple(each for each in scenario.cohorts if each is not cohort))
    for place, step in enumerate(steps):
        if step.after > 1:
            sooner = replace(step, after=step.after - 1)
            yield replace(scenario, steps=(*steps[:place], sooner, *steps[place + 1 :]))
    if scenario.weights:
        yield replace(scenario, weights={})
    if any(scenario.departures):
        yield replace(scenario, departures=(0,))

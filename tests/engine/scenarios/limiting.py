"""Limits on evictions, and checkpoints, in scenarios that have neither: all else stays as it was."""

from dataclasses import replace
from random import Random

from admitter.engine.policy import EvictionLimit, Queue
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario


def with_limits(case: Scenario) -> Scenario:
    """Every second scenario with limits of some queues, and Jobs that say what they have saved."""
    random, steps = Random(f"limits {case.seed}"), list[cases.Step]()
    if random.random() < 0.5:
        return case
    for step in case.steps:
        event = step.event
        if isinstance(event, cases.Edit) and isinstance(event.definition, Queue):
            event = cases.Edit(_limited(random, event.definition))
        steps.append(replace(step, event=event))
        if random.random() < 0.15:
            saved = cases.Save(random.randint(0, 9), random.randint(-3, 8))
            steps.append(cases.Step(random.randint(0, 2), saved))
    queues = tuple(_limited(random, queue) for queue in case.queues)
    return replace(case, queues=queues, steps=tuple(steps))


def _limited(random: Random, queue: Queue) -> Queue:
    if random.random() < 0.5:
        return queue
    limit = EvictionLimit(random.choice((0, 1, 1, 1, 2)), random.choice((3.0, 10.0, 40.0)))
    return replace(queue, eviction_limit=limit)

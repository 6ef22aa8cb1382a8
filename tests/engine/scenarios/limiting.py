"""Limits on evictions, and checkpoints, in scenarios that have neither: all else stays as it was."""

from dataclasses import replace
from random import Random
from typing import TypeVar

from admitter.engine.policy import Cohort, EvictionLimit, Queue
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario

D = TypeVar("D", bound=Queue | Cohort)


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


def with_common_limits(case: Scenario) -> Scenario:
    """Every second scenario with limits of some queues and Cohorts on all evictions from them."""
    random = Random(f"common limits {case.seed}")
    if random.random() < 0.5:
        return case
    queues = tuple(_with_common_limit(random, queue) for queue in case.queues)
    cohorts = tuple(_with_common_limit(random, cohort) for cohort in case.cohorts)
    steps = list[cases.Step]()
    for step in case.steps:
        event = step.event
        if isinstance(event, cases.Edit):
            event = cases.Edit(_with_common_limit(random, event.definition))
        steps.append(replace(step, event=event))
    return replace(case, queues=queues, cohorts=cohorts, steps=tuple(steps))


def _with_common_limit(random: Random, definition: D) -> D:
    if random.random() < 0.3:
        return definition
    limit = EvictionLimit(random.choice((0, 1, 1, 1, 1, 2, 3)), random.choice((3.0, 6.0, 15.0, 40.0)))
    return replace(definition, max_evictions=limit)


def _limited(random: Random, queue: Queue) -> Queue:
    if random.random() < 0.5:
        return queue
    limit = EvictionLimit(random.choice((0, 1, 1, 1, 2)), random.choice((3.0, 10.0, 40.0)))
    return replace(queue, eviction_limit=limit)

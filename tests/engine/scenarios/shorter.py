"""What is left of a scenario without all that does not matter for the rule that it breaks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from admitter.engine.model import FlavorResource, PodSet, Workload
from admitter.engine.policy import NO_TERMS, Cohort, Fungibility, Queue, Quota, Strategy
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario

T = TypeVar("T")


def shortened(scenario: Scenario, breaks: Callable[[Scenario], bool]) -> Scenario:
    """The least that is found with which a rule is broken.

    Args:
        scenario: breaks it.
        breaks: whether another one does.
    """
    while True:
        found = next((candidate for candidate in _less(scenario) if breaks(candidate)), None)
        if found is None:
            return scenario
        scenario = found


def _less(scenario: Scenario) -> Iterator[Scenario]:
    """The same with a little less, in many ways."""
    steps, queues, cohorts = scenario.steps, scenario.queues, scenario.cohorts
    yield from (replace(scenario, steps=less) for less in _without_each(steps))
    yield from (replace(scenario, queues=less) for less in _without_each(queues) if _suffice(less, steps))
    parents = {cohort.parent for cohort in cohorts}
    for less in _without_each(cohorts):
        if not any(cohort not in less and cohort.name in parents for cohort in cohorts):
            yield replace(scenario, cohorts=less)
    yield from [replace(scenario, weights={})] if scenario.weights else []
    yield from [replace(scenario, departures=(0,))] if any(scenario.departures) else []
    yield from (replace(scenario, steps=less) for less in _with_each(steps, _less_of_step))
    yield from (replace(scenario, queues=less) for less in _with_each(queues, _plainer))
    yield from (replace(scenario, cohorts=less) for less in _with_each(cohorts, _poorer))


def _without_each(values: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """All but one of some values."""
    for place in range(len(values)):
        yield (*values[:place], *values[place + 1 :])


def _with_each(values: tuple[T, ...], simpler: Callable[[T], Iterator[T]]) -> Iterator[tuple[T, ...]]:
    """The same values, but one of them simpler."""
    for place, value in enumerate(values):
        for less in simpler(value):
            yield (*values[:place], less, *values[place + 1 :])


def _suffice(queues: tuple[Queue, ...], steps: tuple[cases.Step, ...]) -> bool:
    """Whether all that arrives has a queue."""
    names = {queue.name for queue in queues}
    return all(s.event.workload.queue in names for s in steps if isinstance(s.event, cases.Arrive))


def _poorer(cohort: Cohort) -> Iterator[Cohort]:
    for quotas in _smaller(cohort.quotas):
        yield replace(cohort, quotas=quotas)
    if cohort.weight != 1:
        yield replace(cohort, weight=Fraction(1))
    if cohort.max_evictions is not None:
        yield replace(cohort, max_evictions=None)


def _less_of_step(step: cases.Step) -> Iterator[cases.Step]:
    if step.after > 1:
        yield replace(step, after=step.after - 1)
    if isinstance(step.event, cases.Arrive):
        for workload in _simpler(step.event.workload):
            yield replace(step, event=replace(step.event, workload=workload))
        if step.event.runs is not None:
            yield replace(step, event=replace(step.event, runs=None))


def _simpler(workload: Workload) -> Iterator[Workload]:
    first, *others = workload.pod_sets
    if others:
        yield replace(workload, pod_sets=(first,))
    for place, pod_set in enumerate(workload.pod_sets):
        for less in _fewer(pod_set):
            sets = (*workload.pod_sets[:place], less, *workload.pod_sets[place + 1 :])
            yield replace(workload, pod_sets=sets)
    if workload.priority:
        yield replace(workload, priority=workload.priority - 1)
    if workload.namespace != "n0":
        yield replace(workload, namespace="n0")


def _fewer(pod_set: PodSet) -> Iterator[PodSet]:
    if pod_set.count > 1 or pod_set.min_count is not None:
        yield replace(pod_set, count=1, min_count=None)
    if pod_set.min_count is not None:
        yield replace(pod_set, min_count=None)
    if pod_set.node_selector or pod_set.tolerations:
        yield replace(pod_set, node_selector=(), tolerations=())
    for resource, amount in pod_set.requests if len(pod_set.requests) > 1 else ():
        yield replace(pod_set, requests=tuple(r for r in pod_set.requests if r != (resource, amount)))
    for place, (resource, amount) in enumerate(pod_set.requests):
        if amount > 1:
            less = (*pod_set.requests[:place], (resource, amount - 1), *pod_set.requests[place + 1 :])
            yield replace(pod_set, requests=less)


def _plainer(queue: Queue) -> Iterator[Queue]:
    for quotas in _smaller(queue.quotas):
        yield replace(queue, quotas=quotas)
    if queue.weight != 1:
        yield replace(queue, weight=Fraction(1))
    plain = replace(
        queue,
        strategy=Strategy.BEST_EFFORT_FIFO,
        fungibility=Fungibility(),
        victim_terms=NO_TERMS,
        limits={},
    )
    if plain != queue:
        yield plain
    if queue.eviction_limit is not None:
        yield replace(queue, eviction_limit=None)
    if queue.max_evictions is not None:
        yield replace(queue, max_evictions=None)
    if queue.victim_terms != NO_TERMS:
        yield replace(queue, victim_terms=NO_TERMS)
    if queue.by_namespace:
        yield replace(queue, by_namespace=False)


def _smaller(quotas: Mapping[FlavorResource, Quota]) -> Iterator[dict[FlavorResource, Quota]]:
    for key, quota in quotas.items():
        for less in (Quota(quota.minimum), replace(quota, minimum=max(0, quota.minimum - 1))):
            if less != quota:
                yield {**quotas, key: less}

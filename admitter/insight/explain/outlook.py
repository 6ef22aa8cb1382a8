"""The slow part of an explanation: the blocking workloads, and the start.

Both end by a deadline. All else is printed first (`admitter.insight.explain.text.opening`).
"""

from dataclasses import replace
from typing import Final

from admitter.insight.controller_status import ControllerStatus
from admitter.insight.explain.explainer import Answer, Explainer
from admitter.insight.explain.text import has_start
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.estimates import Estimate, Estimator
from admitter.insight.forecast.playing import Playing
from admitter.policy.snapshot import Facts, Snapshot

FOR_BLOCKING: Final = 0.5
"""The largest part of the time for the search for blocking workloads."""


def first(explainer: Explainer, namespace: str, name: str) -> Answer:
    """What is known of a Job or a Workload at once.

    Raises:
        UnknownError: there is none.
    """
    return explainer.explain(namespace, name, enough=lambda: True)


def controllers_of(
    controllers: ControllerStatus | None, answer: Answer, snapshot: Snapshot
) -> ControllerStatus | None:
    """Whether a controller decides about the Workload of an answer: of all shards that of its tree."""
    if controllers is None:
        return None
    return controllers.about(snapshot.engine.tree.root(answer.queue)[1] if answer.queue else "")


def with_blocking(explainer: Explainer, answer: Answer, deadline: Deadline) -> Answer:
    """The first answer with the blocking workloads, if the search ends in its part of the time.

    The deadline is that of the search and the estimate together.
    """
    workload = answer.workload
    if workload is None or not has_start(answer):  # no end of anything would
        return replace(answer, sought=True)
    if answer.sought:
        return answer
    return explainer.explain(workload.namespace, workload.name, deadline.sooner(FOR_BLOCKING).is_over)


def start_of(known: Facts, snapshot: Snapshot, answer: Answer, playing: Playing) -> Estimate | None:
    """When a Workload starts; None if it does not wait for anything that ends."""
    if answer.workload is None or not has_start(answer):
        return None
    return Estimator(known, snapshot, playing=playing).of([answer.workload]).get(answer.workload.uid)

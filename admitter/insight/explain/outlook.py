"""What follows an explanation, and may be dear: whose end would let a Workload in, and when it starts.

Both end by a deadline. What is known without them is told first (`admitter.insight.explain.text.opening`).
"""

from dataclasses import replace
from typing import Final

from admitter.insight.explain.explainer import Answer, Explainer
from admitter.insight.explain.text import has_start
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.estimates import Estimate, Estimator
from admitter.insight.forecast.playing import Playing
from admitter.policy.snapshot import Facts, Snapshot

FOR_ENDERS: Final = 0.5
"""The part of the time that goes at most to the search for those whose end would let it in."""


def first(explainer: Explainer, namespace: str, name: str) -> Answer:
    """What is known of a Job or a Workload at once.

    Raises:
        UnknownError: there is none.
    """
    return explainer.explain(namespace, name, enough=lambda: True)


def with_enders(explainer: Explainer, answer: Answer, deadline: Deadline) -> Answer:
    """The same with those whose end would let it in, if they are found in a part of the time.

    Args:
        explainer: whose first answer it is.
        answer: the first one.
        deadline: of all that is dear.
    """
    workload = answer.workload
    if workload is None or not has_start(answer):  # no end of anything would
        return replace(answer, sought=True)
    if answer.sought:
        return answer
    return explainer.explain(workload.namespace, workload.name, deadline.sooner(FOR_ENDERS).is_over)


def start_of(known: Facts, picture: Snapshot, answer: Answer, playing: Playing) -> Estimate | None:
    """When it starts; None if it does not wait for anything that ends.

    Args:
        known: what there is.
        picture: of the same.
        answer: of it.
        playing: how futures are played, and for how long.
    """
    if answer.workload is None or not has_start(answer):
        return None
    return Estimator(known, picture, playing=playing).of([answer.workload]).get(answer.workload.uid)

"""An answer as structure, for programs and pictures: the numbers that its sentences say too.

`admitter.insight.explain.text` makes the sentences of the same data.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from admitter.api.forms import is_admission
from admitter.cache.views import WorkloadView
from admitter.convert import workloads
from admitter.engine.explain.explanation import Amounts
from admitter.engine.model import Admission
from admitter.engine.refusal import Reason
from admitter.insight.explain.explainer import Answer, binding, is_hopeless
from admitter.policy.held import left_of
from admitter.policy.messages import flavor_sentence


@dataclass(frozen=True, slots=True)
class Tried:
    """One flavor that was tried for a pod set: one resource in it, or why it does not suit."""

    pod_set: str
    flavor: str
    amounts: Amounts | None  # None: it does not suit
    mismatch: str = ""  # why, in a sentence
    binding: bool = False  # whether this is what the first sentence of the answer is about


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod set of an admitted Workload holds."""

    pod_set: str
    count: int  # for how many pods
    admitted: int  # for how many it was admitted: for the others it has given its quota back
    whole: int  # how many pods it asks for
    usage: tuple[tuple[str, str, int], ...]  # resource, flavor, and how much of it in the resource's unit

    @property
    def fewer(self) -> bool:
        """Whether it holds for fewer pods than it asks for."""
        return self.count < self.whole


def tried(answer: Answer) -> Iterator[Tried]:
    """All flavors that were tried, by pod set in the order of the queue; then those that do not suit it."""
    explanation = answer.explanation
    if explanation is None:
        return
    found = binding(explanation)
    for pod_set, amounts in explanation.amounts.items():
        for each in amounts:
            yield Tried(pod_set, each.flavor, each, binding=found is not None and each is found[1])
        for refused in explanation.mismatches[pod_set]:
            yield Tried(pod_set, refused.flavor, None, flavor_sentence(refused))


def holdings(workload: WorkloadView) -> Iterator[Holding]:
    """What a Workload holds by pod set; nothing if it is not admitted."""
    if workload.admission is not None:
        yield from _holdings(workload, workload.admission, left_of(workload.admission, workload))


def last_holdings(workload: WorkloadView) -> Iterator[Holding]:
    """What a finished Workload held, by the record in its status; nothing if it has not finished."""
    record = workload.status.get("admission") if workload.finished else None
    if record is not None and is_admission(record):
        admission = workloads.admission(record)
        yield from _holdings(workload, admission, admission)


def _holdings(workload: WorkloadView, whole: Admission, left: Admission) -> Iterator[Holding]:
    asked = {each["name"]: each["count"] for each in workload.spec["podSets"]}
    for admitted, pod_set in zip(whole.pod_sets, left.pod_sets, strict=True):
        flavors = dict(pod_set.flavors)
        usage = tuple((resource, flavors[resource], amount) for resource, amount in pod_set.usage)
        most = max(asked.get(pod_set.name, 0), pod_set.count)
        yield Holding(pod_set.name, pod_set.count, admitted.count, most, usage)


@dataclass(frozen=True, slots=True)
class Fit:
    """With how many of its pods a Workload would fit into what is free now."""

    flavor: str
    pods: int
    of: int


def fewer_that_fit(answer: Answer) -> Fit | None:
    """With how many pods a Workload would fit that waits for quota; None: with none, or it can't be told.

    It is told of a Workload with one pod set, in a queue that has all it asks for in the same flavors.
    """
    explanation = answer.explanation
    if explanation is None or explanation.refusal is None or len(explanation.amounts) != 1:
        return None
    if explanation.refusal.reason is not Reason.INSUFFICIENT_QUOTA:
        return None
    (pod_set,) = explanation.workload.pod_sets
    by_flavor: dict[str, list[Amounts]] = {}
    for each in explanation.amounts[pod_set.name]:
        by_flavor.setdefault(each.flavor, []).append(each)
    if len({tuple(each.resource for each in amounts) for amounts in by_flavor.values()}) != 1:
        return None
    found = [
        Fit(flavor, _pods_in(amounts, pod_set.count), pod_set.count) for flavor, amounts in by_flavor.items()
    ]
    best = max(found, key=lambda each: each.pods)
    return best if 0 < best.pods < best.of else None


def _pods_in(amounts: list[Amounts], count: int) -> int:
    """How many of so many pods fit into what a flavor has free."""
    asking = [each for each in amounts if each.asked > 0]
    return min(((each.free + each.borrowable) * count // each.asked for each in asking), default=count)


def is_never(answer: Answer) -> bool:
    """Whether no end of a workload would let it in: the limits, the hardware or the request must change."""
    return answer.explanation is not None and is_hopeless(answer.explanation.refusal)

"""Partial admission: with how many pods a workload could start that can do with fewer."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm
from typing import TypeVar

from admitter.engine.model import Workload

T = TypeVar("T")


def largest_that_fits(workload: Workload, attempt: Callable[[Workload], T | None]) -> T | None:
    """What the largest reduced form of a workload gets; None if there is none, or none fits.

    Pod sets with a `min_count` are reduced in proportion to what each can spare, pod by pod. Found by
    bisection: with fewer pods nothing fits worse.

    Args:
        workload: all of it does not fit.
        attempt: what a reduced form gets; None if it does not fit.
    """
    spare = [
        pod_set.count - pod_set.min_count
        if pod_set.min_count is not None and pod_set.min_count < pod_set.count
        else 0
        for pod_set in workload.pod_sets
    ]
    order = _order(spare)
    best: T | None = None
    low, high = 1, len(order)  # how many pods are left out, of all that can be
    while low <= high:
        middle = (low + high) // 2
        left_out = Counter(order[:middle])
        pod_sets = tuple(
            replace(pod_set, count=pod_set.count - left_out[number], min_count=None)
            for number, pod_set in enumerate(workload.pod_sets)
        )
        found = attempt(replace(workload, pod_sets=pod_sets))
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle - 1
    return best


def _order(spare: Sequence[int]) -> list[int]:
    """The pod set of each pod that can be left out, first to be left out first: evenly spread over all."""
    common = lcm(*(count for count in spare if count))
    places = [
        ((2 * pod + 1) * (common // count), number)
        for number, count in enumerate(spare)
        for pod in range(count)
    ]
    return [number for _, number in sorted(places)]

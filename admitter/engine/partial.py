"""Partial admission: with how many pods a workload could start that can do with fewer."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from admitter.engine.model import Workload

T = TypeVar("T")


def largest_that_fits(workload: Workload, attempt: Callable[[Workload], T | None]) -> T | None:
    """What the largest reduced form of a workload gets; None if there is none, or none fits.

    Pod sets with a `min_count` are reduced in proportion to what each can spare. Found by bisection:
    with fewer pods nothing fits worse.

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
    most = sum(spare)
    best: T | None = None
    low, high = 1, most  # how many pods are left out, of all that can be
    while low <= high:
        middle = (low + high) // 2
        pod_sets = tuple(
            replace(pod_set, count=pod_set.count - each * middle // most, min_count=None)
            for pod_set, each in zip(workload.pod_sets, spare, strict=True)
        )
        found = attempt(replace(workload, pod_sets=pod_sets))
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle - 1
    return best

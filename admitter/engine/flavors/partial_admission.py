"""Partial admission: with how many pods a workload could start that can do with fewer.

Everything is arithmetic on counts: a workload of two thousand million pods costs what one of two costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from admitter.engine.model import Workload

T = TypeVar("T")


def largest_that_fits(workload: Workload, attempt: Callable[[Workload], T | None]) -> T | None:
    """What the largest reduced form of a workload gets; None if there is none, or none fits.

    Pod sets with a `min_count` are reduced in proportion to what each can spare, pod by pod. Found by
    bisection: with fewer pods nothing fits worse, so if the smallest form does not fit, none does. All of the
    workload does not fit; `attempt` says what a reduced form gets.
    """
    smallest = fewest(workload)
    best = attempt(smallest) if smallest is not None else None
    if best is None:
        return None
    spare = _spare(workload)
    low, high = 1, sum(spare) - 1  # how many pods are left out, of all that can be
    while low <= high:
        middle = (low + high) // 2
        found = attempt(_reduced(workload, left_out(spare, middle)))
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle - 1
    return best


def fewest(workload: Workload) -> Workload | None:
    """The smallest form of a workload; None if it can't do with fewer pods."""
    if all(pod_set.min_count is None for pod_set in workload.pod_sets):
        return None
    spare = _spare(workload)
    return _reduced(workload, spare) if any(spare) else None


def _spare(workload: Workload) -> list[int]:
    """How many pods of each pod set of a workload can be left out."""
    return [
        pod_set.count - pod_set.min_count
        if pod_set.min_count is not None and pod_set.min_count < pod_set.count
        else 0
        for pod_set in workload.pod_sets
    ]


def _reduced(workload: Workload, less: Sequence[int]) -> Workload:
    pod_sets = tuple(
        replace(pod_set, count=pod_set.count - fewer, min_count=None)
        for pod_set, fewer in zip(workload.pod_sets, less, strict=True)
    )
    return replace(workload, pod_sets=pod_sets)


def left_out(spare: Sequence[int], total: int) -> list[int]:
    """How many pods of each pod set go if so many go in all: evenly spread, the first pod set first.

    The pods that a pod set can spare lie at equal distances on a line from 0 to 1, the first and the last
    half a distance from its ends; they go in the order in which they lie. Up to a point x of the line lie
    x times what a pod set can spare, give or take half a pod. So all but a few go by division, and those few
    one by one.
    """
    numbers = [number for number, count in enumerate(spare) if count]
    reach, length = max(0, total - len(numbers)), sum(spare)
    # Up to reach / length lie no more than `total`; pod number k of a pod set lies at (2 k + 1) / (2 count).
    less = [(2 * count * reach + length) // (2 * length) if count else 0 for count in spare]
    for _ in range(total - sum(less)):
        less[min(numbers, key=lambda number: (Fraction(2 * less[number] + 1, spare[number]), number))] += 1
    return less

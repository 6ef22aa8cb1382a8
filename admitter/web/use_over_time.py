"""What an admission uses over time: a Job gives quota back, and grows, while it runs.

An amount counts from when the page sees it: `parts` says what was used from when to when. What an admission
used before the page saw it is not known, and counts as the first that it saw.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from admitter.cache.views import WorkloadView
from admitter.engine import model
from admitter.engine.quota.ledger import Ledger
from admitter.quantities.amounts import CPU

Usage = tuple[tuple[str, str, float], ...]
"""Flavor, resource and amount, in cores, bytes or devices; in order, and without zeros."""
Earlier = tuple[tuple[float, Usage], ...]
"""What was used before, each with its end, in seconds since the epoch."""
Part = tuple[float, float | None, Usage]
"""From when to when so much is used, in seconds since the epoch; None: its end is not known."""

MOST_PARTS: Final = 8
"""Of one admission, before the present one, 300 bytes each.

Of more, two neighbours become one with their mean, so that the sum stays the same.
"""


def in_units(resource: str, amount: float) -> float:
    """An amount of the engine in cores, bytes or devices."""
    return amount / 1000 if resource == CPU else float(amount)


def usage_of(usage: model.Usage) -> Usage:
    """A usage of the engine in cores, bytes or devices."""
    return tuple(
        sorted(
            (flavor, resource, in_units(resource, amount)) for (flavor, resource), amount in usage if amount
        )
    )


def counted(ledger: Ledger, view: WorkloadView) -> model.Usage:
    """What a Workload is counted with: what it holds and has not given back, and its extra pods."""
    if view.admission is None:
        return ()
    held = ledger.held(view.uid)
    usage = held.usage if held is not None else view.admission.usage
    if not ledger.extras.has(view.uid):
        return usage
    sums = dict(usage)
    for part in ledger.extras.parts(view.uid):
        extra = ledger.extras.get(view.uid, part)
        for key, amount in extra.use(extra.granted) if extra is not None else ():
            sums[key] = sums.get(key, 0) + amount
    return tuple(sums.items())


def changed(begins: float, earlier: Earlier, usage: Usage, now: float) -> Earlier:
    """The same of an admission with what it used until now, as it uses something else from now on."""
    if now <= (earlier[-1][0] if earlier else begins):
        return earlier
    found = [*earlier, (now, usage)]
    while len(found) > MOST_PARTS:
        starts = [begins, *(end for end, _ in found)]
        place = min(range(len(found) - 1), key=lambda at: starts[at + 2] - starts[at])
        (middle, first), (end, second) = found[place : place + 2]
        found[place : place + 2] = [(end, _mean(first, middle - starts[place], second, end - middle))]
    return tuple(found)


def _mean(first: Usage, long: float, second: Usage, longer: float) -> Usage:
    """What was used in two intervals on average."""
    sums: dict[tuple[str, str], float] = {}
    for usage, seconds in ((first, long), (second, longer)):
        for flavor, resource, amount in usage:
            sums[flavor, resource] = sums.get((flavor, resource), 0.0) + amount * seconds
    return tuple(sorted((*key, amount / (long + longer)) for key, amount in sums.items()))


def parts(begins: float, ends: float | None, earlier: Earlier, usage: Usage) -> Iterator[Part]:
    """What an admission uses from when to when, in order of time."""
    for end, used in earlier:
        if ends is not None and end >= ends:
            yield begins, ends, used
            return
        yield begins, end, used
        begins = end
    yield begins, ends, usage


def most(earlier: Earlier, usage: Usage, resource: str) -> float:
    """The most of a resource that an admission used at one time."""
    used = chain((each for _, each in earlier), (usage,))
    return max(sum(amount for _, name, amount in each if name == resource) for each in used)

"""What stays in memory of what has been."""

import gc
from collections import Counter

import pytest

from benchmarks import turnover
from benchmarks.turnover import Turnover

REMEMBERED = {"Admission", "Assignment"}
"""By their text, 1,024 of them at most: they are as many as there have been queues."""


def small(monkeypatch: pytest.MonkeyPatch) -> Turnover:
    """Six queues, of which one goes in each round and another comes."""
    monkeypatch.setattr(turnover, "MOVE", 1)
    return Turnover(6, 36)


def own_objects() -> Counter[str]:
    """Admitter's objects in this process, by their class."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("admitter."))


def grown(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Of which classes there are more, by five at least: Workloads of six queues are not always as many."""
    more = after - before
    return {name: number for name, number in more.items() if number >= 5 and name not in REMEMBERED}

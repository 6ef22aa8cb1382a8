"""`admitter top` for a long time: what is gone leaves nothing behind. An hour of it: `make bench-hour`."""

from collections import Counter

import pytest

from benchmarks import lookers
from benchmarks.lookers import at_the_terminal
from tests.kept import grown, own_objects, small


async def test_workloads_and_queues_that_are_gone_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookers, "MINUTE", 20)  # after so many rounds all views are opened and left
    found: dict[int, Counter[str]] = {}

    async def done(number: int) -> None:
        if number in {20, 60}:
            found[number] = own_objects()

    await at_the_terminal(small(monkeypatch), 60, done)
    assert grown(found[20], found[60]) == {}
    assert found[60]["WorkloadsView"] + found[60]["ExplanationView"] == 0

"""`admitter top` for a long time: what is gone leaves nothing behind. An hour of it: `make bench-hour`."""

from collections import Counter

import pytest

from benchmarks import lookers
from benchmarks.lookers import at_the_terminal
from tests.kept import grown, own_objects, small


@pytest.mark.long
async def test_workloads_and_queues_that_are_gone_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookers, "MINUTE", 10)  # after so many rounds all views are opened and left
    found: dict[int, Counter[str]] = {}

    async def done(number: int) -> None:
        if number in {10, 30}:
            found[number] = own_objects()

    await at_the_terminal(small(monkeypatch), 30, done)
    assert grown(found[10], found[30]) == {}
    assert found[30]["WorkloadsView"] + found[30]["ExplanationView"] == 0

"""The page for a long time: what is gone leaves nothing behind. An hour of it: `make bench-hour`."""

from collections import Counter

import pytest
from playwright.async_api import Page as Tab

from admitter.web import admissions
from benchmarks.lookers import Served, at_the_server, in_a_browser
from tests.kept import grown, own_objects, small
from tests.web.pages import CHROMIUM, HOW


async def test_nothing_stays_at_the_server_of_workloads_queues_and_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admissions, "MOST_SPANS", 100)  # it reaches that within the first rounds
    found: dict[int, Counter[str]] = {}

    async def done(number: int, page: Served) -> None:
        if number in {40, 80}:  # answers about people are remembered for half a minute
            found[number] = own_objects()
            assert page.streams() <= 3
            assert page.sessions() == number // 2, "those that have not logged out"

    await at_the_server(small(monkeypatch), 80, done)
    assert grown(found[40], found[80]) == {}


@pytest.mark.skipif(CHROMIUM is None, reason=HOW)
async def test_the_page_has_no_more_elements_than_there_is_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHROMIUM is not None
    found: dict[int, dict[str, int]] = {}

    async def done(number: int, tabs: dict[str, Tab]) -> None:
        if number in {40, 60}:
            count = "document.querySelectorAll('*').length"
            found[number] = {name: await tab.evaluate(count) for name, tab in tabs.items()}

    await in_a_browser(small(monkeypatch), 60, CHROMIUM, done)
    for name, number in found[60].items():
        assert number < found[40][name] + 100, name  # a row of five and more in every round would be as many

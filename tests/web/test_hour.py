"""The page for a long time: what is gone leaves nothing behind. An hour of it: `make bench-hour`."""

from collections import Counter

import pytest
from playwright.async_api import Page as Tab

from admitter.web import admissions
from benchmarks.hour import held_by
from benchmarks.lookers import Served, at_the_server, in_a_browser
from tests.kept import grown, own_objects, small
from tests.web.pages import CHROMIUM, HOW

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


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
    """Nor does what has left the page stay in memory: a queue goes in each round."""
    assert CHROMIUM is not None
    found: dict[int, dict[str, tuple[int, int]]] = {}

    async def done(number: int, tabs: dict[str, Tab]) -> None:
        if number in {30, 60}:
            found[number] = {name: await _nodes(tab) for name, tab in tabs.items()}

    await in_a_browser(small(monkeypatch), 60, CHROMIUM, done)
    for name, (there, gone) in found[60].items():
        assert there < found[30][name][0] + 150, (
            name
        )  # a row of five and more in every round would be as many
        assert gone < found[30][name][1] + 30, name


async def _nodes(tab: Tab) -> tuple[int, int]:
    """How many nodes are in a page, and how many others are in memory that are no garbage."""
    there: int = await tab.evaluate(
        """() => {
          const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
          let count = 1;
          while (walker.nextNode()) count++;
          return count;
        }"""
    )
    return there, (await held_by(tab))["nodes"] - there

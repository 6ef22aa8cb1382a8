"""All views with a thousand queues, twenty thousand Workloads and two thousand nodes."""

import asyncio
from collections.abc import Iterator
from itertools import count

import pytest
from playwright.async_api import Page

from tests.insight.states import State
from tests.web.looks import SOON, browser, first_paint_ms, is_newer, loading, logged_in, main_thread_ms, taken
from tests.web.pages import CHROMIUM, HOW, Served, served
from tests.web.scale import GPU, PLACES, big_cluster

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

QUEUES, WORKLOADS, NODES = 1000, 20_000, 2000
MOST_BYTES = 200_000
PAINT_MS = 1000
TASK_MS = 100


async def test_all_views_are_there_soon_and_change_at_little_cost() -> None:
    state, seconds = big_cluster(QUEUES, WORKLOADS, NODES), count(1)
    waits = f"job-{WORKLOADS - QUEUES:05}"
    async with served(state, SOON) as page, browser() as opened:
        for view, place in PLACES.items():
            async with logged_in(opened, page) as tab, loading(tab) as loaded:
                await tab.goto("about:blank")
                await tab.goto(f"{page.address}/#/{place.format(waiting=waits)}")
                await taken(tab)
                assert loaded["files"] <= MOST_BYTES, view
                assert await _soonest_paint(tab) < PAINT_MS, view
                assert await main_thread_ms(tab, _changed(tab, page, state, seconds)) < TASK_MS, view


async def _soonest_paint(tab: Page) -> float:
    """Of three looks: a machine may do something else meanwhile."""
    found = [await first_paint_ms(tab)]
    while found[-1] >= PAINT_MS and len(found) < 3:
        await tab.reload()
        await taken(tab)
        found.append(await first_paint_ms(tab))
    return min(found)


async def _changed(tab: Page, page: Served, state: State, seconds: Iterator[int]) -> None:
    """A Workload comes, and is shown."""
    before, second = await taken(tab), next(seconds)
    state.waits("ns-0000", f"late-{second}", {GPU: "1"}, created=float(second))
    await asyncio.to_thread(page.stage.show, state, float(second))
    await is_newer(tab, before)

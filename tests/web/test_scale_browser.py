"""All views of a large cluster: with up to 1000 queues, 20,000 Workloads and 2000 nodes."""

import pytest
from playwright.async_api import Page

from tests.scale import scaled
from tests.web.looks import (
    SOON,
    browser,
    comes,
    first_paint_ms,
    loading,
    logged_in,
    main_thread_ms,
    slowness_of,
    taken,
)
from tests.web.pages import CHROMIUM, HOW, served
from tests.web.scale import PLACES, big_cluster

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=HOW),
    pytest.mark.timeout(900),  # the longest: it comes first
]

QUEUES, WORKLOADS, NODES = scaled(250, 1000), scaled(5000, 20_000), scaled(500, 2000)
MOST_BYTES = 200_000
PAINT_MS = 1000
TASK_MS = 100


async def test_all_views_are_there_soon_and_change_at_little_cost() -> None:
    state = big_cluster(QUEUES, WORKLOADS, NODES)
    waits = f"job-{WORKLOADS - QUEUES:05}"
    async with served(state, SOON) as page, browser() as opened:
        for view, place in PLACES.items():
            async with logged_in(opened, page) as tab, loading(tab) as loaded:
                await tab.goto("about:blank")
                await tab.goto(f"{page.address}/#/{place.format(waiting=waits)}")
                await taken(tab)
                assert loaded["files"] <= MOST_BYTES, view
                assert await _soonest_paint(tab) < PAINT_MS, view
                assert await main_thread_ms(tab, comes(tab, page, state)) < TASK_MS, view


async def _soonest_paint(tab: Page) -> float:
    """Of three looks, in milliseconds of an idle machine: this one may do something else meanwhile."""
    found = [await _paint(tab)]
    while found[-1] >= PAINT_MS and len(found) < 3:
        await tab.reload()
        await taken(tab)
        found.append(await _paint(tab))
    return min(found)


async def _paint(tab: Page) -> float:
    took, slowness = await first_paint_ms(tab), await slowness_of(tab)
    print(f"first paint: {took:.0f} ms, on a machine {slowness:.1f} times as slow as an idle one")
    return took / slowness


async def test_changes_that_come_one_after_the_other_are_shown_each() -> None:
    state, moments = big_cluster(30, 400, 200), set[str]()
    async with served(state, SOON) as page, browser() as opened, logged_in(opened, page) as tab:
        for _ in range(4):
            moments.add(await taken(tab))
            await comes(tab, page, state)
    assert len(moments) == 4

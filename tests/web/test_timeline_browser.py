"""The timeline in a browser: by mouse and by keys, its address, what it says of a bar, and how fast it is."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.async_api import Page, expect

from tests.insight.states import NOW
from tests.scale import scaled
from tests.web.looks import LOOKS, SOON, go, is_accessible, looking, main_thread_ms
from tests.web.pages import CHROMIUM, HOW, TENANT, Served, department
from tests.web.timelines import HOUR, busy, long_day

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

USUAL = 4 * HOUR
"""Seconds that are shown at first."""
Range = tuple[float, float]
KEYS: dict[str, Callable[[Range, Range], bool]] = {
    "ArrowLeft": lambda now, then: now[0] < then[0],
    "ArrowRight": lambda now, then: now[0] > then[0],
    "+": lambda now, then: now[1] - now[0] < then[1] - then[0],
    "-": lambda now, then: now[1] - now[0] > then[1] - then[0],
    "Home": lambda now, _: abs(now[0] + (now[1] - now[0]) * 2 / 3 - NOW) < 60,
}
"""What each key changes, by the range after it and before."""


async def drawn(tab: Page) -> None:
    """Wait until the picture is there, with its forecast."""
    await expect(tab.locator("canvas")).to_be_visible()
    await expect(tab.get_by_text("Forecast of")).to_be_visible()


async def shown(tab: Page) -> Range:
    """From when to when, by the address."""
    await expect(tab).to_have_url(re.compile("from="))
    query = dict(parse_qsl(tab.url.partition("?")[2]))
    return float(query["from"]), float(query["to"])


async def settled(tab: Page, before: str) -> Range:
    """The range once the address differs."""
    await expect(tab).not_to_have_url(before)
    return await shown(tab)


async def ink(tab: Page, x: float, y: float) -> list[int]:
    """The colour of the canvas at a place, in parts of its size."""
    found: list[int] = await tab.evaluate(
        """([x, y]) => { const canvas = document.querySelector("canvas");
          const at = [canvas.width * x, y * devicePixelRatio, 1, 1];
          return [...canvas.getContext("2d").getImageData(...at).data]; }""",
        [x, y],
    )
    return found


async def middle(tab: Page) -> tuple[float, float]:
    box = await tab.locator("canvas").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def test_the_wheel_zooms_where_the_pointer_is_and_the_address_says_the_range() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        await tab.mouse.move(*await middle(tab))
        await tab.mouse.wheel(0, -100)
        begins, ends = await shown(tab)
        assert ends - begins < USUAL
        assert abs((begins + ends) / 2 - NOW) < 60, "the middle of the usual range stays where it is"
        before = tab.url
        await tab.mouse.wheel(0, 100)
        assert (await settled(tab, before))[1] > ends
        address = tab.url
        await tab.reload()
        await drawn(tab)
        assert tab.url == address
        await tab.get_by_role("button", name="Usual range").click()
        await expect(tab.get_by_role("button", name="Usual range")).to_have_count(0)


async def test_dragging_and_keys_move_and_zoom() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        x, y = await middle(tab)
        await tab.mouse.move(x, y + 40)
        await tab.mouse.down()
        await tab.mouse.move(x + 300, y + 40, steps=5)
        await tab.mouse.up()
        begins, ends = await shown(tab)
        assert begins < NOW - 2 * HOUR - 600, "dragged to the right: what was before"
        assert ends - begins == pytest.approx(USUAL, abs=2)
        await tab.locator("canvas").focus()
        for key, changed in KEYS.items():
            then = await shown(tab)
            before = tab.url
            await tab.keyboard.press(key)
            assert changed(await settled(tab, before), then), key


async def test_zooming_stops_at_a_minute_and_at_all_that_is_known() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        await tab.locator("canvas").focus()
        for _ in range(12):
            await tab.keyboard.press("-")
        begins, ends = await shown(tab)
        assert (begins, ends) == (NOW - 24 * HOUR, NOW + 12 * HOUR)
        before = tab.url
        for _ in range(40):
            await tab.keyboard.press("+")
        begins, ends = await settled(tab, before)
        assert ends - begins == pytest.approx(60, abs=2)
        assert begins <= NOW <= ends


async def test_a_bar_by_keyboard_and_its_workload() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline?only=vision")
        await drawn(tab)
        await tab.locator("canvas").focus()
        await tab.keyboard.press("Enter")
        said = tab.locator(".timeline-picture [role=status]")
        await expect(said).to_contain_text("vision/")
        for _ in range(12):
            await tab.keyboard.press("ArrowUp")
        for _ in range(12):
            await tab.keyboard.press("ArrowLeft")
        await expect(said).to_contain_text("vision/t")
        first = await said.text_content()
        await tab.keyboard.press("ArrowRight")
        await expect(said).to_contain_text("vision/gone")
        await expect(said).to_contain_text("Queue vision, a100, 1 pod")
        await expect(said).to_contain_text("evicted (Preempted) for vision/now-0")
        await expect(said).to_contain_text("reclaimWithinCohort: the queue takes its own quota back")
        assert first != await said.text_content()
        card = tab.locator(".timeline-card")
        await expect(card).to_contain_text("vision/gone")
        await expect(card.get_by_role("link")).to_have_attribute("href", "#/workload/vision/gone")
        await tab.keyboard.press("Escape")
        await expect(card).to_have_count(0)
        await tab.keyboard.press("Enter")
        await expect(card).to_be_visible()
        await tab.keyboard.press("Enter")
        await expect(tab).to_have_url(re.compile("#/workload/vision/"))


async def test_hovering_says_what_a_bar_is_and_a_click_keeps_it() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline?only=vision")
        await drawn(tab)
        box = await tab.locator("canvas").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] * 0.4, box["y"] + 18 + 9
        await tab.mouse.move(x, y)
        card = tab.locator(".timeline-card")
        await expect(card).to_contain_text("vision/gone")
        await expect(card.get_by_role("link")).to_have_count(0)
        await tab.mouse.click(x, y)
        await tab.mouse.move(x, y + 400)
        await expect(card.get_by_role("link", name="Open the workload")).to_be_visible()
        await card.get_by_role("button", name="Close").click()
        await expect(card).to_have_count(0)


async def test_what_is_expected_is_drawn_otherwise_and_says_its_range() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline?only=vision&as=table")
        row = tab.get_by_role("row", name="vision/next-0")
        await expect(row).to_contain_text("forecast")
        await expect(row).to_contain_text("starts between")
        await expect(row).to_contain_text("ends between")
        await expect(tab.get_by_role("row", name="vision/now-0 vision")).to_contain_text("runs")
        await expect(tab.get_by_text("ranges from 20 playouts")).to_be_visible()
        await expect(tab.get_by_text("runtimes by finished Jobs that ask for the same")).to_be_visible()
        await tab.get_by_role("button", name="Picture").click()
        await drawn(tab)
        alike = {tuple(await ink(tab, 0.45 + part / 400, 27)) for part in range(10)}
        assert len(alike) == 1, "what was is filled"
        hatched = {tuple(await ink(tab, 0.52 + part / 1400, 45)) for part in range(12)}
        assert len(hatched) > 1, "what is expected is hatched"


async def test_queues_namespaces_filter_and_heights_are_in_the_address() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        await tab.get_by_role("button", name="Namespace", exact=True).click()
        await expect(tab.get_by_role("link", name="speech")).to_have_attribute("href", "#/namespace/speech")
        await tab.get_by_label("Filter namespaces").fill("visi")
        await expect(tab.get_by_role("link", name="speech")).to_have_count(0)
        await tab.get_by_role("button", name="By nvidia.com/gpu").click()
        await expect(tab).to_have_url(re.compile("by=namespace.*high=size"))
        await tab.reload()
        await expect(tab.get_by_role("link", name="vision")).to_be_visible()
        await expect(tab.get_by_label("Filter namespaces")).to_have_value("visi")
        await tab.get_by_label("Filter namespaces").fill("nothing like it")
        await expect(tab.get_by_text("Nothing here has that in its name.")).to_be_visible()
        await tab.get_by_role("button", name="Queue", exact=True).click()
        queue = tab.get_by_role("link", name="speech")
        await expect(queue).to_have_attribute("href", "#/queue/speech?from=speech")
        await tab.get_by_label("Use and quota of each queue").check()
        await expect(tab.get_by_text("8 in use now, min 8").first).to_be_visible()
        await tab.get_by_role("button", name="Only speech").click()
        await expect(tab.get_by_role("link", name="vision")).to_have_count(0)
        await tab.get_by_role("button", name="All of them").click()
        await expect(tab.get_by_role("link", name="vision")).to_be_visible()


async def test_an_empty_range_says_why() -> None:
    async with looking(busy()) as (page, tab):
        begins = int(NOW - 20 * HOUR)
        await go(tab, page, f"timeline?from={begins}&to={begins + 600}")
        await expect(tab.get_by_text("No workload held quota in this range")).to_be_visible()
        await tab.get_by_role("button", name="Now", exact=True).click()
        await drawn(tab)


async def test_a_tenant_sees_own_bars_and_how_many_others_there_are() -> None:
    state = department()
    state.holds("team-b", "hidden", {"cpu": ("1", "default")}, cluster_queue="a", since=-3000)
    async with looking(state, TENANT) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        await expect(tab.get_by_text("other namespaces: 1 now")).to_be_visible()
        await expect(tab.get_by_text("Workloads of other namespaces count too")).to_be_visible()
        await tab.get_by_role("button", name="Table").click()
        await expect(tab.get_by_role("row", name="team-a/long")).to_be_visible()
        await expect(tab.get_by_text("hidden")).to_have_count(0)
        await expect(tab.get_by_text("team-b")).to_have_count(0)


async def test_in_a_range_that_is_over_nothing_is_said_of_now() -> None:
    state = department()
    state.holds("team-b", "hidden", {"cpu": ("1", "default")}, cluster_queue="a", since=-3000)
    async with looking(state, TENANT) as (page, tab):
        await go(tab, page, f"timeline?from={NOW - 5200}&to={NOW - 4000}")
        await drawn(tab)
        await expect(tab.get_by_role("link", name="a", exact=True)).to_be_visible()
        await expect(tab.get_by_text("other namespaces:")).to_have_count(0)
        await tab.get_by_role("button", name="Now", exact=True).click()
        await expect(tab.get_by_text("other namespaces: 1 now")).to_be_visible()
    async with looking(state) as (page, tab):
        await go(tab, page, f"timeline?quota=1&from={NOW - 5200}&to={NOW - 4000}")
        await drawn(tab)
        await expect(tab.get_by_text("min 8", exact=True)).to_be_visible()
        await tab.get_by_role("button", name="Now", exact=True).click()
        await expect(tab.get_by_text("11 in use now, min 8")).to_be_visible()


async def test_names_are_text_whatever_is_in_them() -> None:
    evil = "<img src=x onerror=alert(1)>"
    state = department()
    state.queue(evil, {"cpu": {"default": {"min": "8"}}})
    state.holds("team-a", evil, {"cpu": ("1", "default")}, cluster_queue=evil, since=-500)
    async with looking(state) as (page, tab):
        await go(tab, page, "timeline")
        await drawn(tab)
        await expect(tab.get_by_role("link", name=evil)).to_be_visible()
        await tab.locator("canvas").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.locator(".timeline-card")).to_be_visible()
        await tab.get_by_role("button", name="Table").click()
        await expect(tab.get_by_role("row", name=evil)).to_be_visible()
        await expect(tab.locator("main img")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible(scheme: str, width: int) -> None:
    async with looking(busy(), scheme=scheme, width=width) as (page, tab):
        await go(tab, page, "timeline?quota=1")
        await drawn(tab)
        await tab.locator("canvas").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.locator(".timeline-card")).to_be_visible()
        await is_accessible(tab)
        await tab.get_by_role("button", name="Table").click()
        await expect(tab.get_by_role("row").nth(3)).to_be_visible()
        await is_accessible(tab)


async def test_very_many_admissions_stay_smooth() -> None:
    """Zooming, moving and an update of thousands of admissions in 200 queues leave the main thread free."""
    state = long_day(200, scaled(5000, 20_000))
    async with looking(state, allowance=SOON) as (page, tab):
        await go(tab, page, f"timeline?from={int(NOW - 24 * HOUR)}&to={int(NOW + 12 * HOUR)}")
        await drawn(tab)
        await tab.mouse.move(*await middle(tab))

        async def look_around() -> None:
            for turn in range(10):
                await tab.mouse.wheel(0, -60 if turn < 5 else 60)
                await tab.keyboard.press("ArrowLeft")
            await tab.wait_for_timeout(1000)

        assert await main_thread_ms(tab, look_around()) < 100
        assert await main_thread_ms(tab, update(page, tab, state)) < 100


async def update(page: Served, tab: Page, state: Any) -> None:  # a State
    state.holds("ns-0000", "late", {"cpu": ("1", "default")}, cluster_queue="queue-0000", since=-60)
    async with tab.expect_response(lambda answer: "/api/timeline" in answer.url):
        page.stage.show(state)
    await tab.wait_for_timeout(500)

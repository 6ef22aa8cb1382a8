"""A queue and the list of Workloads in a browser: by mouse and by keyboard, with few and with very many."""

import asyncio
import re
import threading
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from admitter.insight.forecast.deadline import Allowance, Deadline
from admitter.web.scene import WebScene
from tests.insight.states import State
from tests.scale import scaled
from tests.web.looks import LOOKS, SOON, go, is_accessible, looking, main_thread_ms
from tests.web.pages import CHROMIUM, HOW, TENANT, department, fleet
from tests.web.test_queue import HOSTILE, people

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

ROWS = scaled(5000, 20_000)
SOME = f"job-{ROWS // 2 + 1:05}"
"""A Workload in the middle of that many, and of the second of four queues."""


def row(tab: Page, name: str) -> Any:  # a locator
    return tab.get_by_role("row").filter(has=tab.get_by_role("link", name=name, exact=True))


async def test_the_line_its_reasons_and_its_starts() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "queue/a")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue a")
        await expect(
            tab.get_by_role("img", name="cpu in default: 10 of 8 in use, 2 borrowed")
        ).to_be_visible()
        first = row(tab, "train-0")
        await expect(first).to_contain_text("asks for 7 cpu from ClusterQueue a")
        await expect(first).to_contain_text("InsufficientQuota")
        await expect(first.locator(".start-words")).to_contain_text("in ")
        assert await first.locator(".start-bar .median").count() == 1
        await tab.get_by_role("button", name="Holding quota (1)").click()
        await expect(row(tab, "long")).to_contain_text("in ")
        await expect(tab).to_have_url(re.compile("group=holding"))
        await tab.get_by_role("button", name="Waiting (4)").click()
        await row(tab, "train-1").get_by_role("link", name="train-1").click()
        await expect(tab).to_have_url(re.compile("#/workload/team-a/train-1"))


async def test_filters_and_orders_are_in_the_address() -> None:
    async with looking(people()) as (page, tab):
        await go(tab, page, "queue/a")
        await expect(row(tab, "of-bob-1")).to_be_visible()
        await tab.get_by_label("User", exact=True).select_option("ann")
        await expect(row(tab, "of-bob-1")).to_have_count(0)
        await expect(tab.get_by_text("2 Workloads with these filters.")).to_be_visible()
        await tab.get_by_label("Priority").fill("1..")
        await expect(tab.get_by_text("1 Workload with these filters.")).to_be_visible()
        await tab.get_by_label("Order", exact=True).select_option("Job, backwards")
        await expect(tab).to_have_url(re.compile(r"user=ann.*priority=1\.\..*sort=-name"))
        await tab.reload()
        await expect(tab.get_by_text("1 Workload with these filters.")).to_be_visible()
        await expect(tab.get_by_label("User", exact=True)).to_have_value("ann")
        await expect(tab.get_by_role("columnheader", name="Job")).to_have_attribute("aria-sort", "descending")
        await tab.get_by_label("Search").fill("nothing like it")
        await expect(tab.get_by_text("No Workload fits these filters.")).to_be_visible()
        await tab.get_by_role("button", name="Clear filters").click()
        await expect(tab.get_by_text("3 Workloads.")).to_be_visible()
        await tab.get_by_role("button", name="Priority").click()
        await expect(tab).to_have_url(re.compile("sort=-priority"))


async def at(tab: Page) -> str:
    """The text of the row that keys move."""
    grid = tab.get_by_role("grid")
    name = await grid.get_attribute("aria-activedescendant")
    return (await tab.locator(f"#{name}").inner_text()).replace("\n", " ")


async def test_very_many_rows_by_keyboard_and_an_update() -> None:
    """To the end and back, and to a name by typing it; a change takes less than 100 ms of the main thread."""
    state = fleet(4, ROWS)
    async with looking(state, allowance=SOON) as (page, tab):
        await go(tab, page, "workloads?group=waiting&sort=name")
        grid = tab.get_by_role("grid")
        await expect(grid).to_have_attribute("aria-rowcount", f"{ROWS + 1}")
        await grid.focus()
        await tab.keyboard.press("End")
        await expect(row(tab, f"job-{ROWS - 1:05}")).to_be_visible()
        assert await tab.get_by_role("row").count() < 60
        await expect(row(tab, f"job-{ROWS - 1:05}")).to_have_attribute("aria-rowindex", f"{ROWS + 1}")
        await tab.keyboard.press("ArrowUp")
        assert f"job-{ROWS - 2:05}" in await at(tab)
        await tab.keyboard.press("Home")
        await expect(row(tab, "job-00000")).to_be_visible()
        await tab.keyboard.press("PageDown")
        assert "job-00000" not in await at(tab)
        await tab.keyboard.type(SOME)
        await expect(row(tab, SOME)).to_have_attribute("aria-selected", "true")
        await expect(tab).to_have_url(re.compile(f"row={ROWS // 2 + 1}"))
        state.waits("ns-0000", "a-new-one", {"cpu": "4"}, created=30)

        async def change() -> None:
            page.stage.show(state)
            await expect(grid).to_have_attribute("aria-rowcount", f"{ROWS + 2}")

        assert await main_thread_ms(tab, change()) < 100
        await expect(row(tab, SOME)).to_have_attribute("aria-selected", "true")
        await tab.keyboard.press("Enter")
        await expect(tab).to_have_url(re.compile(f"#/workload/ns-0001/{SOME}"))
        await tab.go_back()
        await expect(grid).to_have_attribute("aria-rowcount", f"{ROWS + 2}")


async def test_scrolling_by_mouse_draws_what_is_in_view_and_blocks_nothing() -> None:
    async with looking(fleet(4, ROWS), allowance=SOON) as (page, tab):
        await go(tab, page, "queue/queue-0001")
        await expect(row(tab, "job-00001")).to_be_visible()

        async def scroll() -> None:
            for part in (0.2, 0.9, 0.5):
                await tab.get_by_role("grid").evaluate(
                    "(grid, part) => { grid.scrollTop = grid.scrollHeight * part; }", part
                )
            await expect(row(tab, f"job-{ROWS // 2 + 9:05}")).to_be_visible()

        assert await main_thread_ms(tab, scroll()) < 100
        assert await tab.get_by_role("row").count() < 60


async def test_a_workload_that_goes_moves_no_other_from_the_keyboard() -> None:
    async with looking(department(4)) as (page, tab):
        await go(tab, page, "queue/a")
        await expect(row(tab, "train-2")).to_be_visible()
        await tab.get_by_role("grid").focus()
        await tab.keyboard.type("train-2")
        await expect(row(tab, "train-2")).to_have_attribute("aria-selected", "true")
        later = department(4)
        later.objects["jobs"] = [job for job in later.objects["jobs"] if job["metadata"]["name"] != "train-0"]
        page.stage.show(later)
        await expect(row(tab, "train-0")).to_have_count(0)
        await expect(row(tab, "train-2")).to_have_attribute("aria-selected", "true")
        await expect(tab.get_by_role("grid")).to_be_focused()


async def test_rows_without_names_keep_their_place_and_are_drawn_once() -> None:
    state = department()
    async with looking(state, TENANT) as (page, tab):
        await go(tab, page, "queue/a")
        hidden = tab.get_by_role("row").filter(has_text="another namespace's")
        await expect(hidden).to_have_count(1)
        first = await hidden.first.element_handle()
        for number in range(3):
            state.waits("team-a", f"late-{number}", {"cpu": "7"}, created=20 + number)
            page.stage.show(state)
            await expect(row(tab, f"late-{number}")).to_be_visible()
        assert first is not None
        assert await first.evaluate("element => element.isConnected")
        await expect(tab.get_by_text("secret")).to_have_count(0)
        await tab.get_by_label("Search").fill("t")
        await expect(hidden).to_have_count(0)


async def test_a_start_that_is_not_found_in_time_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, may_end = asyncio.Event(), threading.Event()
    estimate = WebScene._estimate

    async def hold(route: Route) -> None:
        await seen.wait()
        await route.continue_()

    def late(shown: WebScene, queue: str, deadline: Deadline) -> bool:
        may_end.wait()
        return estimate(shown, queue, deadline)

    monkeypatch.setattr(WebScene, "_estimate", late)
    try:
        async with looking(department(), allowance=Allowance(0.5)) as (page, tab):
            await tab.route("**/api/starts*", hold)
            await go(tab, page, "queue/a")
            await expect(row(tab, "train-1")).to_contain_text("Reading…")
            seen.set()
            await expect(row(tab, "train-1")).to_contain_text("no estimate in time")
    finally:
        may_end.set()


@pytest.mark.parametrize("address", ["queue/a", "my?namespace=team-a"])
async def test_reasons_that_take_long_come_though_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    may_end, reasons = threading.Event(), WebScene.reasons

    def late(scene: WebScene) -> Any:
        may_end.wait()
        return reasons(scene)

    monkeypatch.setattr(WebScene, "reasons", late)
    try:
        async with looking(department()) as (page, tab):
            await go(tab, page, address)
            await expect(tab.get_by_text("No reason is known yet").first).to_be_visible()
            may_end.set()
            await expect(tab.get_by_text("asks for 7 cpu from ClusterQueue a").first).to_be_visible()
            await expect(tab.get_by_text("No reason is known yet")).to_have_count(0)
    finally:
        may_end.set()


async def test_names_are_text_whatever_is_in_them() -> None:
    state = department()
    for number, name in enumerate(HOSTILE):
        job = state.waits("team-a", name, {"cpu": "7"}, created=50 + number)
        job["metadata"]["labels"]["yunikorn.apache.org/username"] = HOSTILE[0]
    async with looking(state) as (page, tab):
        for address in ("queue/a", "workloads?group=waiting", "my?namespace=team-a"):
            await go(tab, page, address)
            await expect(tab.get_by_role("link", name=HOSTILE[0], exact=True)).to_be_visible()
            await expect(tab.locator("main img")).to_have_count(0)


@pytest.mark.parametrize("address", ["queue/nope", "namespace/nope"])
async def test_what_is_not_there_is_said_in_place_of_empty_tables(address: str) -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, address)
        kind = address.partition("/")[0]
        await expect(tab.get_by_role("alert")).to_contain_text(f"there is no {kind} nope")
        await expect(tab.get_by_role("grid")).to_have_count(0)
        await expect(tab.get_by_role("table")).to_have_count(0)


@pytest.mark.parametrize(
    "place", ["workloads", "my", "workload/team-a/train-0", "timeline", "timeline?as=table"]
)
async def test_a_link_to_a_queue_says_which_namespace_of_the_user_uses_it(place: str) -> None:
    """Of a queue that many namespaces use, the server can't know soon which of them a user may see."""
    async with looking(department(), TENANT) as (page, tab):
        await go(tab, page, place)
        links = tab.locator("main a[href^='#/queue/']")
        await expect(links.first).to_be_visible()
        found = await links.evaluate_all("found => found.map((each) => each.getAttribute('href'))")
        assert set(found) == {"#/queue/a?from=team-a"}
        await links.first.click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue a")


async def test_a_queue_without_workloads_says_so() -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    async with looking(state) as (page, tab):
        await go(tab, page, "queue/a")
        await expect(tab.get_by_text("No Workload waits here")).to_be_visible()
        await go(tab, page, "workloads")
        await expect(tab.get_by_text("No Workload is here")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible(scheme: str, width: int) -> None:
    async with looking(department(), scheme=scheme, width=width) as (page, tab):
        for address in ("queue/a", "queue/a?group=holding", "queue/b", "workloads"):
            await go(tab, page, address)
            await expect(tab.locator(".listing")).to_be_visible()
            await expect(tab.get_by_text("Reading…")).to_have_count(0)
            await is_accessible(tab)

"""The page in a browser, as people use it: by mouse, by keyboard, with few queues and very many."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

from admitter.insight.explain.outlook import first, start_of
from admitter.insight.forecast.deadline import NO_LIMIT, Allowance, Deadline
from admitter.insight.snapshot_file import SnapshotFile
from admitter.web import scene
from admitter.web.scene import WebScene
from tests.insight.states import State
from tests.web.pages import ADMIN, CHROMIUM, HOW, TENANT, Served, department, fleet, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


@asynccontextmanager
async def looking(
    state: State | SnapshotFile,
    token: str = ADMIN,
    scheme: str = "light",
    allowance: Allowance = NO_LIMIT,
) -> AsyncIterator[tuple[Served, Page]]:
    """A page that is served, and a browser in which a user has logged in; what goes wrong there is told."""
    faults: list[str] = []
    async with served(state, allowance) as page, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(
            viewport={"width": 1100, "height": 760},
            color_scheme="dark" if scheme == "dark" else "light",
            locale="en-GB",
            timezone_id="UTC",
        )
        tab = await context.new_page()
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda said: faults.extend([said.text] if "Content Security" in said.text else []))
        tab.on("request", lambda sent: faults.extend([] if sent.url.startswith(page.address) else [sent.url]))
        await tab.goto(page.address)
        await tab.get_by_label("A token").fill(token)
        await tab.get_by_role("button", name="Log in").click()
        await expect(tab.get_by_role("button", name="Log out")).to_be_visible()
        yield page, tab
        await browser.close()
    assert faults == []


async def test_from_the_tree_to_the_reason_why_a_job_waits() -> None:
    async with looking(department()) as (_, tab):
        row = tab.get_by_role("row", name="ClusterQueue a")
        await expect(row).to_contain_text("10 of 8, 2 borrowed")
        await expect(tab.get_by_role("row", name="ClusterQueue b")).to_contain_text("0 of 8, 2 lent")
        await row.get_by_role("link").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue a")
        await expect(tab.get_by_role("row", name="train-1")).to_contain_text("in ")
        await tab.get_by_role("link", name="train-0").click()
        why = tab.locator(".explanation")
        await expect(why).to_contain_text("waits for 7 × cpu in flavor default: 0 free in ClusterQueue a")
        await expect(why).to_contain_text("not evicted: preemption.withinClusterQueue is Never")
        await expect(why).to_contain_text("Start: in ")
        await tab.get_by_role("link", name="All of team-a").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Namespace team-a")
        await tab.go_back()
        await expect(why).to_be_visible()


async def test_all_of_it_by_keyboard() -> None:
    async with looking(department()) as (_, tab):
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_be_visible()
        await tab.get_by_role("button", name="What is below Cohort research").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_have_count(0)
        toggle = tab.get_by_role("button", name="What is below Cohort research")
        await expect(toggle).to_be_focused()
        await expect(toggle).to_have_attribute("aria-expanded", "false")
        await tab.keyboard.press("Enter")
        await tab.keyboard.press("Tab")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_be_focused()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue a")
        await expect(tab.locator("main")).to_be_focused()


async def test_what_changes_is_shown_without_asking_and_nothing_else_is_drawn_anew() -> None:
    async with looking(department()) as (page, tab):
        link = tab.get_by_role("link", name="ClusterQueue b")
        await link.focus()
        before = await link.element_handle()
        page.stage.show(department(9))
        await expect(tab.get_by_role("row", name="ClusterQueue a")).to_contain_text("10")
        await expect(tab.locator("#state")).to_contain_text("10 waiting")
        await expect(link).to_be_focused()
        assert before is not None
        assert await before.evaluate("element => element.isConnected")


async def test_a_filter_and_orders() -> None:
    async with looking(fleet(30, 40)) as (_, tab):
        await expect(tab.get_by_role("link", name="ClusterQueue")).to_have_count(30)
        await tab.get_by_label("Filter").fill("0007")
        await expect(tab.get_by_role("link", name="ClusterQueue")).to_have_count(1)
        await tab.get_by_label("Filter").fill("nothing like it")
        await expect(tab.get_by_text("No queue's name has that in it.")).to_be_visible()
        await tab.get_by_label("Filter").fill("")
        await tab.get_by_label("Order").select_option("by waiting workloads")
        # Forty in thirty queues: the first ten have one more.
        await expect(tab.locator("tbody tr").first).to_contain_text("queue-0000")
        await expect(tab.locator("tbody tr").nth(10)).to_contain_text("queue-0010")


async def test_a_tenant_chooses_a_namespace_and_sees_no_more() -> None:
    async with looking(department(), TENANT) as (_, tab):
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Choose a namespace")
        await tab.get_by_label("Namespace").fill("team-b")
        await tab.get_by_label("Namespace").press("Enter")
        await expect(tab.locator("#state")).to_contain_text("may not list Workloads in namespace team-b")
        await tab.get_by_label("Namespace").fill("team-a")
        await tab.get_by_label("Namespace").press("Enter")
        await tab.get_by_role("link", name="ClusterQueue a").click()
        await expect(tab.get_by_role("row", name="another namespace's")).to_have_count(1)
        await expect(tab.get_by_text("secret")).to_have_count(0)


async def test_logging_out_and_a_token_that_expires() -> None:
    async with looking(department()) as (page, tab):
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_be_visible()
        page.rights.expired.add(ADMIN)
        page.stage.show(department(4))
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
        await tab.get_by_label("A token").fill("nonsense")
        await tab.get_by_role("button", name="Log in").click()
        await expect(tab.get_by_role("alert")).to_contain_text("does not know this token")
        page.rights.expired.clear()
        await tab.get_by_label("A token").fill(ADMIN)
        await tab.get_by_role("button", name="Log in").click()
        await tab.get_by_role("button", name="Log out").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
        await tab.reload()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")


async def test_a_cluster_without_queues_says_what_to_do() -> None:
    async with looking(State()) as (_, tab):
        await expect(tab.get_by_text("There are no queues yet.")).to_be_visible()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("namespace/nope", "there is no namespace nope"),
        ("queue/nope", "there is no queue nope"),
        ("workload/team-a/nope", "there is no Job and no Workload nope in namespace team-a"),
    ],
)
async def test_what_is_not_there_is_said_in_place_of_empty_tables(place: str, says: str) -> None:
    async with looking(department()) as (page, tab):
        await tab.goto(f"{page.address}/#/{place}")
        await expect(tab.get_by_role("alert")).to_contain_text(says)
        await expect(tab.get_by_role("table")).to_have_count(0)
        await tab.get_by_role("link", name="Quota").click()
        await expect(tab.get_by_role("row", name="ClusterQueue a")).to_be_visible()
        await expect(tab.get_by_role("alert")).to_have_count(0)


async def test_names_are_text_whatever_is_in_them() -> None:
    state = department()
    state.put("cohorts", "<img src=x onerror=alert(1)>", spec={})
    async with looking(state) as (_, tab):
        await expect(tab.get_by_text("Cohort <img src=x onerror=alert(1)>")).to_be_visible()
        await expect(tab.locator("main img")).to_have_count(0)


async def test_very_many_queues_and_workloads() -> None:
    """A thousand and twenty thousand: it is there at once, and of a change only what differs is drawn."""
    state = fleet(1000, 20_000)
    async with looking(state) as (page, tab):
        await expect(tab.get_by_role("link", name="queue-0999")).to_be_visible()
        await tab.evaluate(
            """() => {
                window.drawn = 0;
                const count = (all) => all.forEach((each) => (window.drawn += each.addedNodes.length));
                new MutationObserver(count).observe(document.querySelector("tbody"), { childList: true });
            }"""
        )
        state.waits("ns-0500", "late", {"cpu": "4"}, created=30)
        page.stage.show(state)
        await expect(tab.locator("#state")).to_contain_text("20001 waiting")
        assert await tab.evaluate("window.drawn") == 2, "the queue and its Cohort"
        await tab.reload()
        await expect(tab.get_by_role("link", name="queue-0999")).to_be_visible()
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        assert await tab.evaluate(paint) < 1000


async def test_rows_without_names_are_drawn_once_however_often_there_is_something_new() -> None:
    state = department()
    for number in range(3):
        state.holds("team-b", f"hidden-{number}", {"cpu": ("1", "default")}, cluster_queue="a")
    async with looking(state, TENANT) as (page, tab):
        await tab.goto(f"{page.address}/#/queue/a?namespace=team-a")
        hidden = tab.get_by_role("row", name="another namespace's")
        await expect(hidden).to_have_count(4)
        first = await hidden.first.element_handle()
        for number in range(3):
            state.waits("team-a", f"late-{number}", {"cpu": "7"}, created=20 + number)
            page.stage.show(state)
            await expect(tab.get_by_role("row", name=f"late-{number}")).to_be_visible()
        await expect(hidden).to_have_count(4)
        assert first is not None
        assert await first.evaluate("element => element.isConnected")


async def test_a_workload_that_goes_takes_no_focus_from_others() -> None:
    async with looking(department(4)) as (page, tab):
        await tab.goto(f"{page.address}/#/queue/a")
        link = tab.get_by_role("link", name="train-2")
        await link.focus()
        later = department(4)
        later.objects["jobs"] = [job for job in later.objects["jobs"] if job["metadata"]["name"] != "train-0"]
        page.stage.show(later)
        await expect(tab.get_by_role("link", name="train-0")).to_have_count(0)
        await expect(link).to_be_focused()


async def test_the_reason_is_there_while_the_rest_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    may_explain, may_estimate = threading.Event(), threading.Event()

    def explained(*arguments: Any) -> Any:
        may_explain.wait()
        return first(*arguments)

    def estimated(*arguments: Any) -> Any:
        may_estimate.wait()
        return start_of(*arguments)

    monkeypatch.setattr(scene, "first", explained)
    monkeypatch.setattr(scene, "start_of", estimated)
    monkeypatch.setattr(scene, "AT_ONCE", Allowance(0.05))
    try:
        async with looking(department()) as (page, tab):
            await tab.goto(f"{page.address}/#/workload/team-a/train-0")
            why = tab.locator(".explanation")
            await expect(why).to_contain_text("team-a/train-0: Pending")
            await expect(why).to_contain_text("So says its status; more is being worked out.")
            monkeypatch.setattr(scene, "AT_ONCE", Allowance(30.0))
            may_explain.set()
            await expect(why).to_contain_text("waits for 7 × cpu in flavor default: 0 free in ClusterQueue a")
            await expect(why).to_contain_text("Start: running playouts …")
            await expect(why).not_to_contain_text("So says its status")
            may_estimate.set()
            await expect(why).to_contain_text("Start: in ")
            await expect(why).to_contain_text("It could start if these ended:")
    finally:
        may_explain.set()
        may_estimate.set()


async def test_a_start_that_is_not_found_in_time_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_end = threading.Event()
    estimate = WebScene._estimate

    def late(shown: WebScene, queue: str, deadline: Deadline) -> bool:
        may_end.wait()
        return estimate(shown, queue, deadline)

    monkeypatch.setattr(WebScene, "_estimate", late)
    try:
        async with looking(department(), allowance=Allowance(0.5)) as (page, tab):
            await tab.goto(f"{page.address}/#/queue/a")
            row = tab.get_by_role("row", name="train-1")
            await expect(row).to_contain_text("…")
            await expect(row).to_contain_text("no estimate in time")
    finally:
        may_end.set()

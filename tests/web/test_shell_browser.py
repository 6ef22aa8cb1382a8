"""The shell of the console in a browser: logging in, the menu, one stream for all tabs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, Page, expect

from admitter.web import server
from admitter.web.sessions import Sessions
from tests.web.looks import LOOKS, browser, go, is_accessible, logged_in, looking
from tests.web.pages import ADMIN, CHROMIUM, HOW, TENANT, Served, department, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

SHARED, ALONE = "", "delete window.SharedWorker"
FAILED = """window.SharedWorker = class {
  port = { postMessage() {} };
  constructor() { setTimeout(() => this.onerror()); }
}"""
"""A worker that is shared, a browser without such workers, and a worker that does not come."""
COUNTED = """;
window.heard = 0;
window.EventSource = class extends EventSource {
  constructor(path) { super(path); this.addEventListener("still", () => { window.heard += 1; }); }
};"""
"""How often a stream has said that it is still there."""
LOST = "The connection to the server is lost: what is shown may be old. The console tries again."


async def test_an_administrator_begins_with_the_overview_and_a_tenant_with_own_jobs() -> None:
    async with looking(department()) as (_, tab):
        await expect(tab.get_by_role("link", name="Overview")).to_have_attribute("aria-current", "page")
    async with looking(department(), TENANT) as (page, tab):
        await expect(tab.get_by_role("link", name="My jobs")).to_have_attribute("aria-current", "page")
        await expect(tab.get_by_role("link", name="Quota")).to_have_count(0)
        await tab.goto(f"{page.address}/#/quota")
        await expect(tab.get_by_role("alert")).to_contain_text("may not list ClusterQueues")


async def test_an_address_that_changes_while_the_page_is_drawn_is_followed() -> None:
    """The observer is called after the first drawing, and before anything that runs after a frame."""
    early = """new MutationObserver((_, observer) => {
        if (!document.querySelector("nav")) return;
        observer.disconnect();
        location.hash = "#/workloads";
    }).observe(document, { childList: true, subtree: true })"""
    async with looking(department()) as (page, tab):
        await tab.add_init_script(early)
        await tab.goto(f"{page.address}/#/quota")
        await tab.reload()
        await expect(tab).to_have_url(f"{page.address}/#/workloads")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Workloads")


async def test_templates_keep_nothing_of_what_was_drawn() -> None:
    """A part that never changes is made anew: it would keep the tree that it was drawn in first."""
    same = """async (place) => {
        const { html } = await import(place);
        const made = () => html`<p><b>never another</b></p>`;
        return made().props.children === made().props.children;
    }"""
    async with looking(department()) as (_, tab):
        assert await tab.evaluate(same, "/vendor/preact.js"), "what this is about"
        assert not await tab.evaluate(same, "/lib/preact.js")


async def test_logging_out_and_a_token_that_expires() -> None:
    async with looking(department()) as (page, tab):
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


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_logging_in_is_for_all(width: int, scheme: str) -> None:
    async with looking(department(), width=width, scheme=scheme) as (_, tab):
        await tab.get_by_role("button", name="Log out").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Log in")
        await expect(tab.get_by_label("A token")).to_be_focused()
        await is_accessible(tab)


async def test_by_keyboard_to_the_content_and_from_view_to_view() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota")
        await tab.reload()
        await expect(tab.get_by_role("heading", level=1)).to_be_visible()
        await tab.keyboard.press("Tab")
        await expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
        await tab.keyboard.press("Enter")
        await expect(tab.locator("main")).to_be_focused()
        await tab.get_by_role("link", name="Timeline").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("link", name="Timeline")).to_have_attribute("aria-current", "page")
        await expect(tab.locator("main")).to_be_focused()
        await tab.go_back()
        await expect(tab.get_by_role("link", name="Quota")).to_have_attribute("aria-current", "page")


async def test_what_is_searched_for_is_a_namespace_or_a_workload() -> None:
    async with looking(department()) as (_, tab):
        sought = tab.get_by_role("searchbox", name="A namespace, or a workload as NAMESPACE/NAME")
        await sought.fill("team-a/train-0")
        await sought.press("Enter")
        await expect(tab.get_by_role("heading", level=1)).to_contain_text("train-0")
        await sought.fill("team-a")
        await sought.press("Enter")
        await expect(tab.get_by_role("heading", level=1)).to_contain_text("team-a")


async def test_tabs_share_one_stream() -> None:
    async with served(department()) as page, browser() as opened, logged_in(opened, page) as tab:
        others: list[Page] = []
        for _ in range(3):
            others.append(await tab.context.new_page())
            await go(others[-1], page, "quota")
        row = others[-1].get_by_text("ClusterQueue b")
        await expect(row.first).to_be_visible()
        assert page.streams() == 1
        await tab.close()
        state = department()
        state.queue("late", {"cpu": {"default": {"min": "1"}}}, "research")
        page.stage.show(state)
        for other in others:
            await expect(other.get_by_text("ClusterQueue late").first).to_be_visible()


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("namespace/nope", "nope"),
        ("queue/nope", "there is no queue nope"),
        ("workload/team-a/nope", "there is no Job and no Workload nope in namespace team-a"),
    ],
)
async def test_what_is_not_there_is_said_in_place_of_empty_sections(place: str, says: str) -> None:
    async with looking(department()) as (page, tab):
        await tab.goto(f"{page.address}/#/{place}")
        await expect(tab.get_by_role("alert").or_(tab.locator(".empty")).first).to_contain_text(says)
        await tab.get_by_role("link", name="Quota").click()
        await expect(tab.get_by_text("ClusterQueue a").first).to_be_visible()
        await expect(tab.get_by_role("alert")).to_have_count(0)


async def test_a_server_that_is_gone_is_said_and_comes_back() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota")
        await expect(tab.get_by_text("ClusterQueue a").first).to_be_visible()
        await tab.context.set_offline(True)
        page.stage.show(department(5))
        await tab.evaluate("dispatchEvent(new Event('changed'))")
        await expect(tab.get_by_role("alert").first).to_contain_text("can't be reached")
        await tab.context.set_offline(False)
        await expect(tab.get_by_role("alert")).to_have_count(0)


@asynccontextmanager
async def two_tabs(script: str = SHARED) -> AsyncIterator[tuple[Served, list[Page]]]:
    """Two tabs of one user that show the quota tree, and only wait."""
    async with looking(department()) as (page, tab):
        await tab.context.add_init_script(script)
        tabs = [tab, await tab.context.new_page()]
        for each in tabs:
            await each.goto(f"{page.address}/#/quota")
            await each.reload()
            await expect(each.get_by_text("ClusterQueue a").first).to_be_visible()
        yield page, tabs


def above(tab: Page) -> Locator:
    """What is said above all views."""
    return tab.locator("p.controller[role=status]")


@pytest.mark.parametrize("script", [SHARED, ALONE, FAILED], ids=["shared", "alone", "failed"])
async def test_tabs_that_wait_say_that_the_server_is_gone_until_it_is_back(script: str) -> None:
    async with two_tabs(script) as (page, tabs):
        await page.stop()
        for each in tabs:
            await expect(above(each)).to_have_text(LOST)
            await expect(each.get_by_role("alert").first).to_contain_text("can't be reached")
            await expect(each.get_by_text("ClusterQueue a").first).to_be_visible()
        await is_accessible(tabs[0])
        await page.start()
        for each in tabs:
            await expect(above(each)).to_contain_text("Controller pod_1 leads")
            await expect(above(each)).not_to_contain_text(LOST)
            await expect(each.get_by_role("alert")).to_have_count(0)
        state = department()
        state.queue("late", {"cpu": {"default": {"min": "1"}}}, "research")
        page.stage.show(state)
        for each in tabs:
            await expect(each.get_by_text("ClusterQueue late").first).to_be_visible()


async def test_a_stream_that_is_refused_is_said_although_requests_are_answered() -> None:
    async with two_tabs(ALONE) as (_, tabs):
        await tabs[0].route("**/api/changes", lambda route: route.fulfill(status=502))
        await tabs[0].reload()
        await expect(above(tabs[0])).to_contain_text(LOST)
        await expect(above(tabs[0])).to_contain_text("Controller pod_1 leads")
        await tabs[0].unroute("**/api/changes")
        await expect(above(tabs[0])).not_to_contain_text(LOST)


async def test_a_stream_that_is_silent_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser's clock runs faster: forty seconds pass without a word of the server."""
    monkeypatch.setattr(server, "HEARTBEAT_SECONDS", 0.2)
    async with looking(department()) as (page, tab):
        await tab.context.add_init_script(ALONE + COUNTED)
        await tab.clock.install()
        await tab.goto(f"{page.address}/#/quota")
        await tab.reload()
        await expect(tab.get_by_text("ClusterQueue a").first).to_be_visible()
        for times in (1, 2):
            await tab.wait_for_function("times => window.heard >= 2 * times", arg=times)
            await tab.clock.run_for(30_000)
        await expect(above(tab)).not_to_contain_text(LOST)
        await tab.route("**/api/changes", lambda route: route.fulfill(status=502))
        monkeypatch.setattr(server, "HEARTBEAT_SECONDS", 60.0)
        await tab.clock.run_for(41_000)
        await expect(above(tab)).to_contain_text(LOST)
        await tab.unroute("**/api/changes")
        await tab.clock.run_for(4_000)
        await expect(above(tab)).not_to_contain_text(LOST)


async def test_a_question_of_too_many_is_asked_again() -> None:
    async with looking(department()) as (page, tab):
        said = {"error": "too many requests at once: try again"}
        await tab.route("**/api/tree*", lambda route: route.fulfill(status=429, json=said), times=1)
        await tab.goto(f"{page.address}/#/quota")
        await expect(tab.get_by_text("ClusterQueue a").first).to_be_visible()


async def test_tabs_ask_for_a_login_once_a_restarted_server_knows_no_sessions() -> None:
    async with two_tabs() as (page, tabs):
        await page.stop()
        page.sessions = Sessions(lambda: 0.0)
        await page.start()
        for each in tabs:
            await expect(each.get_by_role("heading", level=1)).to_have_text("Log in")


async def test_a_tab_asks_for_a_login_after_a_logout_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEARTBEAT_SECONDS", 0.2)
    async with two_tabs() as (_, tabs):
        await tabs[0].get_by_role("button", name="Log out").click()
        await expect(tabs[1].get_by_role("heading", level=1)).to_have_text("Log in")


async def test_a_view_that_fails_leaves_the_menu() -> None:
    async with looking(department()) as (page, tab):
        await tab.route("**/views/timeline.js", lambda route: route.fulfill(status=404))
        await tab.goto(f"{page.address}/#/timeline")
        await expect(tab.get_by_role("alert")).to_contain_text("This view can't be shown.")
        await expect(tab.get_by_role("button", name="Load the page again")).to_be_visible()
        await tab.get_by_role("link", name="Quota").click()
        await expect(tab.get_by_text("ClusterQueue a").first).to_be_visible()
        await expect(tab.get_by_role("alert")).to_have_count(0)

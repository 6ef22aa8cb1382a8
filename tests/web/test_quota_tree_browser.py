"""The quota tree in a browser: by mouse and by keyboard, with its state in the address."""

import asyncio
import re
from dataclasses import replace
from urllib.parse import unquote

import pytest
from playwright.async_api import Page, expect

from tests.insight.states import NOW, State
from tests.web.looks import LOOKS, SOON, go, is_accessible, looking, main_thread_ms
from tests.web.pages import CHROMIUM, HOW, TENANT, Served, department, fleet
from tests.web.states import GPU, research

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


async def rows(tab: Page) -> list[str]:
    """The names of what is shown, in order."""
    found = await tab.get_by_role("treegrid").get_by_role("row").all()
    names = [
        await each.get_by_role("rowheader").or_(each.get_by_role("gridcell")).first.inner_text()
        for each in found[1:]
    ]
    return ["".join(each.split("\n")).strip() for each in names]


async def test_a_row_says_what_is_in_use_borrowed_and_lent() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota")
        row = tab.get_by_role("row", name="ClusterQueue a")
        await expect(row).to_contain_text("10 of 8, 2 borrowed")
        await expect(row).to_have_attribute("aria-level", "2")
        await expect(tab.get_by_role("row", name="ClusterQueue b")).to_contain_text("0 of 8, 2 lent")
        await row.get_by_role("link").click()
        await expect(tab).to_have_url(f"{page.address}/#/queue/a")


async def test_loans_are_a_picture_and_sentences() -> None:
    async with looking(research()) as (page, tab):
        await go(tab, page, "quota")
        borrowed = tab.get_by_role("button", name="2 borrowed")
        await borrowed.click()
        heading = tab.get_by_role("heading", level=2)
        await expect(heading).to_have_text(f"Loans of {GPU} in a100: ClusterQueue vision")
        await expect(heading).to_be_focused()
        words = f"vision borrows 2 of {GPU} in a100: 1 from language, 1 from speech"
        await expect(tab.locator(".sentences li")).to_have_text(words)
        picture = tab.get_by_role("img", name="2 lent by 2 places to 1 queue; the sentences below say which")
        await expect(picture.locator("path")).to_have_count(2)
        await expect(picture).to_contain_text("language")
        await tab.reload()
        await expect(tab.locator(".sentences li")).to_have_text(words)
        await tab.keyboard.press("Escape")
        await expect(tab.locator(".sentences")).to_have_count(0)
        assert "loans" not in tab.url
        await tab.get_by_role("button", name="1 lent").first.focus()
        await tab.keyboard.press("Enter")
        await expect(tab.locator(".sentences li")).to_have_text(
            f"language lends 1 of {GPU} in a100: 1 to vision"
        )
        await tab.get_by_role("link", name="vision").last.click()
        await expect(tab).to_have_url(f"{page.address}/#/queue/vision")


async def test_all_of_it_by_keyboard() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota")
        tree = tab.get_by_role("treegrid")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_be_visible()
        await tree.focus()
        await tab.keyboard.press("ArrowLeft")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_have_count(0)
        await expect(tab.get_by_role("row", name="Cohort research")).to_have_attribute(
            "aria-expanded", "false"
        )
        assert "closed=*" in unquote(tab.url)
        await tab.keyboard.press("ArrowRight")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_be_visible()
        assert "closed" not in tab.url
        await tab.keyboard.press("End")
        await expect(tab.get_by_role("row", name="ClusterQueue b")).to_have_attribute("aria-selected", "true")
        await tab.keyboard.press("ArrowLeft")
        await expect(tab.get_by_role("row", name="Cohort research")).to_have_attribute(
            "aria-selected", "true"
        )
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("link", name="ClusterQueue a")).to_have_count(0)
        await tab.keyboard.press("Enter")
        await tab.keyboard.press("ArrowDown")
        await tab.keyboard.press("Enter")
        await expect(tab).to_have_url(f"{page.address}/#/queue/a")


async def test_a_cohort_is_closed_by_its_button_and_a_link_shows_the_same() -> None:
    async with looking(fleet(30, 40)) as (page, tab):
        await go(tab, page, "quota")
        toggle = tab.get_by_role("button", name="What is below Cohort cohort-000")
        await toggle.click()
        await expect(toggle).to_be_focused()
        await expect(toggle).to_have_attribute("aria-expanded", "false")
        assert "closed=cohort-000" in tab.url
        shown = await rows(tab)
        assert shown[1] == "▾Cohort cohort-001"
        await tab.goto("about:blank")
        await tab.go_back()
        await expect(toggle).to_have_attribute("aria-expanded", "false")
        assert await rows(tab) == shown
        await tab.get_by_role("button", name="Open all Cohorts").click()
        await tab.get_by_role("button", name="Close all Cohorts").click()
        await expect(tab.get_by_role("link", name="ClusterQueue queue-")).to_have_count(0)
        await tab.get_by_role("button", name="What is below Cohort cohort-002").click()
        await expect(tab.get_by_role("link", name="ClusterQueue queue-002")).to_have_count(10)


async def test_filters_and_orders_are_in_the_address() -> None:
    async with looking(fleet(30, 40)) as (page, tab):
        await go(tab, page, "quota")
        await tab.get_by_label("Filter").fill("0007")
        await expect(tab.get_by_role("link", name="ClusterQueue")).to_have_count(1)
        assert "find=0007" in tab.url
        await tab.get_by_label("Filter").fill("nothing like it")
        await expect(tab.get_by_text("No queue or Cohort is like that.")).to_be_visible()
        await tab.get_by_label("Filter").fill("")
        await tab.get_by_label("Order").select_option("by waiting workloads")
        # Forty in thirty queues: the first ten have one more.
        await expect(tab.get_by_role("row").nth(1)).to_contain_text("queue-0000")
        await expect(tab.get_by_role("row").nth(11)).to_contain_text("queue-0010")
        assert "sort=waiting" in tab.url
        await tab.get_by_label("Show").select_option("those that borrow")
        await expect(tab.get_by_text("No queue or Cohort is like that.")).to_be_visible()
        await tab.get_by_label("Show").select_option("all")
    async with looking(research()) as (page, tab):
        await go(tab, page, f"quota?of=t4+{GPU}&only=borrowing&sort=share")
        await expect(tab.get_by_label("Show")).to_have_value("borrowing")
        await expect(tab.get_by_label("Resource")).to_have_value(f"t4 {GPU}")
        await expect(tab.get_by_role("row")).to_have_count(2)
        await expect(tab.get_by_role("row").nth(1)).to_contain_text("3 of 4")
        await tab.get_by_label("Resource").select_option("the scarcest of each")
        await expect(tab.get_by_role("row").nth(1)).to_contain_text("10 of 8")


async def test_what_changes_is_shown_without_asking_and_focus_stays() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota")
        link = tab.get_by_role("link", name="ClusterQueue b")
        await link.focus()
        before = await link.element_handle()
        page.stage.show(department(9))
        await expect(tab.get_by_role("row", name="ClusterQueue a")).to_contain_text("10")
        await expect(tab.locator(".state")).to_contain_text("10 waiting")
        await expect(link).to_be_focused()
        assert before is not None
        assert await before.evaluate("element => element.isConnected")


async def test_small_pictures_of_use_over_time() -> None:
    async with looking(department()) as (page, tab):
        for minutes in range(6):
            page.stage.show(replace(department().snapshot(), taken=NOW + 1200.0 * minutes))
        await go(tab, page, "quota")
        said = tab.get_by_role("row", name="ClusterQueue a").get_by_role("img", name="cpu of ClusterQueue a")
        await expect(said).to_have_attribute("aria-label", re.compile("between 10 and 10 in the last"))


async def test_a_cluster_without_queues_says_what_to_do() -> None:
    async with looking(State()) as (page, tab):
        await go(tab, page, "quota")
        await expect(tab.get_by_text("There are no queues yet.")).to_be_visible()


async def test_names_are_text_whatever_is_in_them() -> None:
    state = department()
    name = "<img src=x onerror=alert(1)>\u202e" + "x" * 220
    state.put("cohorts", name, spec={})
    state.put("cohorts", "below", spec={"parent": name})
    async with looking(state) as (page, tab):
        await go(tab, page, "quota")
        await expect(tab.get_by_text(f"Cohort {name}")).to_be_visible()
        await expect(tab.locator("main img")).to_have_count(0)
        await go(
            tab,
            page,
            "quota?loans=%5B%22cohort%22%2C%22%3Cimg%20src%3Dx%3E%22%2C%22default%22%2C%22cpu%22%5D",
        )
        await expect(tab.get_by_role("alert")).to_contain_text("there is no Cohort <img src=x>")
        for broken in ("%5B", "null", "%7B%7D", "%5B1%2C2%2C3%2C4%5D"):
            await go(tab, page, f"quota?loans={broken}&closed=%25&sort=nonsense&of=x")
            await expect(tab.get_by_text(f"Cohort {name}")).to_be_visible()


async def test_a_tenant_is_told_that_it_may_not_see_the_tree() -> None:
    async with looking(department(), TENANT) as (page, tab):
        for view in ("quota", "try"):
            await go(tab, page, view)
            await expect(tab.get_by_role("alert").first).to_contain_text("may not list ClusterQueues")
            await expect(tab.get_by_text("research")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible(scheme: str, width: int) -> None:
    async with looking(research(), scheme=scheme, width=width) as (page, tab):
        await go(tab, page, "quota")
        await tab.get_by_role("button", name="2 borrowed").click()
        await expect(tab.locator(".sentences li")).to_have_count(1)
        await is_accessible(tab)


async def changed(page: Served, tab: Page, state: State) -> None:
    state.waits("ns-0500", "late", {"cpu": "4"}, created=30)
    await asyncio.to_thread(page.stage.show, state)
    await expect(tab.locator(".state")).to_contain_text("3001 waiting")


async def test_a_thousand_queues_stay_smooth() -> None:
    state = fleet(1000, 3000)
    async with looking(state, allowance=SOON) as (page, tab):
        await go(tab, page, "quota")
        await expect(tab.get_by_role("link", name="ClusterQueue queue-0000")).to_be_visible()
        assert await tab.get_by_role("row").count() < 60, "others are not in the page"
        assert await main_thread_ms(tab, changed(page, tab, state)) < 100
        await tab.get_by_role("treegrid").focus()
        await tab.keyboard.press("End")
        await expect(tab.get_by_role("link", name="ClusterQueue queue-0999")).to_be_visible()

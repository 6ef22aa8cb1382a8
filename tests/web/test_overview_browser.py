"""The overview in a real browser: numbers, links, keys, and what it looks like with few and many queues."""

import re

import pytest
from playwright.async_api import Locator, expect
from playwright.async_api import Page as Tab

from tests.insight.states import State
from tests.scale import scaled
from tests.web.histories import change, evicted
from tests.web.looks import LOOKS, PHONE, SOON, go, is_accessible, looking, main_thread_ms
from tests.web.overviews import GPU, TEAMS, busy, lending, lived, troubled
from tests.web.pages import CHROMIUM, HOW, TENANT, fleet

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


def card(tab: Tab, title: str) -> Locator:
    return tab.locator(".card", has=tab.get_by_role("heading", name=title, exact=True))


async def test_what_is_wrong_comes_first_and_numbers_lead_to_what_is_behind_them() -> None:
    async with looking(troubled(busy())) as (page, tab):
        await go(tab, page, "overview")
        await expect(tab.get_by_role("heading", name="1 queue does not work")).to_be_visible()
        await expect(tab.get_by_role("listitem").filter(has_text="batch")).to_contain_text(
            "no such ResourceFlavor"
        )
        await expect(tab.get_by_role("listitem").filter(has_text="gpu-3")).to_contain_text(
            "not ready for 20 min"
        )
        late = tab.get_by_role("listitem").filter(has_text="had to stop 6 min 40 s ago")
        await expect(late).to_have_text(
            "train had to stop 6 min 40 s ago, and its pods still hold quota of vision; urgent waits for it."
        )
        await expect(late.get_by_role("link", name="urgent")).to_have_attribute(
            "href", "#/workload/speech/urgent"
        )
        waiting = card(tab, "Waiting")
        await expect(waiting).to_contain_text("half of them for more than 20 min")
        await expect(waiting.get_by_role("link", name="47")).to_have_attribute(
            "href", "#/workloads?group=waiting&sort=created"
        )
        await expect(waiting.get_by_role("link", name="1 ClusterQueueInactive")).to_have_attribute(
            "href", "#/workloads?group=waiting&reason=ClusterQueueInactive"
        )
        await expect(card(tab, "Nodes ready").get_by_role("link", name="11 of 12")).to_have_attribute(
            "href", "#/map"
        )
        await expect(card(tab, "Admitted").get_by_role("link", name="29", exact=True)).to_have_attribute(
            "href", "#/workloads?group=holding"
        )
        oldest = tab.get_by_role("region", name="Waiting longest").get_by_role("row")
        await expect(oldest).to_have_count(6)
        await expect(oldest.nth(1)).to_contain_text("sweep-9-8")
        await expect(oldest.nth(1)).to_contain_text("1 h")


async def test_evictions_are_reached_by_keys_and_by_a_link() -> None:
    async with looking(troubled(busy())) as (page, tab):
        await go(tab, page, "overview")
        link = card(tab, "Evicted in the last hour").get_by_role("link", name="1 Preempted")
        await link.focus()
        await tab.keyboard.press("Enter")
        heading = tab.get_by_role("heading", name="Evictions of the last hour")
        await expect(heading).to_be_focused()
        await expect(heading).to_be_in_viewport()
        rows = tab.get_by_role("region", name="Evictions of the last hour").get_by_role("row")
        await expect(rows).to_have_count(2)
        await expect(rows.nth(1)).to_contain_text("speech reclaims its own quota")
        await tab.get_by_role("button", name="all reasons").press("Enter")
        await expect(rows).to_have_count(3)
        await tab.get_by_role("button", name="CapacityShrunk").click()
        await expect(rows).to_have_count(2)
        address = tab.url
        assert "why=CapacityShrunk" in address
        await tab.goto("about:blank")
        await tab.goto(address)
        await expect(rows).to_have_count(2)
        await expect(heading).to_be_in_viewport()


async def test_few_are_shown_and_more_on_demand() -> None:
    state = busy()
    for number in range(5):
        state.queue(f"broken-{number}", {"cpu": {"missing": {"min": "8"}}})
    for number in range(12):
        made = state.holds(
            "vision", f"gone-{number:02}", {"cpu": ("1", "spot")}, cluster_queue="vision", since=-900
        )
        change(made, evicted(-60 * number - 200, "Deactivated", released=-60 * number), drop=("admission",))
    async with looking(state) as (page, tab):
        await go(tab, page, "overview")
        wrong = tab.locator(".trouble", has=tab.get_by_role("heading", name="5 queues do not work"))
        await expect(wrong.get_by_role("listitem")).to_have_count(3)
        await wrong.get_by_text("more").press("Enter")
        await expect(wrong.get_by_role("listitem")).to_have_count(5)
        rows = tab.get_by_role("region", name="Evictions of the last hour").get_by_role("row")
        await expect(rows).to_have_count(9)
        await tab.get_by_role("button", name="Show 4 more").press("Enter")
        await expect(rows).to_have_count(13)
        assert tab.url.endswith("all=1")
        await tab.get_by_role("button", name="Show fewer").press("Enter")
        await expect(rows).to_have_count(9)


async def test_the_chart_is_chosen_and_the_address_remembers_it() -> None:
    async with looking(busy()) as (page, tab):
        lived(page.stage)
        page.stage.show(busy())
        await go(tab, page, "overview")
        a100 = tab.get_by_role("article", name="a100")
        await expect(a100).to_contain_text("of 80 in use")
        await expect(a100).to_contain_text("nodes offer 88")
        await expect(
            a100.get_by_role("img", name=f"{GPU} of a100 by queue, last 6 h").locator("canvas")
        ).to_be_visible()
        await expect(a100.get_by_role("link", name="3 other queues")).to_have_attribute("href", "#/quota")
        await expect(a100.get_by_role("link", name="fraud")).to_have_attribute("href", "#/queue/fraud")
        t4 = tab.get_by_role("article", name="t4")
        for queue in ("language", "robotics", "genomics"):
            colours = [
                await chart.get_by_role("listitem")
                .filter(has_text=queue)
                .locator(".swatch")
                .evaluate("(swatch) => getComputedStyle(swatch).backgroundColor")
                for chart in (a100, t4)
            ]
            assert colours[0] == colours[1], "a queue has one colour in all charts"
        await (
            tab.get_by_role("group", name="Charts of the last")
            .get_by_role("button", name="1 h")
            .press("Enter")
        )
        await expect(a100.get_by_role("img", name=f"{GPU} of a100 by queue, last 1 h")).to_be_visible()
        await tab.get_by_role("combobox", name="Chart").select_option("cpu")
        await expect(tab.get_by_role("img", name="cpu of spot by queue, last 1 h")).to_be_visible()
        assert re.search(r"#/overview\?(hours=1&resource=cpu|resource=cpu&hours=1)$", tab.url)
        await a100.get_by_text("As a table").press("Enter")
        table = a100.get_by_role("table", name=f"{GPU} of a100 by queue, last 1 h")
        await expect(table.get_by_role("columnheader", name="quota")).to_be_visible()
        await expect(table.get_by_role("row").last).to_contain_text("80")


async def test_without_queues_it_says_how_to_begin() -> None:
    async with looking(State()) as (page, tab):
        await go(tab, page, "overview")
        await expect(tab.get_by_role("heading", name="Begin here")).to_be_visible()
        await tab.get_by_role("button", name="Copy admitter init -o queues.yaml").press("Enter")
        await expect(tab.get_by_role("button", name="Copy admitter init")).to_have_text("Copied")
        assert await tab.evaluate("navigator.clipboard.readText()") == "admitter init -o queues.yaml"
        await is_accessible(tab)


async def test_what_others_use_is_told_beside_how_long_the_first_in_line_has_waited() -> None:
    async with looking(lending(waited=3 * 3600)) as (page, tab):
        await go(tab, page, "overview")
        promise = tab.get_by_role("listitem").filter(has_text="is first in line")
        await expect(promise).to_have_text(
            "owner is first in line and has waited for 3 h; others use 6 cpu in default that belong to a."
        )


async def test_no_section_is_empty_without_words() -> None:
    state = State()
    state.queue("only", {"cpu": {"default": {"min": "8"}}})
    async with looking(state) as (page, tab):
        await go(tab, page, "overview")
        for words in (
            "Every queue works, and no promise is at risk. No nodes are known.",
            "nothing is in line",
            "No Workload is in line.",
            "No Workload had to stop in the last hour.",
            "quota arrives in time where it is promised",
            "The chart begins with the page",
        ):
            await expect(tab.get_by_role("main")).to_contain_text(words)
        await is_accessible(tab)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible_and_fits(width: int, scheme: str) -> None:
    async with looking(troubled(busy()), scheme=scheme, width=width) as (page, tab):
        lived(page.stage, hours=0.3)
        page.stage.show(troubled(busy()))
        await go(tab, page, "overview")
        await expect(tab.locator("canvas").first).to_be_visible()
        await is_accessible(tab)


async def test_names_are_text() -> None:
    evil = "<img src=x onerror=alert(1)>"
    mark, long = "a\u202eb\u2066c", "x" * 253
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "1"}}})
    state.namespace("team-a", "a")
    state.put("nodes", long, metadata={"labels": {}}, spec={}, status={"conditions": [_broken(evil)]})
    for name in (evil, mark, long):
        made = state.holds("team-a", name, {"cpu": ("1", "default")}, cluster_queue="a", since=-900)
        status = evicted(-500, by={"namespace": "team-a", "name": "urgent", "message": evil})
        change(made, status | {"conditions": [made["status"]["conditions"][0], status["conditions"][1]]})
        state.waits("team-a", f"{name[:200]}-waits", {"cpu": "1"}, created=-900)
    async with looking(state, width=PHONE) as (page, tab):
        await go(tab, page, "overview")
        await expect(tab.get_by_role("heading", name="3 promises are at risk")).to_be_visible()
        for shown in (evil, mark, long, f"{evil}-waits"):
            await expect(tab.get_by_role("main")).to_contain_text(shown)
        assert await tab.locator("main img").count() == 0
        await is_accessible(tab)


def _broken(why: str) -> dict[str, str]:
    return {"type": "Ready", "status": "False", "message": why, "lastTransitionTime": "2025-12-31T23:00:00Z"}


async def test_a_tenant_is_told_where_to_look() -> None:
    async with looking(busy(), TENANT) as (page, tab):
        await tab.goto(f"{page.address}/#/overview")
        await expect(tab.get_by_role("alert")).to_contain_text(
            "may not list ClusterQueues: My jobs has what you may see"
        )
        await expect(tab.get_by_role("main")).not_to_contain_text(TEAMS[0])


async def test_a_thousand_queues_are_drawn_at_once() -> None:
    waiting = scaled(5000, 20_000)
    state = fleet(1000, waiting)
    async with looking(state, allowance=SOON) as (page, tab):
        await go(tab, page, "overview")
        links = card(tab, "Waiting")
        await expect(links.get_by_role("link", name=f"{waiting:,}", exact=True)).to_be_visible()
        await expect(tab.get_by_role("article", name="default")).to_contain_text("8,000 of 8,000 in use")
        state.waits("ns-0001", "one-more", {"cpu": "4"})

        async def changes() -> None:
            page.stage.show(state)
            await expect(links.get_by_role("link", name=f"{waiting + 1:,}", exact=True)).to_be_visible()

        assert await main_thread_ms(tab, changes()) < 100

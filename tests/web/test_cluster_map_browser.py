"""The cluster map in a browser: by mouse, by keyboard, as a table, and with very many nodes."""

import asyncio
import re
from urllib.parse import quote

import pytest
from playwright.async_api import FloatRect, Locator, Page, Position, expect

from admitter.client.access import Right, User
from tests.insight.nodes import GPU, node, park, pods
from tests.insight.states import State
from tests.patience import PATIENCE_SECONDS
from tests.web.looks import LOOKS, PHONE, go, is_accessible, looking, main_thread_ms
from tests.web.pages import ADMIN, CHROMIUM, HOW, TENANT, Rights
from tests.web.test_cluster_map import HOSTILE, busy, hall

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)

FIRST, SECOND = Position(x=20, y=40), Position(x=76, y=40)
"""Points in the first cells of a small cluster's map, below the name of their zone."""
MOST_MS = 100.0
"""Of the main thread at once, at an update."""


def cells(tab: Page, flavor: str = "a100") -> Locator:
    return tab.get_by_role("application", name=f"Flavor {flavor}")


def choice(tab: Page, name: str) -> Locator:
    return tab.get_by_role("combobox", name=name, exact=True)


def panel(tab: Page, name: str) -> Locator:
    return tab.get_by_role("region", name=name)


def said(tab: Page) -> Locator:
    return cells(tab).get_by_role("status")


async def test_the_mouse_shows_a_node_and_a_click_its_pods() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        await cells(tab).hover(position=SECOND)
        tip = tab.locator(".map-tip")
        for words in (
            "gpu-1",
            "Flavor a100, zone a, rack a1",
            "4 GPUs of 8 GPUs used",
            "vision 3 GPUs, 1 pod",
            "4 GPUs free",
        ):
            await expect(tip).to_contain_text(words)
        await cells(tab).click(position=SECOND)
        one = panel(tab, "gpu-1")
        await expect(one.get_by_role("row", name="GPUs 4 GPUs of")).to_contain_text("4 GPUs8 GPUs4 GPUs")
        await expect(one.get_by_role("row", name="decode")).to_contain_text("speech")
        await expect(one.get_by_role("link", name="train")).to_have_attribute(
            "href", "#/workload/team-a/train"
        )
        assert "node=gpu-1" in tab.url
        await tab.mouse.move(0, 0)
        await expect(tip).to_have_count(0)
        await one.get_by_role("button", name="Close").click()
        await expect(one).to_have_count(0)
        assert "node=" not in tab.url


async def test_arrow_keys_say_each_node_and_enter_shows_its_pods() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map?by=none&resource=cpu")
        await cells(tab).focus()
        await tab.keyboard.press("ArrowRight")
        await expect(said(tab)).to_contain_text(
            "gpu-1. Flavor a100, zone a, rack a1. 8 cores of 64 cores used"
        )
        await tab.keyboard.press("End")
        await expect(said(tab)).to_contain_text("gpu-5. Flavor a100, zone b, rack b1. cordoned")
        await tab.keyboard.press("ArrowLeft")
        await expect(said(tab)).to_contain_text("gpu-4. Flavor a100, zone b, rack b1. not ready for 1 h")
        await tab.keyboard.press("PageDown")
        await expect(cells(tab, "cpu")).to_be_focused()
        await expect(cells(tab, "cpu").get_by_role("status")).to_contain_text("cpu-0")
        await tab.keyboard.press("ArrowUp")
        await expect(cells(tab)).to_be_focused()
        await expect(said(tab)).to_contain_text("gpu-5")
        await tab.keyboard.press("Home")
        await tab.keyboard.press("Enter")
        one = panel(tab, "gpu-0")
        await expect(one.get_by_role("heading", name="gpu-0")).to_be_focused()
        await tab.keyboard.press("Escape")
        await expect(one).to_have_count(0)
        await expect(cells(tab)).to_be_focused()


async def test_arrows_move_between_rows_and_racks() -> None:
    async with looking(hall(400, 1, 2)) as (page, tab):
        await go(tab, page, "map?by=rack&flavor=a100")
        await cells(tab).focus()
        for key, place in (
            ("ArrowRight", "rack r0"),
            ("ArrowDown", "rack"),
            ("ArrowUp", "rack r0"),
            ("Home", "rack r0"),
        ):
            before = await said(tab).text_content()
            await tab.keyboard.press(key)
            await expect(said(tab)).not_to_have_text(before or "")
            await expect(said(tab)).to_contain_text(place)


async def test_what_is_free_and_what_fits_nowhere() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        free = tab.get_by_role("region", name="What is free")
        await expect(free).to_contain_text(
            "13 GPUs free on 3 of 4 nodes; the largest free block on one node is 5 GPUs. "
            "A pod of 8 GPUs fits on no node."
        )
        await expect(free.get_by_text("8 GPUs: none")).to_be_visible()
        await expect(free.get_by_role("listitem").filter(has_text="5 GPUs free: 1 node")).to_be_visible()
        await free.get_by_text("5 waiting pods fit on no node now").press("Enter")
        row = free.get_by_role("row", name="giant")
        await expect(row).to_contain_text("9 GPUs")
        await expect(row).to_contain_text("larger than any node of its flavors")
        await expect(free.get_by_role("row", name="whole")).to_contain_text("spread over nodes")
        await free.get_by_text("2 admitted pods have no node").click()
        await expect(free.get_by_role("row", name="secret-late")).to_contain_text("8 Insufficient")
        await choice(tab, "Flavor").select_option("cpu")
        await expect(free).to_contain_text("No node that takes new pods has GPUs.")


async def test_filters_are_in_the_address_and_a_link_shows_the_same() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        await choice(tab, "Nodes").select_option("not ready or cordoned")
        await expect(tab.get_by_text("2 of 8 nodes")).to_be_visible()
        await choice(tab, "Nodes").select_option("all")
        await tab.get_by_role("button", name="speech").press("Enter")
        await expect(tab.get_by_text("2 of 8 nodes")).to_be_visible()
        await tab.get_by_role("button", name="CPUs").click()
        await choice(tab, "Group by").select_option("rack")
        await expect(tab.get_by_text("3 of 8 nodes")).to_be_visible()
        address = tab.url
        assert all(part in address for part in ("queue=speech", "resource=cpu", "by=rack"))
        await tab.goto("about:blank")
        await tab.goto(address)
        await expect(tab.get_by_text("3 of 8 nodes")).to_be_visible()
        await expect(choice(tab, "Queue")).to_have_value("speech")
        await choice(tab, "Nodes").select_option("cordoned")
        await expect(tab.get_by_text("No node is like that.")).to_be_visible()
        await tab.get_by_role("button", name="Show all nodes").click()
        await expect(cells(tab)).to_be_visible()


async def test_the_same_as_a_table() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        await tab.get_by_role("button", name="Table").press("Enter")
        table = tab.get_by_role("grid", name="Nodes")
        row = table.get_by_role("row", name="gpu-1")
        for words in ("a100", "a / a1", "ready", "4 of 8", "vision 3, speech 1"):
            await expect(row).to_contain_text(words)
        await choice(tab, "Order").select_option("most free first")
        await expect(table.get_by_role("row").nth(1)).to_contain_text("gpu-2")
        await table.focus()
        await tab.keyboard.press("ArrowDown")
        await tab.keyboard.press("Enter")
        await expect(panel(tab, "gpu-1").get_by_role("heading", name="gpu-1")).to_be_focused()
        await tab.keyboard.press("Escape")
        await expect(table).to_be_focused()


async def test_a_tenant_sees_own_pods_and_no_name_of_others() -> None:
    async with looking(busy(), TENANT) as (page, tab):
        await go(tab, page, "map")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Choose a namespace")
        await tab.get_by_label("Namespace", exact=True).fill("team-b")
        await tab.get_by_label("Namespace", exact=True).press("Enter")
        await expect(tab.get_by_role("alert")).to_contain_text("may not list Workloads in namespace team-b")
        await go(tab, page, "map?namespace=team-a")
        await expect(tab.get_by_text("4 nodes · 22 GPUs used by these pods")).to_be_visible()
        await cells(tab).click(position=Position(x=76, y=20))
        one = tab.locator(".map-node")
        await expect(one.get_by_role("link", name="train")).to_be_visible()
        await expect(one).to_contain_text("What others use of this node is not shown.")
        text = await tab.locator("body").inner_text()
        for word in ("speech", "decode", "secret", "gpu-1", "free"):
            assert word not in text, word
        await is_accessible(tab)


async def test_the_node_of_a_pod_is_one_click_away_and_its_queue_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def may(_: Rights, user: User, right: Right) -> bool:
        return user.name == "admin" or right.resource == "pods"

    monkeypatch.setattr(Rights, "may", may)
    for token, of in ((TENANT, "namespace=team-a&"), (ADMIN, "")):
        async with looking(busy(), token) as (page, tab):
            await go(tab, page, "workload/team-a/train")
            await tab.locator(".pods").get_by_role("link", name="gpu-1", exact=True).first.click()
            await expect(tab).to_have_url(re.compile(rf"#/map\?{of}node="))
            row = tab.locator(".map-node tr").filter(has=tab.get_by_role("link", name="train"))
            await row.get_by_role("link", name="vision").click()
            await expect(tab).to_have_url(f"{page.address}/#/queue/vision?from=team-a")
            await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue vision")


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_are_texts(name: str) -> None:
    state = park()
    node(state, name, "a100", {GPU: "8"}, zone=name, rack=name)
    made = state.holds("team-a", name, {GPU: ("1", "a100")}, cluster_queue=name)
    pods(state, made, name, {GPU: "1"})
    state.waits("team-b", name, {GPU: "9"})
    async with looking(state, width=PHONE) as (page, tab):
        tab.on("dialog", lambda dialog: pytest.fail(dialog.message))
        await go(tab, page, "map?view=table&state=free")
        row = tab.get_by_role("row").filter(has=tab.get_by_text(name, exact=True))
        await row.get_by_role("button").click()
        one = tab.locator(".map-node")
        await expect(one.get_by_role("heading", level=2)).to_have_text(name)
        await expect(one.get_by_role("link").first).to_have_text(name)
        assert await tab.evaluate("document.querySelectorAll('img').length") == 0
        await is_accessible(tab)
        await go(tab, page, f"map?state=free&queue={quote(name)}")
        await cells(tab).focus()
        await tab.keyboard.press("Home")
        await expect(cells(tab).locator(".map-tip")).to_contain_text(name)
        await is_accessible(tab)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible_and_needs_no_scrolling_sideways(width: int, scheme: str) -> None:
    async with looking(busy(), scheme=scheme, width=width) as (page, tab):
        for address in (
            "map",
            "map?resource=memory&node=gpu-4",
            "map?view=table&node=gpu-0",
            "map?state=idle&flavor=a100&resource=cpu",
        ):
            await go(tab, page, address)
            await expect(tab.get_by_role("region", name="What is free")).to_be_visible()
            for details in await tab.locator("details").all():
                await details.evaluate("element => { element.open = true; }")
            await is_accessible(tab)


async def test_where_contrast_is_high_queues_differ_in_pattern_too() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        await expect(cells(tab)).to_be_visible()
        plain = await pixels(tab)
        await tab.emulate_media(forced_colors="active")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(await pixels(tab)) <= len(plain):  # lines in the cells of a queue
                await tab.wait_for_timeout(50)
        await is_accessible(tab)


async def pixels(tab: Page) -> set[str]:
    """The colours of a line through the first cell, from top to bottom, as runs."""
    found: list[str] = await tab.evaluate(
        """() => { const pen = document.querySelector("canvas").getContext("2d");
          const data = pen.getImageData(4, 19, 44, 50).data;
          const runs = []; let last = "";
          for (let at = 0; at < data.length; at += 4) {
            const colour = `${data[at]},${data[at + 1]},${data[at + 2]}`;
            if (colour !== last) runs.push(`${at}:${last = colour}`);
          } return runs; }"""
    )
    return set(found)


async def test_a_new_scene_keeps_the_mark_and_the_open_node() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map")
        await cells(tab).focus()
        await tab.keyboard.press("ArrowRight")
        await cells(tab).click(position=SECOND)
        await expect(panel(tab, "gpu-1").get_by_role("row", name="GPUs 4 GPUs of")).to_contain_text(
            "4 GPUs8 GPUs4 GPUs"
        )
        state = busy()
        more = state.holds("team-b", "more", {GPU: ("2", "a100")}, cluster_queue="speech")
        pods(state, more, "gpu-1", {GPU: "2"})
        page.stage.show(state)
        await expect(panel(tab, "gpu-1").get_by_role("link", name="more")).to_be_visible()
        await expect(tab.get_by_text("11 GPUs free on")).to_be_visible()


async def test_a_cluster_without_nodes_says_so() -> None:
    async with looking(State()) as (page, tab):
        await go(tab, page, "map")
        await expect(tab.get_by_text("The cluster has no nodes")).to_be_visible()
        await is_accessible(tab)


async def test_on_paper_the_map_has_no_tools() -> None:
    async with looking(busy()) as (page, tab):
        await go(tab, page, "map?node=gpu-1")
        await expect(panel(tab, "gpu-1")).to_be_visible()
        await tab.emulate_media(media="print")
        await expect(choice(tab, "Group by")).to_be_hidden()
        await expect(cells(tab)).to_be_visible()
        box, map_box = await panel(tab, "gpu-1").bounding_box(), await cells(tab).bounding_box()
        assert box is not None
        assert map_box is not None
        assert not overlap(box, map_box)


def overlap(one: FloatRect, other: FloatRect) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]  # type: ignore[literal-required]
        for at, size in (("x", "width"), ("y", "height"))
    )


async def test_two_thousand_nodes_are_drawn_anew_in_a_moment() -> None:
    first, second = hall(2000, 5, 100), hall(2001, 5, 100)
    async with looking(first) as (page, tab):
        await go(tab, page, "map?by=rack")
        await expect(tab.get_by_text("500 nodes · ").first).to_be_visible()

        async def change() -> None:
            page.stage.show(second)
            await expect(tab.get_by_text("501 nodes · ").first).to_be_visible()
            await tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

        took = await main_thread_ms(tab, change())
        print(f"update of 2,000 nodes: {took:.0f} ms of main thread at most at once")
        assert took <= MOST_MS
        await cells(tab).hover(position=Position(x=6, y=24))
        await expect(tab.locator(".map-tip")).to_contain_text("pool-a100")

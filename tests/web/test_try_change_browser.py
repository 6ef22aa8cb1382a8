"""A change is tried in a browser: by mouse and by keyboard, with its state in the address."""

import asyncio
import json
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from playwright.async_api import Locator, Page, Route, expect

from admitter.api.base import problems
from admitter.api.cluster_queue import ClusterQueue
from admitter.web.views import try_change
from tests.insight.asking import Desk
from tests.insight.states import State
from tests.web.looks import LOOKS, go, is_accessible, looking
from tests.web.pages import CHROMIUM, EDITOR, HOW, department
from tests.web.states import GPU, research

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)
MORE = "try?queues=a&set=a%7Ccpu%7Cdefault%7Cmin%3D16"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time."""
    monkeypatch.setattr(try_change, "TRIAL_SECONDS", 120.0)
    monkeypatch.setattr(try_change, "QUEUEING_SECONDS", 120.0)


def exact(tab: Page, part: str = "min", of: str = "cpu in default of a") -> Locator:
    return tab.get_by_role("textbox", name=f"{part} of {of}")


def count(tab: Page, words: str) -> Locator:
    return tab.locator(".counts li").filter(has_text=words).locator("b")


async def test_from_the_tree_a_slider_is_moved_and_the_answer_stands_beside_it() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "quota?sort=name")
        await tab.get_by_role("link", name="Try a change of a").click()
        await expect(tab.get_by_text("This changes nothing in the cluster")).to_be_visible()
        await expect(exact(tab)).to_have_value("8")
        slider = tab.get_by_role("slider", name="min of cpu in default of a")
        await slider.focus()
        for _ in range(8):
            await tab.keyboard.press("ArrowRight")
        await expect(exact(tab)).to_have_value("16")
        await expect(count(tab, "admitted at once")).to_have_text("2")
        await expect(tab.get_by_role("link", name="train-0")).to_be_visible()
        await expect(tab.get_by_role("row", name="ClusterQueue a 1 → 3")).to_contain_text("4 → 2")
        await expect(tab.locator(".status")).to_contain_text("Nothing has been changed.")
        assert "set=a|cpu|default|min=16" in unquote(unquote(tab.url))
        await tab.get_by_role("button", name="Undo min of cpu in default of a").click()
        await expect(exact(tab)).to_have_value("8")
        await expect(tab.locator(".status")).to_have_text("No change yet.")


async def test_a_link_shows_a_colleague_the_same_and_a_queue_is_added_and_removed() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, MORE)
        await expect(exact(tab)).to_have_value("16")
        await expect(count(tab, "admitted at once")).to_have_text("2")
        field = tab.get_by_label("ClusterQueue", exact=True)
        await field.fill("nope")
        await field.press("Enter")
        await expect(tab.get_by_text("There is no ClusterQueue nope.")).to_be_visible()
        await field.fill("b")
        await field.press("Enter")
        other = exact(tab, "max", "cpu in default of b")
        await other.fill("4")
        await expect(tab.get_by_text("max 4 is less than min 8")).to_be_visible()
        await expect(exact(tab, "max", "cpu in default of b")).to_have_attribute("aria-invalid", "true")
        await exact(tab, "min", "cpu in default of b").fill("0")
        await expect(tab.get_by_text("max 4 is less than min 8")).to_have_count(0)
        await expect(count(tab, "admitted at once")).to_have_text("0")
        assert "queues=a,b" in unquote(tab.url)
        await tab.get_by_role("button", name="Remove b from the change").click()
        await expect(other).to_have_count(0)
        await expect(count(tab, "admitted at once")).to_have_text("2")


async def test_the_yaml_that_is_copied_is_valid_and_has_the_same_answer(tmp_path: Path) -> None:
    state = research()
    async with looking(state) as (page, tab):
        await go(tab, page, "try?queues=vision")
        await exact(tab, "min", f"{GPU} in a100 of vision").fill("16")
        await expect(count(tab, "admitted at once")).to_have_text("1")
        await expect(count(tab, "start sooner")).to_have_text("1")
        await tab.get_by_role("button", name="Copy as YAML").click()
        patch = yaml.safe_load(await tab.evaluate("navigator.clipboard.readText()"))
        assert patch[-1] == {"op": "replace", "path": "/spec/resources/0/flavors/0/quota/min", "value": 16}
        await tab.get_by_role("button", name="Commands").click()
        await tab.get_by_role("button", name="Copy", exact=True).first.click()
        command = await tab.evaluate("navigator.clipboard.readText()")
        assert json.loads(command.partition("--patch=")[2].strip("'")) == patch
        await tab.get_by_role("button", name="Whole objects").click()
        await tab.get_by_role("button", name="Copy as YAML").click()
        manifest = yaml.safe_load(await tab.evaluate("navigator.clipboard.readText()"))
        started = await tab.get_by_role("link", name="sweep").count()
    assert started == 1
    assert problems(ClusterQueue, manifest) == []
    said = Desk(state, tmp_path).what_if(manifest)
    assert [(each["name"], each["effect"]) for each in said["workloads"]] == [("train-5", "admitted")]
    assert [each["name"] for each in said["starts"]] == ["sweep"]


async def test_an_editor_tries_its_own_queue_and_is_told_no_hidden_name() -> None:
    async with looking(department(), EDITOR) as (page, tab):
        await go(tab, page, MORE.replace("queues=a", "queues=a,b"))
        await expect(count(tab, "admitted at once")).to_have_text("2")
        await expect(tab.get_by_text("1 is of other namespaces, which you may not see.")).to_be_visible()
        await expect(tab.get_by_text("secret")).to_have_count(0)
        await expect(tab.get_by_text("You may not edit this ClusterQueue")).to_be_visible()
        await expect(exact(tab, "min", "cpu in default of b")).to_be_disabled()


async def test_it_is_said_that_it_is_being_worked_out() -> None:
    async with looking(department()) as (page, tab):
        asked: asyncio.Queue[Route] = asyncio.Queue()

        async def hold(route: Route) -> None:
            await (asked.put(route) if route.request.method == "POST" else route.continue_())

        await tab.route("**/api/try", hold)
        await go(tab, page, MORE)
        first = await asked.get()
        await expect(tab.locator(".status")).to_have_text("This is being worked out…")
        await exact(tab).fill("9")
        second = await asked.get()
        await expect(tab.locator(".status")).to_have_text("This is being worked out…")
        assert [json.loads(each.request.post_data or "")["set"][0]["value"] for each in (first, second)] == [
            "16",
            "9",
        ]
        assert first.request.failure == "net::ERR_ABORTED", "it is out of date"
        await second.continue_()
        await expect(tab.locator(".status")).to_contain_text("Nothing has been changed.")
        await expect(count(tab, "admitted at once")).to_have_text("1")


async def test_weight_is_tried_where_it_counts() -> None:
    state = State()
    state.put("cohorts", "fair", spec={"fairSharing": {"enabled": True}})
    state.queue("a", {"memory": {"default": {"min": "64Gi"}}}, "fair", fairSharing={"weight": 2})
    async with looking(state) as (page, tab):
        await go(tab, page, "try?queues=a")
        await exact(tab, "weight", "a").fill("3")
        await expect(tab.locator("pre")).to_contain_text("path: /spec/fairSharing/weight")
        slider = tab.get_by_role("slider", name="min of memory in default of a")
        await slider.focus()
        await tab.keyboard.press("ArrowLeft")
        await expect(exact(tab, "min", "memory in default of a")).to_have_value("63Gi")
        await exact(tab, "min", "memory in default of a").fill("<img src=x onerror=alert(1)>")
        await expect(tab.get_by_text("'<img src=x onerror=alert(1)>' is not a quantity")).to_be_visible()
        await expect(tab.locator("main img")).to_have_count(0)


async def test_an_address_that_is_nonsense_is_no_change() -> None:
    async with looking(department()) as (page, tab):
        for text in (
            "a%7Ccpu",
            "%3D",
            "a%7Ccpu%7Cdefault%7Cnope%3D1",
            "%25%7C%25%7C%25%7Cmin%3D%25",
            "b%7Cx%7Cy%7Cmin%3D1",
        ):
            await go(tab, page, f"try?queues=a,,a,%3Cimg%20src%3Dx%3E&set={text}")
            await expect(exact(tab)).to_have_value("8")
            await expect(tab.get_by_text("There is no such ClusterQueue any more.")).to_be_visible()
            await expect(tab.locator(".status")).to_have_text("No change yet.")
            await expect(tab.locator("main img")).to_have_count(0)
        await go(tab, page, "try")
        offers = tab.locator(".offers button")
        await expect(offers).to_have_count(2)
        await expect(offers.first).to_contain_text("10 of 8 cpu in default")
        await offers.first.focus()
        await tab.keyboard.press("Enter")
        await expect(exact(tab)).to_have_value("8")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible(scheme: str, width: int) -> None:
    async with looking(research(), scheme=scheme, width=width) as (page, tab):
        await go(
            tab, page, f"try?queues=vision,speech&set=vision%7C{GPU.replace('/', '%252F')}%7Ca100%7Cmin%3D1"
        )
        await expect(count(tab, "places over quota")).to_have_text("1")
        await is_accessible(tab)
        await exact(tab, "max", f"{GPU} in a100 of vision").fill("0")
        await expect(tab.get_by_text("max 0 is less than min 1")).to_be_visible()
        await is_accessible(tab)
        await go(tab, page, "try")
        await expect(tab.locator(".offers button")).to_have_count(3)
        await is_accessible(tab)

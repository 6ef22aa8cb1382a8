"""A cluster without a controller: the page says so above all else, and its explanations promise nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import async_playwright, expect

from admitter.insight.controller_status import ControllerStatus, ShardLease
from admitter.web.stage import Stage
from tests.insight.states import NOW
from tests.web.pages import ADMIN, CHROMIUM, HOW, LEADS, TENANT, Served, department, served
from tests.web.test_server import ask

MISSING = ControllerStatus((ShardLease(0, "admitter-controller", alive=False, exists=False),), NOW)


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    state = department(jobs=1)
    state.waits("team-b", "fits", {"cpu": "1"}, created=-10)
    async with served(state) as made:
        yield made


def decided(monkeypatch: pytest.MonkeyPatch, controllers: ControllerStatus) -> None:
    """Have other controllers, or none."""
    monkeypatch.setattr(Stage, "controllers", controllers)


async def test_the_api_says_which_controller_leads(page: Served) -> None:
    for token in (ADMIN, TENANT):
        answer = await ask(page, "/api/controller", token)
        assert (answer["state"], answer["holder"], answer["since"]) == (
            "Leading",
            "pod_1",
            "2025-12-31T21:55:00Z",
        )
    assert await ask(page, "/api/controller", "", 401) == {"error": "log in with a token"}


async def test_trees_without_a_controller_are_named_to_those_that_see_them(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    (leads,) = LEADS.shards
    decided(monkeypatch, ControllerStatus((MISSING.shards[0], replace(leads, shard=1)), NOW, count=2))
    state = await ask(page, "/api/controller")
    assert state["state"] == "Partial"
    assert "Trees without a controller: research." in state["message"]
    assert "research" not in str(await ask(page, "/api/controller", TENANT))


async def test_an_explanation_promises_nothing_without_a_controller(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told(path: str, name: str) -> Any:
        return await ask(page, path, namespace="team-b", name=name)

    (rule,) = (await told("/api/workload", "fits"))["sentences"]
    assert rule.endswith("it is admitted at once")
    decided(monkeypatch, MISSING)
    answer = await told("/api/workload", "fits")
    assert answer["sentences"][0].endswith("it is admitted once a controller decides")
    assert answer["controller"]["message"].startswith("No controller has run here yet: ")
    start = (await told("/api/outlook", "secret"))["start"]
    assert start["sentence"].startswith("Start, counted from when a controller runs: ")
    assert start["fromController"]


@pytest.mark.skipif(CHROMIUM is None, reason=HOW)
async def test_the_banner_is_above_every_page(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = await browser.new_page()
        await tab.goto(page.address)
        banner = tab.locator(".controller")
        await expect(banner).to_be_hidden()
        await tab.get_by_label("A token").fill(ADMIN)
        await tab.get_by_role("button", name="Log in").click()
        await expect(banner).to_contain_text("Controller pod_1 leads since")
        await expect(banner).to_have_class("controller")
        decided(monkeypatch, MISSING)
        page.stage.show(department(jobs=1))
        await expect(banner).to_contain_text("No controller has run here yet")
        await expect(banner).to_have_class("controller bad")
        await tab.get_by_role("link", name="Quota").click()
        await tab.get_by_role("link", name="ClusterQueue a").click()
        await expect(banner).to_contain_text("No controller has run here yet")
        await tab.get_by_role("button", name="Log out").click()
        await expect(banner).to_be_hidden()
        await browser.close()

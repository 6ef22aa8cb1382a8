"""My jobs in a browser: what a tenant sees first, and an administrator that chooses a namespace."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from admitter.client.access import User
from tests.insight.states import State
from tests.web.looks import LOOKS, go, is_accessible, looking
from tests.web.pages import CHROMIUM, HOW, TENANT, Rights, department
from tests.web.test_mine import NoRights

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


def row(tab: Page, name: str) -> Any:  # a locator
    return tab.get_by_role("row").filter(has=tab.get_by_role("link", name=name, exact=True))


async def test_a_tenant_sees_its_jobs_first_and_no_others() -> None:
    async with looking(department(), TENANT) as (page, tab):
        await expect(tab.get_by_role("heading", level=1)).to_have_text("My jobs")
        await expect(tab.get_by_text("1 running, 3 waiting").first).to_be_visible()
        waiting = row(tab, "train-0")
        await expect(waiting).to_contain_text("asks for 7 cpu from ClusterQueue a")
        await expect(waiting).to_contain_text("number 2 in line")
        await expect(waiting.locator(".start-words")).to_contain_text("in ")
        await expect(row(tab, "long")).to_contain_text("3 min 20 s")
        await expect(row(tab, "done")).to_contain_text("succeeded")
        await expect(tab.get_by_text("0.7 core-hours")).to_be_visible()
        await expect(tab.get_by_role("img", name="cpu in default: 10 of 8 in use")).to_be_visible()
        text = await tab.locator("body").inner_text()
        assert "secret" not in text
        assert "team-b" not in text
        state = department()
        state.waits("team-a", "late", {"cpu": "7"}, created=20)
        page.stage.show(state)
        await expect(row(tab, "late")).to_be_visible()


async def test_memory_that_was_used_is_told_in_gi_hours() -> None:
    state = State()
    state.queue("a", {"memory": {"default": {"min": "64Gi"}}})
    state.namespace("team-a", "a")
    state.holds("team-a", "long", {"memory": ("48Gi", "default")}, cluster_queue="a", since=-1800)
    async with looking(state, TENANT) as (_, tab):
        await expect(tab.locator(".used").first).to_have_text("24 Gi-hours")


async def test_from_my_jobs_to_the_queue_and_to_commands_by_keyboard() -> None:
    async with looking(department(), TENANT) as (page, tab):
        await expect(row(tab, "train-0")).to_be_visible()
        await row(tab, "train-0").locator("summary").focus()
        await tab.keyboard.press("Enter")
        command = "admitter explain job/train-0 -n team-a"
        await tab.get_by_role("button", name=f"Copy {command}").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("status").filter(has_text="Copied")).to_have_count(1)
        assert await tab.evaluate("navigator.clipboard.readText()") == command
        await expect(tab.get_by_text("kubectl describe job/train-0 -n team-a")).to_be_visible()
        await row(tab, "long").get_by_role("link", name="a", exact=True).focus()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("ClusterQueue a")
        await expect(tab.get_by_text("another namespace's")).to_be_visible()
        await go(tab, page, "my")
        await tab.get_by_role("link", name="3", exact=True).click()
        await expect(tab).to_have_url(re.compile("#/workloads.*namespace=team-a.*group=waiting"))
        await expect(tab.get_by_text("3 Workloads")).to_be_visible()


async def test_an_administrator_chooses_a_namespace() -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "my")
        await expect(tab.get_by_text("Choose a namespace")).to_be_visible()
        await tab.get_by_label("Find a namespace").fill("-b")
        await expect(tab.get_by_role("link", name="team-a")).to_have_count(0)
        await expect(tab).to_have_url(re.compile("find=-b"))
        await tab.get_by_role("link", name="team-b (0 running, 1 waiting)").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("Namespace team-b")
        await expect(row(tab, "secret")).to_be_visible()
        await go(tab, page, "namespace/team-a")
        await expect(row(tab, "train-0")).to_be_visible()


async def test_another_namespace_is_refused_to_a_tenant_whether_or_not_it_is_there() -> None:
    async with looking(department(), TENANT) as (page, tab):
        for name in ("team-b", "nope"):
            await go(tab, page, f"namespace/{name}")
            said = f"may not list Workloads in namespace {name}"
            await expect(tab.get_by_role("alert")).to_contain_text(said)
            await expect(tab.get_by_role("table")).to_have_count(0)


class Two(Rights):
    """A tenant of two namespaces."""

    async def may_list(self, user: User, plural: str, namespace: str = "") -> bool:
        return user.name == "admin" or (plural == "workloads" and namespace in {"team-a", "team-b"})


async def test_a_tenant_of_two_namespaces_sees_both_and_may_choose_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.web.pages.Rights", Two)
    async with looking(department(), TENANT) as (_, tab):
        await expect(row(tab, "secret")).to_be_visible()
        await expect(row(tab, "train-0")).to_contain_text("team-a")
        await tab.get_by_role("link", name="team-b (0 running, 1 waiting)").click()
        await expect(row(tab, "train-0")).to_have_count(0)
        await expect(tab).to_have_url(re.compile("#/my.namespace=team-b"))
        await tab.get_by_role("link", name="All my namespaces").click()
        await expect(row(tab, "train-0")).to_be_visible()


async def test_who_has_no_namespace_and_who_has_no_jobs_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team-a", "a")
    async with looking(state, TENANT) as (_, tab):
        await expect(tab.get_by_text("No Job has been submitted here yet.")).to_be_visible()
        await expect(tab.get_by_text("admitter.dev/queue-name: main").first).to_be_visible()
        await is_accessible(tab)
    monkeypatch.setattr("tests.web.pages.Rights", NoRights)
    async with looking(state, TENANT) as (_, tab):
        await expect(tab.get_by_text("no namespace in which you may list Workloads")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
async def test_it_is_accessible(scheme: str, width: int) -> None:
    async with looking(department(), TENANT, scheme=scheme, width=width) as (page, tab):
        for address in ("my", "queue/a"):
            await go(tab, page, address)
            await expect(tab.get_by_role("link", name="train-0", exact=True)).to_be_visible()
            await expect(tab.get_by_text("Reading…")).to_have_count(0)
            await is_accessible(tab)

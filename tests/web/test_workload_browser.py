"""The page of a workload in a browser: what a person finds there, by mouse and by keyboard."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Page, expect

from admitter.insight.explain.outlook import first, start_of
from admitter.insight.forecast.deadline import Allowance
from admitter.web.views import workload
from tests.insight.states import State
from tests.web.looks import LOOKS, PHONE, go, is_accessible, looking, main_thread_ms
from tests.web.pages import CHROMIUM, HOW, TENANT, department
from tests.web.test_told_little import shared
from tests.web.workload_states import GPU, a_pod, lab

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


@pytest.fixture
async def may() -> AsyncIterator[dict[str, threading.Event]]:
    """Work that takes long goes on once its event is set; at last all are: the loop waits for its threads."""
    events = {"explain": threading.Event(), "estimate": threading.Event()}
    yield events
    for event in events.values():
        event.set()


def section(tab: Page, name: str) -> Any:
    """The part of the page below a heading."""
    return tab.locator("section").filter(has=tab.get_by_role("heading", name=name))


async def test_the_binding_rule_is_on_top_and_all_numbers_below() -> None:
    async with looking(lab()) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        verdict = tab.get_by_role("region", name="Why")
        await expect(verdict).to_contain_text("waits for 8 × nvidia.com/gpu in flavor a100: 0 free")
        await expect(verdict).to_contain_text("Wait, or ask for less.")
        await expect(tab.locator(".facts")).to_contain_text("number 3 of 4 in line")
        needs = section(tab, "What it asks for, and what is free")
        binding = needs.locator(".flavor.binding")
        await expect(binding).to_contain_text("a100 stands in the way")
        await expect(binding).to_contain_text("8 asked0 free2 to borrow6 short")
        await expect(binding).to_contain_text("ClusterQueue speech's lendingLimit keeps 4 home")
        await expect(needs).to_contain_text("the taint spot=true:NoSchedule of spot is not tolerated")
        outlook = section(tab, "When it starts")
        await expect(outlook.get_by_role("row", name="team-a/sweep")).to_contain_text("(in 50 min)")
        await expect(outlook.get_by_role("row", name="this one starts")).to_contain_text("between")
        await expect(outlook).to_contain_text("Start: in ")


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("name", ["train", "sweep", "bumped", "past-0", "lost"])
async def test_it_can_be_used_by_everybody_at_each_width(name: str, width: int, scheme: str) -> None:
    async with looking(lab(), scheme=scheme, width=width) as (page, tab):
        await go(tab, page, f"workload/team-a/{name}")
        await expect(tab.get_by_role("heading", name="The same from a shell")).to_be_visible()
        if name == "train":
            await expect(tab.get_by_text("this one starts")).to_be_visible()
        await is_accessible(tab)


async def test_its_bars_have_the_lengths_of_the_numbers() -> None:
    async with looking(lab()) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        binding = tab.locator(".flavor.binding")
        whole = await _width(binding.locator(".row.asked"))
        for kind, part in (("covered", 2 / 8), ("missing", 6 / 8), ("borrowable", 2 / 8), ("kept", 4 / 8)):
            assert await _width(binding.locator(f".row .{kind}")) == pytest.approx(whole * part, abs=1.5)


async def _width(found: Any) -> float:
    box = await found.bounding_box()
    assert box is not None
    return float(box["width"])


async def test_the_reason_is_there_while_the_rest_is_worked_out(
    may: dict[str, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explained(*arguments: Any) -> Any:
        may["explain"].wait()
        return first(*arguments)

    def estimated(*arguments: Any) -> Any:
        may["estimate"].wait()
        return start_of(*arguments)

    monkeypatch.setattr(workload, "first", explained)
    monkeypatch.setattr(workload, "start_of", estimated)
    monkeypatch.setattr(workload, "AT_ONCE", Allowance(0.05))
    async with looking(department()) as (page, tab):
        await go(tab, page, "workload/team-a/train-0")
        why = tab.get_by_role("region", name="Why")
        await expect(why).to_contain_text("Nothing is known yet: no controller has looked at it.")
        await expect(why).to_contain_text("So says its status; more is being worked out.")
        await expect(section(tab, "The same from a shell")).to_be_visible()
        monkeypatch.setattr(workload, "AT_ONCE", Allowance(30.0))
        may["explain"].set()
        await expect(why).to_contain_text("waits for 7 × cpu in flavor default: 0 free in ClusterQueue a")
        outlook = section(tab, "When it starts")
        await expect(outlook).to_contain_text("Being worked out")
        await expect(why).not_to_contain_text("So says its status")
        may["estimate"].set()
        await expect(outlook).to_contain_text("Start: in ")
        await expect(outlook.get_by_role("row", name="team-a/long")).to_be_visible()


async def test_a_start_that_is_not_found_in_time_is_said_to_be_missing(
    may: dict[str, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    def estimated(*arguments: Any) -> Any:
        may["estimate"].wait()
        return start_of(*arguments)

    monkeypatch.setattr(workload, "start_of", estimated)
    async with looking(department(), allowance=Allowance(0.5)) as (page, tab):
        await go(tab, page, "workload/team-a/train-0")
        await expect(section(tab, "When it starts")).to_contain_text("Start: no estimate in time")
        await expect(tab.get_by_role("region", name="Why")).to_contain_text("waits for 7 × cpu")


async def test_an_explanation_stays_while_the_next_one_takes_long(
    may: dict[str, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with looking(department()) as (page, tab):
        await go(tab, page, "workload/team-a/train-0")
        why = tab.get_by_role("region", name="Why")
        await expect(why).to_contain_text("waits for 7 × cpu")

        def explained(*arguments: Any) -> Any:
            may["explain"].wait()
            return first(*arguments)

        monkeypatch.setattr(workload, "first", explained)
        monkeypatch.setattr(workload, "AT_ONCE", Allowance(0.05))
        page.stage.show(department(4))
        async with tab.expect_response(lambda answer: "/api/workload" in answer.url):
            pass
        await expect(why).to_contain_text("waits for 7 × cpu")


async def test_commands_are_copied_by_mouse_and_by_keyboard() -> None:
    async with looking(lab()) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        await tab.get_by_role("button", name="Copy admitter explain").click()
        read = "navigator.clipboard.readText()"
        assert await tab.evaluate(read) == "admitter explain job/train -n team-a"
        await expect(tab.get_by_role("button", name="Copy admitter explain")).to_have_text("Copied")
        await tab.keyboard.press("Tab")
        await expect(tab.get_by_role("button", name="Copy admitter history")).to_be_focused()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("button", name="Copy admitter history")).to_have_text("Copied")
        assert await tab.evaluate(read) == "admitter history job/train -n team-a"


async def test_a_workload_that_is_in_the_way_is_one_click_or_key_away() -> None:
    async with looking(lab()) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        await section(tab, "When it starts").get_by_role("link", name="team-a/sweep").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text("team-a/sweep")
        await expect(section(tab, "Pods")).to_contain_text(
            "2 of 8 pods unschedulable: 0/6 nodes are available"
        )
        await tab.go_back()
        await section(tab, "Ahead of it").get_by_role("link", name="team-a/bumped").focus()
        await tab.keyboard.press("Enter")
        await expect(tab.get_by_role("heading", level=1)).to_have_text("team-a/bumped")
        await expect(section(tab, "What has happened")).to_contain_text(
            "for team-b/secret-urgent in ClusterQueue vision: its priority 0 is lower than 5"
        )


async def test_its_life_is_in_order_with_the_time_between() -> None:
    async with looking(lab()) as (page, tab):
        await go(tab, page, "workload/team-a/sweep")
        life = section(tab, "What has happened").get_by_role("listitem")
        await expect(life.first).to_be_visible()
        said = [" ".join(each.split()) for each in await life.all_inner_texts()]
        assert [each.partition(" 2")[0] for each in said[:4]] == [
            "Created",
            "1 min 30 s later Queued",
            "10 s later Admitted",
            "10 s later First pod made",
        ]
        assert said[-3:] == [
            "1 min since now",
            "All pods have to be ready by then 00:15 (in 15 min)",
            "Ends at the latest 00:50 (in 50 min) maxRuntime 2h of ClusterQueue vision",
        ]
        quota = section(tab, "Its quota and its limits")
        await expect(quota).to_contain_text("8 nvidia.com/gpu of t4 for 8 pods")
        await expect(quota).to_contain_text("runs with 8 pods, and could use 10")
        await expect(quota).to_contain_text("5 min ago")


def many_pods(pods: int) -> State:
    """`sweep` has so many pods more."""
    state = lab()
    made = next(w for w in state.objects["workloads"] if w["metadata"]["name"].startswith("job-sweep"))
    for number in range(pods):
        a_pod(state, made, f"more-{number:04}", "gpu-9", {"phase": "Succeeded"})
    return state


async def test_all_of_many_pods_are_shown_on_demand_and_a_link_keeps_it() -> None:
    state = many_pods(400)
    async with looking(state) as (page, tab):
        await go(tab, page, "workload/team-a/sweep")
        pods = section(tab, "Pods")
        await expect(pods.get_by_role("row")).to_have_count(1 + 20)
        await expect(pods.get_by_role("row").nth(1)).to_contain_text("unschedulable")
        await pods.get_by_role("button", name="Show all 408").click()
        await expect(pods.get_by_role("row")).to_have_count(1 + 408)
        assert tab.url.endswith("?pods=all")
        await tab.reload()
        await expect(pods.get_by_role("row")).to_have_count(1 + 408)

        async def change() -> None:
            page.stage.show(many_pods(401))
            await expect(pods.get_by_role("row")).to_have_count(1 + 409)

        assert await main_thread_ms(tab, change()) < 100
        await pods.get_by_role("button", name="Show fewer").focus()
        await tab.keyboard.press("Enter")
        await expect(pods.get_by_role("row")).to_have_count(1 + 20)


async def test_what_changes_is_shown_and_what_has_focus_keeps_it() -> None:
    state = department()
    async with looking(state) as (page, tab):
        await go(tab, page, "workload/team-a/train-0")
        await expect(tab.locator(".facts")).to_contain_text("number 2 of 4 in line")
        button = tab.get_by_role("button", name="Copy admitter explain")
        await button.focus()
        state.objects["jobs"] = [job for job in state.objects["jobs"] if job["metadata"]["name"] != "secret"]
        page.stage.show(state)
        await expect(tab.locator(".facts")).to_contain_text("number 1 of 3 in line")
        await expect(section(tab, "Ahead of it")).to_contain_text("Nothing is before it in the line")
        await expect(button).to_be_focused()


async def test_one_that_goes_stays_as_it_was_and_is_said_to_be_gone() -> None:
    state = department()
    async with looking(state) as (page, tab):
        await go(tab, page, "workload/team-a/train-0")
        why = tab.get_by_role("region", name="Why")
        await expect(why).to_contain_text("waits for 7 × cpu")
        state.objects["jobs"] = [job for job in state.objects["jobs"] if job["metadata"]["name"] != "train-0"]
        page.stage.show(state)
        await expect(tab.get_by_role("alert")).to_contain_text("It is gone")
        await expect(why).to_contain_text("waits for 7 × cpu")
        await tab.reload()
        await expect(tab.get_by_role("alert")).to_contain_text("no Workload train-0 in namespace team-a")
        await expect(tab.locator("article")).to_contain_text("It may be deleted.")


async def test_a_tenant_reads_no_name_of_another_namespace() -> None:
    async with looking(lab(), TENANT) as (page, tab):
        for name in ("train", "bumped", "sweep"):
            await go(tab, page, f"workload/team-a/{name}")
            await expect(tab.get_by_role("heading", name="The same from a shell")).to_be_visible()
            if name == "train":
                await expect(section(tab, "When it starts")).to_contain_text("Start: in ")
                await expect(section(tab, "Ahead of it")).to_contain_text("a workload of another namespace")
            assert "secret" not in await tab.content()
        await expect(section(tab, "Pods")).to_contain_text("You may not list pods here")
        await go(tab, page, "workload/team-b/secret-job")
        await expect(tab.get_by_role("alert")).to_contain_text("may not list Workloads in namespace team-b")


async def test_hidden_ones_have_a_place_without_a_number() -> None:
    async with looking(shared(), TENANT) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        await expect(section(tab, "Ahead of it").get_by_role("listitem")).to_have_text(
            ["a workload of another namespace"] * 2
        )
        hidden = section(tab, "When it starts").get_by_role("row", name="a workload of another namespace")
        await expect(hidden).to_have_text("a workload of another namespace")


async def test_of_a_queue_that_tells_nothing_that_is_said() -> None:
    async with looking(shared(visibility="Namespace"), TENANT) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        await expect(tab.get_by_text("tells a namespace only of its own Workloads")).to_be_visible()
        await expect(tab.get_by_role("region", name="Why")).to_contain_text("too much of the 8 cpu")
        await expect(tab.get_by_role("heading", name="When it starts")).to_have_count(0)
        await expect(tab.get_by_role("heading", name="Ahead of it")).to_have_count(0)


async def test_names_are_text_whatever_is_in_them() -> None:
    evil = "<img src=x onerror=alert(1)>"
    state = lab()
    state.objects["clusterqueues"][0]["spec"]["preemption"] = {"withinClusterQueue": "Never"}
    state.holds("team-a", evil, {GPU: ("1", "a100")}, cluster_queue="vision", since=-100)
    state.waits("team-a", f"{evil}-waits", {GPU: "1"}, created=-5000)
    async with looking(state, width=PHONE) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        await expect(section(tab, "When it starts")).to_contain_text("Start: in ")
        await section(tab, "Ahead of it").get_by_role("link", name=f"{evil}-waits").click()
        await expect(tab.get_by_role("heading", level=1)).to_have_text(f"team-a/{evil}-waits")
        await expect(tab.locator("main img")).to_have_count(0)
        await is_accessible(tab)


async def test_of_a_long_line_the_first_are_shown_and_the_others_on_demand() -> None:
    async with looking(department(80)) as (page, tab):
        await go(tab, page, "workload/team-a/train-79")
        ahead = section(tab, "Ahead of it (80)")
        await expect(ahead.get_by_role("listitem")).to_have_count(10)
        await ahead.get_by_role("button", name="40 more").focus()
        await tab.keyboard.press("Enter")
        await expect(ahead.get_by_role("listitem")).to_have_count(50)
        await ahead.get_by_role("link", name="and 30 more, in the queue").click()
        await expect(tab).to_have_url(f"{page.address}/#/queue/a?from=team-a")
        await expect(tab.locator(".listing .state")).to_contain_text("81 Workloads")


async def test_memory_is_told_in_units_that_are_read_and_devices_as_they_are_written() -> None:
    """Of a device, memory is a number of it: `example.com/gpu-memory` counts in what its maker says."""
    state, device = State(), "example.com/gpu-memory"
    quota = {"memory": "64Gi", "hugepages-2Mi": "8Gi", device: "80"}
    state.queue("a", {name: {"default": {"min": amount}} for name, amount in quota.items()})
    state.namespace("team-a", "a")
    held = {"memory": ("48Gi", "default"), "hugepages-2Mi": ("1Gi", "default"), device: ("60", "default")}
    state.holds("team-a", "long", held, cluster_queue="a")
    state.waits("team-a", "train", {"memory": "32Gi", "hugepages-2Mi": "4Gi", device: "40"})
    async with looking(state) as (page, tab):
        await go(tab, page, "workload/team-a/train")
        needs = section(tab, "What it asks for, and what is free").locator(".need")
        for name, numbers in (
            ("memory", "32Gi asked16Gi free0 to borrow16Gi short"),
            ("hugepages-2Mi", "4Gi asked7Gi free0 to borrowenough"),
            (device, "40 asked20 free0 to borrow20 short"),
        ):
            await expect(needs.filter(has=tab.get_by_text(name, exact=True))).to_contain_text(numbers)
        await go(tab, page, "workload/team-a/long")
        quota_of = section(tab, "Its quota and its limits")
        await expect(quota_of).to_contain_text("48Gi memory of default")
        await expect(quota_of).to_contain_text("60 example.com/gpu-memory of default")

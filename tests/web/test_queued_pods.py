"""Queued pods and their groups on the page, by the names that they have in every command."""

import re
from typing import Any

import aiohttp
import pytest
from playwright.async_api import expect

from admitter.convert.settings import DEFAULTS
from admitter.insight.snapshot_file import SnapshotFile
from admitter.insight.taking import take
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.convergence.scene import TEAM
from tests.insight.test_queued_pods import busy
from tests.web.looks import go, looking
from tests.web.pages import ADMIN, CHROMIUM, HOW, served

Json = dict[str, Any]


@pytest.fixture(scope="module")
def state() -> SnapshotFile:
    """A pod and a group run, and one of each waits."""

    async def story() -> SnapshotFile:
        made = await busy()
        taken = await take(made.server, DEFAULTS, lambda: clock().timestamp())
        await made.kill()
        return taken

    return run(story())


async def test_the_page_is_told_of_pods_and_groups_by_kind_and_name(state: SnapshotFile) -> None:
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with served(state) as page, aiohttp.ClientSession(page.address, headers=headers) as session:

        async def ask(path: str, **query: str) -> Json:
            async with session.get(path, params=query) as answer:
                assert answer.status == 200, await answer.text()
                found: Json = await answer.json()
                return found

        rows = (await ask("/api/workloads", namespace=TEAM))["rows"]
        states = {row["name"]: row["state"] for row in rows}
        assert states == {
            "pod/train": "Admitted",
            "podgroup/tune": "Admitted",
            "pod/next": "Pending",
            "podgroup/rest": "Pending",
        }
        waiting = (await ask("/api/workloads", queue="a", group="waiting"))["rows"]
        assert {row["name"] for row in waiting} == {"pod/next", "podgroup/rest"}
        why = await ask("/api/workload", namespace=TEAM, name="pod/next")
        assert (why["name"], why["state"], why["queue"]["title"]) == ("pod/next", "Pending", "ClusterQueue a")
        assert why["position"] == 1
        rest = await ask("/api/workload", namespace=TEAM, name="podgroup/rest")
        assert "1 of its 2 pods is there" in str(rest["sentences"])
        assert rest["pods"]["states"] == [{"state": "Gated", "count": 1}]
        assert [each["command"] for each in rest["commands"]][2] == (
            f"kubectl get pods -l admitter.dev/pod-group=rest -n {TEAM}"
        )


@pytest.mark.skipif(CHROMIUM is None, reason=HOW)
async def test_a_reader_finds_why_a_pod_and_a_group_wait(state: SnapshotFile) -> None:
    async with looking(state) as (page, tab):
        await go(tab, page, "queue/a")
        next_one, rest = (
            tab.get_by_role("row").filter(has=tab.get_by_role("link", name=name, exact=True))
            for name in ("pod/next", "podgroup/rest")
        )
        await expect(next_one).to_contain_text("from ClusterQueue a")
        await expect(rest).to_contain_text("1 of its 2 pods is there")
        await tab.get_by_role("button", name="Holding quota (2)").click()
        await expect(tab.get_by_role("link", name="podgroup/tune", exact=True)).to_be_visible()
        await tab.get_by_role("link", name="pod/train", exact=True).click()
        await expect(tab).to_have_url(re.compile(f"#/workload/{TEAM}/pod%2Ftrain"))

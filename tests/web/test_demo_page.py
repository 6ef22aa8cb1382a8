"""The page of the made-up cluster: which person may look at what, and that it needs no cluster."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from admitter.web.demo import special
from admitter.web.demo.persons import PERSONS
from admitter.web.demo.teams import TENANT
from tests.commands import admitter
from tests.patience import PATIENCE_SECONDS
from tests.web.demos import Frozen, demo_page

Json = dict[str, Any]

ADMINISTRATOR, TENANT_NAME = PERSONS

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # among the longest: they come first


@pytest.fixture(scope="module")
def demo() -> Frozen:
    return Frozen(past=3600.0)


@pytest.fixture
async def address(demo: Frozen) -> AsyncIterator[str]:
    async with demo_page(demo) as made:
        yield made


async def ask(session: aiohttp.ClientSession, url: str, status: int = 200, **query: str) -> Json:
    async with session.get(url, params=query) as answer:
        assert answer.status == status, await answer.text()
        found: Json = await answer.json()
        return found


def visitor() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def choose(session: aiohttp.ClientSession, address: str, person: object) -> int:
    async with session.post(f"{address}/api/demo", json={"person": person}) as answer:
        return answer.status


async def test_one_looks_as_the_administrator_or_as_a_tenant(address: str) -> None:
    async with visitor() as session:
        me = await ask(session, f"{address}/api/me")
        assert me == {"name": ADMINISTRATOR, "tree": True, "demo": list(PERSONS)}
        tree = await ask(session, f"{address}/api/tree")
        assert len(tree["lines"]) > 10
        assert await choose(session, address, TENANT_NAME) == 200
        me = await ask(session, f"{address}/api/me")
        assert (me["name"], me["tree"]) == (TENANT_NAME, False)
        await ask(session, f"{address}/api/tree", 403)
        assert await choose(session, address, ADMINISTRATOR) == 200
        await ask(session, f"{address}/api/tree")


async def test_the_tenant_sees_nothing_of_other_namespaces(address: str, demo: Frozen) -> None:
    async with visitor() as session:
        await choose(session, address, TENANT_NAME)
        mine = await ask(session, f"{address}/api/mine")
        shown = [row for kind in ("running", "waiting", "ended") for row in mine[kind]]
        assert shown
        assert {row["namespace"] for row in shown} == {TENANT}
        namespace, name = special.NEVER_FITS
        for path, query in (
            ("mine", {"namespace": namespace}),
            ("mine", {"namespace": "there-is-none"}),
            ("workload", {"namespace": namespace, "name": name}),
            ("outlook", {"namespace": namespace, "name": name}),
            ("queue", {"name": "language"}),
            ("starts", {"name": "language"}),
        ):
            refused = await ask(session, f"{address}/api/{path}", 403, **query)
            assert name not in str(refused)
        row = next(each for each in mine["waiting"] if each["state"] == "Pending")
        about = await ask(session, f"{address}/api/workload", namespace=TENANT, name=row["name"])
        others = {each.workload.namespace for each in demo.scene.rows} - {TENANT}
        assert not [other for other in others if other in str(about)]


async def test_only_one_of_the_persons_can_be_chosen(address: str) -> None:
    async with visitor() as session:
        for person in ("root", "", 1, None, ["administrator"]):
            assert await choose(session, address, person) == 400
        async with session.post(f"{address}/api/demo", data=b"{") as answer:
            assert answer.status == 400
        assert (await ask(session, f"{address}/api/me"))["name"] == ADMINISTRATOR
    async with aiohttp.ClientSession(headers={"Cookie": "admitter-person=7"}) as session:
        assert (await ask(session, f"{address}/api/me"))["name"] == ADMINISTRATOR


async def test_other_sites_and_names_are_refused(address: str) -> None:
    async with visitor() as session:
        headers = {"Sec-Fetch-Site": "cross-site"}
        async with session.post(
            f"{address}/api/demo", json={"person": TENANT_NAME}, headers=headers
        ) as answer:
            assert answer.status == 403
        async with session.get(f"{address}/api/me", headers={"Host": "demo.example"}) as answer:
            assert answer.status == 421


async def test_browsers_are_told_when_time_has_passed(address: str, demo: Frozen) -> None:
    async with visitor() as session, session.get(f"{address}/api/changes") as stream:
        first = await stream.content.readline()
        await stream.content.readline()
        await demo.move_on(120.0)
        second = await asyncio.wait_for(stream.content.readline(), PATIENCE_SECONDS)
        assert first != second
        assert int(second.removeprefix(b"data: ")) > int(first.removeprefix(b"data: "))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--kubeconfig", "/there/is/none"),
        ("--context", "other"),
        ("--config", "admitter.yaml"),
        ("--history", "history"),
        ("--allow-host", "demo.example"),
    ],
)
def test_options_about_a_cluster_are_refused(option: str, value: str) -> None:
    ended = admitter("web", "--demo", option, value)
    assert ended.returncode == 2
    assert option in ended.stderr
    assert "made-up cluster" in ended.stderr


async def test_the_command_serves_it_without_a_cluster(tmp_path: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "none"), "HOME": str(tmp_path)}
    environment.pop("KUBERNETES_SERVICE_HOST", None)
    command = [sys.executable, "-m", "admitter", "web", "--demo", "--bind", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        while not any("everything has been read" in line for line in lines):
            line = await process.stdout.readline()  # six hours of the past are worked out before
            assert line, lines
            lines.append(line.decode())
        address = next(line for line in lines if "serving" in line).rpartition("page=")[2].strip()
        async with visitor() as session:
            async with session.get(f"{address}api/changes") as stream:
                await stream.content.readuntil(b"data: ")  # the number of the first scene
            async with session.get(f"{address}healthz") as answer:
                assert answer.status == 200
            controller = await ask(session, f"{address}api/controller")
            assert controller["state"] == "Leading"
            assert (await ask(session, f"{address}api/tree"))["lines"]
    finally:
        process.terminate()
        await process.wait()
    left = await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
    assert left == []

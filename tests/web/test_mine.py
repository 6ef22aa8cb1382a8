"""What a user is told of the own namespaces, and of no others."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from admitter.client.access import User
from admitter.web.history import Ending, Span
from admitter.web.views.mine import used
from tests.insight.states import NOW, State
from tests.web.pages import ADMIN, TENANT, Rights, Served, department, served
from tests.web.test_server import ask

Json = dict[str, Any]


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(department()) as made:
        yield made


async def test_a_tenant_has_its_namespaces_without_naming_them(page: Served) -> None:
    await page.work_out_reasons()
    mine = await ask(page, "/api/mine", TENANT)
    assert mine["namespaces"] == {
        "shown": ["team-a"],
        "all": [{"name": "team-a", "running": 1, "waiting": 3}],
        "more": False,
        "everything": False,
        "complete": True,
    }
    assert [row["name"] for row in mine["running"]] == ["long"]
    assert [(row["name"], row["position"]) for row in mine["waiting"]] == [
        ("train-0", 2),
        ("train-1", 3),
        ("train-2", 4),
    ]
    assert "asks for 7 cpu from ClusterQueue a" in mine["waiting"][0]["message"]
    assert mine["counts"] == {"running": 1, "waiting": 3, "ended": 4}
    assert [(row["name"], row["how"]) for row in mine["ended"]] == [
        ("done", "succeeded"),
        ("past-2", "succeeded"),
        ("past-1", "succeeded"),
        ("past-0", "succeeded"),
    ]
    assert "secret" not in str(mine)
    assert "team-b" not in str(mine)


async def test_what_was_used_is_counted_from_admission_to_end(page: Served) -> None:
    """`long` holds 10 cores for 200 s; `done` held one for 400 s, and three more one for 300 to 420 s."""
    mine = await ask(page, "/api/mine", TENANT)
    (day,), (hour,) = mine["used"]["day"], mine["used"]["hour"]
    assert day["resource"] == hour["resource"] == "cpu"
    assert day["hours"] == pytest.approx((10 * 200 + 400 + 300 + 360 + 420) / 3600)
    assert hour["hours"] == pytest.approx((10 * 200 + 400) / 3600)


def test_of_what_began_before_only_the_part_in_time_counts() -> None:
    one = Span("u", "n", "j", "w", "q", ("f",), (("f", "cpu", 2.0), ("g", "memory", 8.0)), 1, 0, 0.0, 1000.0)
    two = Span(
        "v", "n", "k", "x", "q", ("f",), (("f", "cpu", 4.0),), 1, 0, 0.0, 2000.0, 3800.0, Ending.SUCCEEDED
    )
    found = {each["resource"]: each["hours"] for each in used([one, two], 2800.0, 4600.0)}
    assert found == {"cpu": 2.0 * 0.5 + 4.0 * (1000 / 3600), "memory": 8.0 * 0.5}
    assert used([two], 3900.0, 4600.0) == []


async def test_the_open_queues_have_their_quota_and_what_is_free(page: Served) -> None:
    (queue,) = (await ask(page, "/api/mine", TENANT))["queues"]
    assert (queue["namespace"], queue["name"], queue["title"]) == ("team-a", "main", "ClusterQueue a")
    assert (queue["waiting"], queue["running"], queue["told"], queue["problem"]) == (3, 1, True, "")
    (use,) = queue["uses"]
    assert (use["used"], use["min"], use["free"]) == (10.0, 8.0, {"value": 6.0, "words": "6"})


async def test_starts_are_of_the_own_alone(page: Served) -> None:
    found = await ask(page, "/api/mine/starts", TENANT)
    assert sorted(found["starts"]) == [f"team-a/train-{number}" for number in range(3)]
    assert found["all"]
    assert all(start["median"] >= NOW for start in found["starts"].values())


async def test_other_namespaces_are_refused_as_those_that_are_not_there(page: Served) -> None:
    for path in ("/api/mine", "/api/mine/starts"):
        for name in ("team-b", "nope", "team-a,team-b"):
            refused = await ask(page, path, TENANT, 403, namespace=name)
            last = name.rpartition(",")[2]
            assert refused["error"].endswith(f"may not list Workloads in namespace {last}")
        assert await ask(page, path, status=404, namespace="nope") == {"error": "there is no namespace nope"}
    found = await ask(page, "/api/mine", TENANT, find="team-b")
    assert found["namespaces"]["all"] == []


async def test_an_administrator_chooses(page: Served) -> None:
    nothing = await ask(page, "/api/mine", ADMIN)
    assert (nothing["namespaces"]["shown"], nothing["running"], nothing["used"]["day"]) == ([], [], [])
    assert [each["name"] for each in nothing["namespaces"]["all"]] == ["team-a", "team-b"]
    assert nothing["namespaces"]["everything"]
    found = await ask(page, "/api/mine", ADMIN, find="-b")
    assert [each["name"] for each in found["namespaces"]["all"]] == ["team-b"]
    both = await ask(page, "/api/mine", ADMIN, namespace="team-a,team-b")
    assert {row["namespace"] for row in both["waiting"]} == {"team-a", "team-b"}


class NoRights(Rights):
    """A user without any namespace."""

    async def may_list(self, user: User, _plural: str, _namespace: str = "") -> bool:
        return user.name == "admin"


async def test_a_user_without_namespaces_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.web.pages.Rights", NoRights)
    async with served(department()) as page:
        mine = await ask(page, "/api/mine", TENANT)
        assert mine["namespaces"] == {
            "shown": [],
            "all": [],
            "more": False,
            "everything": False,
            "complete": True,
        }
        assert (mine["queues"], mine["ended"], mine["used"]) == ([], [], {"hour": [], "day": []})


async def test_a_queue_that_tells_nothing_and_one_that_does_not_work() -> None:
    state = department()
    for queue in state.objects["clusterqueues"]:
        queue["spec"]["visibility"] = "Namespace"
    state.put("localqueues", "lost", "team-a", spec={"clusterQueue": "nope"})
    state.queue("closed", {"cpu": {"default": {"min": "1"}}}, namespaceSelector={"matchLabels": {"x": "y"}})
    state.put("localqueues", "shut", "team-a", spec={"clusterQueue": "closed"})
    async with served(state) as page:
        mine = await ask(page, "/api/mine", TENANT)
        found = {each["name"]: each for each in mine["queues"]}
        assert (found["main"]["told"], found["main"]["uses"]) == (False, [])
        assert found["lost"]["problem"] == "ClusterQueue nope does not exist"
        assert found["shut"]["problem"] == "ClusterQueue closed does not select namespace team-a"
        assert (found["shut"]["told"], found["shut"]["uses"]) == (False, [])
        assert {row["position"] for row in mine["waiting"]} == {None}
        assert (await ask(page, "/api/mine/starts", TENANT))["starts"] == {}


async def test_hostile_names_are_told_as_they_are() -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team-a", "a", local="<b>main</b>")
    name = "<img src=x onerror=alert(1)>"
    state.waits("team-a", name, {"cpu": "9"}, queue="<b>main</b>")
    async with served(state) as page:
        mine = await ask(page, "/api/mine", TENANT)
        assert [row["name"] for row in mine["waiting"]] == [name]
        assert [each["name"] for each in mine["queues"]] == ["<b>main</b>"]

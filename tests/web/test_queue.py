"""The lists of a queue and of all queues: windows, filters, orders, and what of it a user is told."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from admitter.web.lists import Lists
from admitter.web.views import rows as rows_module
from tests.insight.states import State
from tests.web.pages import ADMIN, TENANT, Served, department, fleet, served
from tests.web.test_server import ask

Json = dict[str, Any]

HOSTILE = ("<img src=x onerror=alert(1)>", "\u202egnp.exe", "x" * 253)


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(department()) as made:
        yield made


async def listed(page: Served, token: str = ADMIN, status: int = 200, **query: str) -> Json:
    return await ask(page, "/api/workloads", token, status, **query)


def names(answer: Json) -> list[str | None]:
    return [row.get("name") for row in answer["rows"]]


async def test_a_queue_is_its_line_with_the_sentence_why_each_waits(page: Served) -> None:
    head = await ask(page, "/api/queue", name="a")
    (use,) = head["line"]["uses"]
    assert (use["used"], use["min"], use["borrowed"]) == (10.0, 8.0, 2.0)
    assert (head["line"]["waiting"], head["line"]["admitted"], head["told"]) == (4, 1, True)
    await page.work_out_reasons()
    line = await listed(page, queue="a", group="waiting")
    assert names(line) == ["secret", "train-0", "train-1", "train-2"]
    assert [row["position"] for row in line["rows"]] == [1, 2, 3, 4]
    assert line["revision"] == head["revision"] == 1
    first = line["rows"][1]
    assert first["reason"] == "InsufficientQuota"
    assert "asks for 7 cpu from ClusterQueue a" in first["message"]
    assert first["asks"] == [{"resource": "cpu", "value": 7.0, "words": "7"}]
    assert (first["object"], first["pods"], first["holds"]) == ("job/train-0", 1, False)


async def test_what_holds_quota_has_an_expected_end(page: Served) -> None:
    holding = await listed(page, queue="a", group="holding")
    (row,) = holding["rows"]
    assert (row["name"], row["holds"], row["object"]) == ("long", True, "workload/long")
    assert row["asks"] == [{"resource": "cpu", "value": 10.0, "words": "10"}]
    assert row["since"] < holding["taken"] < row["ends"]


async def test_starts_are_moments_of_the_first_in_line(page: Served) -> None:
    starts = await ask(page, "/api/starts", name="a")
    assert sorted(starts) == ["team-a/train-0", "team-a/train-1", "team-a/train-2", "team-b/secret"]
    first = starts["team-b/secret"]
    assert first["inTime"]
    assert page.stage.scene is not None
    assert page.stage.scene.known.taken <= first["earliest"] <= first["median"] <= first["latest"]


async def test_a_window_is_cut_and_sorted_at_the_server() -> None:
    async with served(fleet(10, 1000)) as page:
        window = await listed(
            page, ADMIN, 200, group="waiting", sort="-name", **{"from": "990", "count": "5"}
        )
        assert window["total"] == 1000
        assert names(window) == [f"job-{number:05}" for number in range(9, 4, -1)]
        assert await listed(page, ADMIN, 200, **{"from": "5000"}) == {
            **window,
            "total": 1010,
            "workloads": 1010,
            "from": 5000,
            "rows": [],
            "reasoned": True,  # there is no row to give a reason for
        }
        many = await listed(page, count="100000")
        assert len(many["rows"]) == rows_module.MOST_ROWS
        found = await listed(
            page, ADMIN, 200, queue="queue-0003", group="waiting", seek="job-0050", **{"from": "0"}
        )
        assert found["rows"][found["sought"] - found["from"]]["name"] == "job-00503"
        assert (await listed(page, queue="queue-0003", seek="nothing"))["sought"] is None


def people() -> State:
    """Jobs of several users, priorities and states in one queue."""
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team-a", "a")
    state.put("priorityclasses", "high", value=100)
    for number, user in enumerate(("ann", "bob", "ann")):
        job = state.waits("team-a", f"of-{user}-{number}", {"cpu": "9"}, priority="high" if number else "")
        job["metadata"]["labels"]["yunikorn.apache.org/username"] = user
    evicted = {"type": "Evicted", "status": "True", "lastTransitionTime": "2025-12-31T23:50:00Z"}
    state.holds("team-a", "leaves", {"cpu": ("1", "default")}, cluster_queue="a", conditions=[evicted])
    return state


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"user": "ann"}, ["of-ann-0", "of-ann-2"]),
        ({"user": "nobody"}, []),
        ({"priority": "100"}, ["of-ann-2", "of-bob-1"]),
        ({"priority": "..50"}, ["leaves", "of-ann-0"]),
        ({"priority": "1..200", "user": "bob"}, ["of-bob-1"]),
        ({"text": "OF bob"}, ["of-bob-1"]),
        ({"reason": "NeverFits"}, ["of-ann-0", "of-ann-2", "of-bob-1"]),
        ({"evicted": "3600"}, ["leaves"]),
        ({"evicted": "60"}, []),
        ({"group": "holding"}, ["leaves"]),
        ({"namespace": "team-a,team-b", "state": "Admitted"}, ["leaves"]),
    ],
)
async def test_filters(query: dict[str, str], found: list[str]) -> None:
    state = people()
    if "reason" in query:
        for job in state.objects["jobs"]:
            job["metadata"]["labels"]["admitter.dev/queue-name"] = "missing"
        query = {"reason": "QueueNotFound"}
    async with served(state) as page:
        assert sorted(str(name) for name in names(await listed(page, ADMIN, 200, **query))) == found


async def test_the_choices_are_what_there_is() -> None:
    async with served(people()) as other:
        choices = (await ask(other, "/api/queue", name="a"))["choices"]
        assert choices["users"] == [["ann", 2], ["bob", 1]]
        assert sorted(choices["priorities"]) == [[0, 2], [100, 2]]
        assert (await listed(other, choices="1", count="0"))["choices"]["namespaces"] == [["team-a", 4]]


@pytest.mark.parametrize(
    "query",
    [
        {"from": "-1"},
        {"count": "many"},
        {"sort": "colour"},
        {"group": "both"},
        {"priority": "high"},
        {"priority": "9" * 30},
        {"evicted": "lately"},
    ],
)
async def test_what_can_not_be_read_is_refused_in_words(page: Served, query: dict[str, str]) -> None:
    assert (await listed(page, ADMIN, 400, **query))["error"]


async def test_a_tenant_has_the_places_of_others_in_line_and_nothing_else_of_them(page: Served) -> None:
    line = await listed(page, TENANT, queue="a", group="waiting")
    assert line["rows"][0] == {"visible": False, "position": 1, "until": 1}
    assert names(line)[1:] == ["train-0", "train-1", "train-2"]
    head = await ask(page, "/api/queue", TENANT, name="a")
    assert head["choices"]["namespaces"] == [["team-a", 4]]
    assert head["line"]["parent"] is None
    starts = await ask(page, "/api/starts", TENANT, name="a")
    assert sorted(starts) == [f"team-a/train-{number}" for number in range(3)]
    for answer in (line, head, starts):
        assert "secret" not in str(answer)
        assert "team-b" not in str(answer)


async def test_hidden_workloads_that_follow_each_other_are_one_row() -> None:
    state = department(2)
    for number in range(5):
        state.waits("team-b", f"more-{number}", {"cpu": "7"}, queue="shared", created=-4 + number / 10)
    state.waits("team-b", "last", {"cpu": "7"}, queue="shared", created=90)
    async with served(state) as page:
        line = await listed(page, TENANT, queue="a", group="waiting")
        assert [(row["position"], row.get("until")) for row in line["rows"]] == [
            (1, 6),
            (7, None),
            (8, None),
            (9, 9),
        ]
        assert (line["total"], line["workloads"]) == (4, 9)


async def test_no_filter_order_or_search_tells_what_is_hidden(page: Served) -> None:
    """The answers are the same if another Workload is in the place of the hidden one."""
    other = department()
    hidden = next(job for job in other.objects["jobs"] if job["metadata"]["name"] == "secret")
    hidden["metadata"]["name"] = "zzz"
    hidden["metadata"]["labels"]["yunikorn.apache.org/username"] = "eve"
    hidden["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "6"
    queries: list[dict[str, str]] = [
        {},
        {"text": "secret"},
        {"text": "team-b"},
        {"namespace": "team-b"},
        {"user": "eve"},
        {"reason": "InsufficientQuota"},
        {"priority": "0"},
        {"state": "Pending"},
        {"seek": "sec"},
        {"seek": "z"},
        *(
            {"sort": order}
            for order in ("name", "-name", "namespace", "user", "-created", "priority", "queue")
        ),
    ]
    async with served(other) as changed:
        for query in queries:
            asked = {"queue": "a", "group": "waiting", **query}
            one, two = await listed(page, TENANT, 200, **asked), await listed(changed, TENANT, 200, **asked)
            assert one == two, query
            if query and "seek" not in query:
                assert all(row["visible"] for row in one["rows"])


async def test_over_all_queues_a_tenant_has_its_own_alone(page: Served) -> None:
    everything = await listed(page, TENANT)
    assert sorted(str(name) for name in names(everything)) == ["long", "train-0", "train-1", "train-2"]
    assert everything["others"]
    for unknown in ("team-b", "nope"):
        refused = await listed(page, TENANT, 403, namespace=unknown)
        assert refused["error"].endswith(f"may not list Workloads in namespace {unknown}")


async def test_queues_that_no_namespace_of_a_tenant_uses_are_refused_as_those_that_are_not_there(
    page: Served,
) -> None:
    for path, query in (("/api/queue", "name"), ("/api/starts", "name"), ("/api/workloads", "queue")):
        for name in ("b", "nope"):
            refused = await ask(page, path, TENANT, 403, **{query: name})
            assert refused == {"error": f"system:serviceaccount:team-a:user may not see queue {name}"}
        assert await ask(page, path, status=404, **{query: "nope"}) == {"error": "there is no queue nope"}


async def test_a_queue_that_tells_namespaces_nothing_shows_a_tenant_its_own_alone() -> None:
    state = department()
    for queue in state.objects["clusterqueues"]:
        queue["spec"]["visibility"] = "Namespace"
    async with served(state) as page:
        head = await ask(page, "/api/queue", TENANT, name="a")
        assert (head["told"], head["line"]["uses"], head["line"]["waiting"]) == (False, [], 3)
        line = await listed(page, TENANT, queue="a", group="waiting")
        assert [(row["name"], row["position"]) for row in line["rows"]] == [
            (f"train-{number}", None) for number in range(3)
        ]
        assert await ask(page, "/api/starts", TENANT, name="a") == {}
        everywhere = await listed(page, TENANT, group="waiting")
        assert {row["position"] for row in everywhere["rows"]} == {None}
        assert (await ask(page, "/api/queue", name="a"))["line"]["waiting"] == 4, "of an administrator"


async def test_hostile_names_are_told_as_they_are() -> None:
    state = department()
    for name in HOSTILE:
        state.waits("team-a", name, {"cpu": "7"}, created=50)
    async with served(state) as page:
        found = names(await listed(page, TENANT, queue="a", group="waiting", sort="name"))
        assert set(HOSTILE) <= set(found)
        assert names(await listed(page, TENANT, text="<IMG")) == [HOSTILE[0]]


async def test_a_window_of_a_list_costs_nothing_once_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = Lists._made

    def counted(self: Lists, wanted: Any, sees: Any) -> Any:
        made.append(wanted)
        return make(self, wanted, sees)

    monkeypatch.setattr(Lists, "_made", counted)
    async with served(fleet(10, 300)) as page:
        for start in ("0", "100", "200"):
            await listed(page, ADMIN, 200, sort="priority", **{"from": start})
        assert len(made) == 1
        page.stage.show(fleet(10, 301))
        assert (await listed(page, ADMIN, 200, sort="priority", **{"from": "200"}))["revision"] == 2
        assert len(made) == 2

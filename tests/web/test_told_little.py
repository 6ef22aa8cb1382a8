"""What a tenant learns of others: by an answer, by what is missing in one, and by how long it takes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from admitter.client.access import User
from tests.insight.states import State, moment
from tests.web.pages import ADMIN, TENANT, Rights, Served, served
from tests.web.test_server import Json, ask
from tests.web.workload_states import lab


def shared(*, selects: bool = True, **spec: Any) -> State:
    """A queue with Workloads of team-b that hold it and are first in line; team-a's `train` is third."""
    state = State()
    if not selects:
        spec["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "team-b"}}
    state.queue("a", {"cpu": {"default": {"min": "8"}}}, **spec)
    state.namespace("team-a", "a")
    state.put("namespaces", "team-b", metadata={"labels": {"kubernetes.io/metadata.name": "team-b"}})
    state.put("localqueues", "shared", "team-b", spec={"clusterQueue": "a"})
    for number in range(3):  # by which the runtime of others is known
        usage = {"cpu": ("1", "default")}
        finished = -4700 + 60 * number
        state.holds("team-b", f"past-{number}", usage, cluster_queue="a", since=-5000, finished=finished)
    state.holds(
        "team-b",
        "hog",
        {"cpu": ("6", "default")},
        cluster_queue="a",
        since=-100,
        conditions=[],
        priority=7777,
    )
    for number in range(2):
        state.waits("team-b", f"secret-{number}", {"cpu": "7"}, queue="shared", created=number - 50)
    state.waits("team-a", "train", {"cpu": "7"}, created=0)
    return state


async def told(page: Served, token: str, name: str = "train") -> Json:
    """The whole answer about a Workload; on a busy machine a first one comes before it is worked out."""
    while True:
        answer = await ask(page, "/api/workload", token, namespace="team-a", name=name)
        if answer["complete"]:
            return answer


async def outlook(page: Served, token: str) -> Json:
    return await ask(page, "/api/outlook", token, namespace="team-a", name="train")


@pytest.mark.parametrize(
    "state", [shared(visibility="Namespace"), shared(selects=False)], ids=["hidden", "other"]
)
async def test_no_answer_tells_use_or_line_of_a_queue_that_tells_namespaces_nothing(state: State) -> None:
    async with served(state) as page:
        answer = await told(page, TENANT)
        nothing: Json = {
            "position": None,
            "inLine": None,
            "flavors": [],
            "ahead": [],
            "moreAhead": 0,
            "waits": False,
        }
        assert {name: answer[name] for name in nothing} == nothing
        assert answer["told"] is False
        assert len(answer["sentences"]) == 1
        assert "free" not in str(answer["sentences"])
        ahead = await outlook(page, TENANT)
        assert (ahead["blocking"], ahead["moreBlocking"], ahead["start"]) == ([], 0, None)
        assert (await ask(page, "/api/queue", TENANT, name="a"))["told"] is False
        assert await ask(page, "/api/starts", TENANT, name="a") == {}
        assert (await ask(page, "/api/mine/starts", TENANT))["starts"] == {}
        rows = (await ask(page, "/api/workloads", TENANT, queue="a"))["rows"]
        assert [(row["name"], row["position"]) for row in rows] == [("train", None)]
        timeline = await ask(page, "/api/timeline", TENANT)
        assert not timeline["others"]
        mine = await ask(page, "/api/mine", TENANT)
        assert [(each["told"], each["uses"]) for each in mine["queues"]] == [(False, [])]
        assert [row["position"] for row in mine["waiting"]] == [None]


async def test_nothing_is_worked_out_ahead_for_a_namespace_that_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any) -> None:
        raise AssertionError

    async with served(shared(visibility="Namespace")) as page:
        whole = await told(page, ADMIN)
        assert (whole["told"], whole["position"], whole["inLine"]) == (True, 3, 3)
        assert whole["flavors"]
        assert (await outlook(page, ADMIN))["blocking"]
        monkeypatch.setattr("admitter.web.views.workload.Explanations.blocking", fails)
        assert (await outlook(page, TENANT))["start"] is None


async def test_a_hidden_workload_has_a_place_and_no_number() -> None:
    async with served(shared()) as page:
        whole = await outlook(page, ADMIN)
        (hog,) = (each for each in whole["blocking"] if each["name"] == "hog")
        assert (hog["priority"], hog["ends"] is not None, hog["notEvicted"] is not None) == (7777, True, True)
        mine = await outlook(page, TENANT)
        hidden: Json = {"visible": False, "namespace": None, "name": None, "priority": None, "ends": None}
        hidden |= {"unproven": False, "notEvicted": None, "extra": 0, "podSet": ""}
        assert mine["blocking"] == [hidden] * len(whole["blocking"])
        answer = await told(page, TENANT)
        assert (answer["told"], answer["position"], answer["ahead"]) == (True, 3, [hidden] * 2)


async def test_where_a_hidden_one_stands_among_others_in_the_way_tells_no_end_of_it() -> None:
    state = shared()
    state.holds("team-a", "mine", {"cpu": ("2", "default")}, cluster_queue="a", since=-3000)
    async with served(state) as page:
        whole = await outlook(page, ADMIN)
        assert [each["name"] for each in whole["blocking"]] == ["hog", "mine"], "by their expected end"
        mine = await outlook(page, TENANT)
        assert [each["name"] for each in mine["blocking"]] == ["mine", None]


async def test_extra_pods_of_a_hidden_workload_are_neither_named_nor_counted() -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "6"}}})
    state.namespace("team-a", "a")
    resize = {"granted": 3, "wanted": 3, "changedAt": moment(-20)}
    state.holds("team-b", "grown", {"cpu": ("2", "default")}, cluster_queue="a", status={"resize": resize})
    state.waits("team-a", "train", {"cpu": "2"})
    async with served(state) as page:
        (whole,) = (await outlook(page, ADMIN))["blocking"]
        assert (whole["name"], whole["extra"], whole["ends"]) == ("grown", 1, None)
        (mine,) = (await outlook(page, TENANT))["blocking"]
        assert (mine["name"], mine["extra"]) == (None, 0)


@pytest.mark.parametrize(
    ("path", "part"), [("/api/workloads", "rows"), ("/api/mine", "waiting")], ids=["list", "my jobs"]
)
async def test_messages_in_lists_name_no_object_of_another_namespace(path: str, part: str) -> None:
    async with served(lab()) as page:
        lists = [(await ask(page, path, token, namespace="team-a"))[part] for token in (ADMIN, TENANT)]
        whole, mine = (next(row for row in rows if row["name"] == "bumped") for rows in lists)
        if path == "/api/workloads":  # of My jobs even an administrator sees what its namespaces see
            assert "team-b/secret-urgent" in whole["message"]
        assert "a Workload of another namespace" in mine["message"]
        assert "secret" not in str(lists[1])


class Counted:
    """Counts the questions about rights in namespaces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *allowed: str) -> None:
        self.asked: list[str] = []

        async def may_list(_: Rights, user: User, plural: str, namespace: str = "") -> bool:
            self.asked.append(namespace)
            return user.name == "admin" or (plural == "workloads" and namespace in allowed)

        async def user(_rights: Rights, token: str, _: str) -> User:
            return User("admin" if token == ADMIN else "jane", ())

        monkeypatch.setattr(Rights, "may_list", may_list)
        monkeypatch.setattr(Rights, "user", user)

    def taken(self) -> list[str]:
        """What was asked since the last time."""
        found, self.asked = self.asked, []
        return found


def crowd(namespaces: int, queue: str = "a") -> State:
    """A tenant of queue a, and many others that use a queue."""
    state = State()
    for name in ("a", "secret"):
        state.queue(name, {"cpu": {"default": {"min": "8"}}})
    for number in range(namespaces):
        state.namespace(f"other-{number:03}", queue)
        state.waits(f"other-{number:03}", "merger", {"cpu": "7"}, created=number - 900)
    state.namespace("team-a", "a")
    state.waits("team-a", "train", {"cpu": "7"})
    return state


async def test_to_ask_for_a_job_that_only_others_have_costs_no_more_than_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch, "team-a", "other-003")
    async with served(crowd(20)) as page:
        costs = {}
        for name in ("nothing", "merger"):
            await ask(page, "/api/workload", TENANT, 404, namespace="team-a", name=name)
            costs[name] = counted.taken()
        assert costs["nothing"] == costs["merger"]
        await ask(page, "/api/workload", TENANT, 404, namespace="other-003", name="such")
        answer = await ask(page, "/api/workload", TENANT, 404, namespace="team-a", name="merger")
        assert str(answer["error"]).endswith("there is one in other-003"), "it is known that jane sees that"


async def test_to_ask_for_a_hidden_queue_costs_no_more_than_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch, "team-a")
    async with served(crowd(20, "secret")) as page:
        costs = []
        for name in ("nope", "secret", "nope", "secret"):
            for path, field in (("/api/queue", "name"), ("/api/workloads", "queue"), ("/api/starts", "name")):
                error = await ask(page, path, TENANT, 403, **{field: name})
                assert error == {"error": f"jane may not see queue {name}"}
            costs.append(sorted(counted.taken()))
        assert costs[2] == costs[3]
        assert set(costs[1]) <= {"", "team-a"}, "what was refused is not asked about again"


@pytest.fixture
async def behind_many(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A tenant with a namespace that is found only after hundreds of others that use the same queue."""
    Counted(monkeypatch, "team-a")
    async with served(crowd(300)) as page:
        yield page


async def test_a_queue_of_which_it_is_not_known_yet_whether_it_may_be_seen_is_not_refused(
    behind_many: Served,
) -> None:
    for path, field in (("/api/queue", "name"), ("/api/workloads", "queue"), ("/api/starts", "name")):
        for name in ("a", "nope"):
            error = await ask(behind_many, path, TENANT, 503, **{field: name})
            assert error == {"error": f"whether jane may see queue {name} is not known yet: try again"}
    query = {"name": "a", "from-namespace": "team-a"}
    assert (await ask(behind_many, "/api/queue", TENANT, 200, **query))["told"]
    assert (await ask(behind_many, "/api/queue", TENANT, name="a"))["told"], "it is known from then on"


async def test_a_line_of_many_namespaces_is_asked_about_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = Counted(monkeypatch, "team-a")
    state = crowd(300)
    state.waits("team-a", "last", {"cpu": "7"}, created=100)
    async with served(state) as page:
        answer = await told(page, TENANT, name="last")
        assert (len(answer["ahead"]), answer["moreAhead"]) == (50, 251)
        assert len(set(counted.taken())) <= 52, "those that are named, all, and its own"
        await ask(page, "/api/outlook", TENANT, namespace="team-a", name="last")
        assert set(counted.taken()) <= {"", "team-a"}

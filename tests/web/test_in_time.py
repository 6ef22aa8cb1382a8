"""The page says at once why a Job waits, and in time when it starts, or that this is not known in time."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from admitter.insight.explain.outlook import first
from admitter.insight.forecast.deadline import NO_LIMIT, Allowance, Deadline
from admitter.web import scene, turns
from admitter.web.turns import Turns
from admitter.web.views import workload
from admitter.web.views.workload import Explanations
from tests.insight.states import State
from tests.web.pages import ADMIN, TENANT, Served, department, served
from tests.web.test_server import Json, ask

SHORT = Allowance(0.05)


async def about(page: Served, path: str, token: str = ADMIN) -> Json:
    return await ask(page, path, token, namespace="team-a", name="train-0")


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    """Set when work that takes long may come to its end; at last it is, since threads have to end."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(department()) as made:
        yield made


async def test_the_reason_comes_first_and_the_rest_is_asked_for_apart(page: Served) -> None:
    answer = await about(page, "/api/workload")
    assert (answer["complete"], answer["waits"]) == (True, True)
    assert answer["sentences"][0].startswith("waits for 7 × cpu in flavor default")
    assert not answer.keys() & {"start", "blocking"}
    outlook = await about(page, "/api/outlook")
    assert outlook["sought"]
    assert [each["name"] for each in outlook["blocking"]] == ["long"]
    assert outlook["start"]["sentence"].startswith("Start: in ")
    assert outlook["start"]["inTime"]


async def test_of_one_that_does_not_wait_there_is_nothing_to_look_ahead_to(page: Served) -> None:
    assert not (await ask(page, "/api/workload", namespace="team-a", name="done"))["waits"]
    outlook = await ask(page, "/api/outlook", namespace="team-a", name="done")
    assert (outlook["blocking"], outlook["start"]) == ([], None)


async def test_looking_ahead_hides_workloads_that_may_not_be_seen() -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team-a", "a")
    state.namespace("team-b", "a")
    state.holds("team-b", "secret-holder", {"cpu": ("8", "default")}, cluster_queue="a")
    state.waits("team-a", "train-0", {"cpu": "7"})
    async with served(state) as page:
        (holder,) = (await about(page, "/api/outlook"))["blocking"]
        assert (holder["namespace"], holder["name"]) == ("team-b", "secret-holder")
        mine = await about(page, "/api/outlook", TENANT)
        assert [each["visible"] for each in mine["blocking"]] == [False]
        assert "secret" not in str(mine)
        await ask(page, "/api/outlook", TENANT, 403, namespace="team-b", name="secret")
        await ask(page, "/api/outlook", status=404, namespace="team-a", name="trian-0")


async def test_what_takes_long_to_explain_is_told_by_its_status_first(
    page: Served, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Any:
        go_on.wait()
        return first(*arguments)

    monkeypatch.setattr(workload, "AT_ONCE", SHORT)
    monkeypatch.setattr(workload, "first", slow)
    for _ in range(2):  # the second finds the first one still at work
        answer = await about(page, "/api/workload")
        assert (answer["complete"], answer["waits"]) == (False, False)
        assert (answer["name"], answer["state"], answer["sentences"]) == ("train-0", "Pending", [])
        assert [each["what"] for each in answer["timeline"]] == ["Created"]
        assert answer["commands"][0]["command"] == "admitter explain job/train-0 -n team-a"
    missing = await ask(page, "/api/workload", status=404, namespace="team-a", name="trian-0")
    assert missing == {"error": "there is no Job and no Workload trian-0 in namespace team-a"}
    go_on.set()
    monkeypatch.setattr(workload, "AT_ONCE", Allowance(30.0))
    assert (await about(page, "/api/workload"))["complete"]


async def test_so_is_one_without_a_workload(go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    state = department()
    over = state.waits("team-a", "over", {"cpu": "1"})
    over["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    foreign = state.waits("team-a", "foreign", {"cpu": "1"})
    del foreign["metadata"]["labels"]
    monkeypatch.setattr(workload, "AT_ONCE", SHORT)
    monkeypatch.setattr(workload, "first", lambda *_: go_on.wait())
    async with served(state) as page:
        for name, words in (
            ("over", "it has finished, and its Workload is gone"),
            ("job/over", "it has finished, and its Workload is gone"),
            ("foreign", "Admitter has nothing to do with it: it has no label admitter.dev/queue-name"),
        ):
            answer = await ask(page, "/api/workload", namespace="team-a", name=name)
            assert (answer["complete"], answer["state"], answer["sentences"]) == (False, None, [words])
            assert answer["name"] == name.removeprefix("job/")
        state.objects["workloads"] = [
            each for each in state.objects["workloads"] if each["metadata"]["name"] != "long"
        ]
        page.stage.show(state)
        answer = await ask(page, "/api/workload", namespace="team-a", name="long")
        assert (answer["complete"], answer["state"], answer["sentences"]) == (True, "Gone", [])
        assert "Admitted" in [each["what"] for each in answer["timeline"]]
        go_on.set()


async def test_an_estimate_that_does_not_come_is_said_to_be_missing_and_holds_nothing_up(
    go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "start_of", lambda *_: go_on.wait())
    for module in (workload, scene):
        monkeypatch.setattr(module, "QUEUEING_SECONDS", 0.05)
    async with served(department(), SHORT) as page:
        monkeypatch.setattr(Explanations, "blocking", lambda self, *names: self.first(*names[:2]).answer)
        outlook = await about(page, "/api/outlook")
        assert outlook["start"]["sentence"] == "Start: no estimate in time"
        assert (outlook["start"]["inTime"], outlook["start"]["median"]) == (False, None)
        assert not outlook["sought"]
        assert (await about(page, "/api/workload"))["complete"]
        starts = await ask(page, "/api/starts", name="a")
        assert {each["words"] for each in starts.values()} == {"no estimate in time"}
        assert sorted(starts) == ["team-a/train-0", "team-a/train-1", "team-a/train-2", "team-b/secret"]
        go_on.set()


async def test_a_search_that_does_not_come_to_its_end_is_said_to_be_missing(
    go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explanations, "blocking", lambda *_: go_on.wait())
    async with served(department(), SHORT) as page:
        outlook = await about(page, "/api/outlook")
        assert (outlook["sought"], outlook["start"]["sentence"]) == (False, "Start: no estimate in time")
        go_on.set()


async def test_starts_of_a_queue_are_worked_out_once(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await asyncio.gather(*(ask(page, "/api/starts", name="a") for _ in range(2)))
    monkeypatch.delattr(scene, "Estimator")
    assert one == other == await ask(page, "/api/starts", name="a")
    assert one["team-a/train-0"]["inTime"]


async def test_an_estimate_ends_by_itself_before_it_is_missed() -> None:
    """A clock that moves with each look: on it a future takes as long as it has steps."""
    times = iter(range(10_000))
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "4"}}})
    state.namespace("team-a", "a")
    state.waits("team-a", "one", {"cpu": "3"}, annotations={"admitter.dev/expected-runtime": "5m"})
    state.waits("team-a", "two", {"cpu": "3"}, annotations={"admitter.dev/expected-runtime": "5m"})
    async with served(state) as page:
        shown = page.stage.scene
        assert shown is not None
        shown._estimate("a", Deadline(30.0, lambda: float(next(times))))
        futures = (await shown.starts("a"))["team-a/two"]["futures"]
        assert 0 < futures["told"] < 20
        assert next(times) < 27 + 20, "nine tenths of the time, and a look for each that is not begun"


async def test_work_waits_for_its_turn_and_gives_up() -> None:
    turn, go_on = Turns(), threading.Event()

    def go_on_waiting(_: Deadline) -> bool:
        return go_on.wait()

    assert await turn.result(go_on_waiting, SHORT, 1.0) is None
    assert await turn.result(lambda _: 7, NO_LIMIT, 0.01) is None, "the first one is still at it"
    waits = asyncio.create_task(turn.result(lambda _: 7, NO_LIMIT, 30.0))
    await asyncio.sleep(0)
    go_on.set()
    assert await waits == 7


async def test_what_goes_wrong_is_told_to_readers_that_wait_and_to_none_that_has_left() -> None:
    turn, go_on = Turns(), threading.Event()

    def fails(_: Deadline) -> int:
        go_on.wait()
        raise ValueError("no")

    assert await turn.result(fails, SHORT, 1.0) is None
    go_on.set()
    with pytest.raises(ValueError, match="no"):
        await turn.result(fails, NO_LIMIT, 30.0)


def test_the_page_has_its_say_soon() -> None:
    assert turns.AT_ONCE.seconds <= 0.3

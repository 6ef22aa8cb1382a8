"""A change is tried by users that may make it, and told without names that they may not see."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from admitter.insight.forecast.deadline import Allowance, OutOfTimeError
from admitter.insight.snapshot_file import facts
from admitter.insight.what_if.compare import compare
from admitter.simulate.manifests import Change
from admitter.web import trials
from admitter.web.views import try_change
from tests.insight.asking import Desk
from tests.insight.states import State
from tests.web.pages import ADMIN, EDITOR, TENANT, Served, department, served
from tests.web.test_server import ask

Json = dict[str, Any]
MORE = {"queue": "a", "resource": "cpu", "flavor": "default", "part": "min", "value": "16"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time."""
    monkeypatch.setattr(try_change, "TRIAL_SECONDS", 120.0)
    monkeypatch.setattr(try_change, "QUEUEING_SECONDS", 120.0)


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(department()) as made:
        yield made


async def post(page: Served, body: Any, token: str = ADMIN, status: int = 200) -> Json:
    headers = {"Authorization": f"Bearer {token}"}
    data = body if isinstance(body, str) else json.dumps(body)
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{page.address}/api/try", data=data) as answer,
    ):
        assert answer.status == status, await answer.text()
        found: Json = await answer.json()
        return found


async def tried(page: Served, *wishes: Json, token: str = ADMIN, status: int = 200) -> Json:
    return await post(page, {"set": list(wishes)}, token, status)


async def test_more_quota_admits_and_says_how_many_wait_then(page: Served) -> None:
    answer = await tried(page, MORE)
    difference = answer["difference"]
    admitted = difference["atOnce"]["admitted"]
    assert (admitted["count"], admitted["hidden"]) == (2, 0)
    assert [(row["namespace"], row["name"]) for row in admitted["rows"]] == [
        ("team-a", "train-0"),
        ("team-b", "secret"),
    ]
    (queue,) = difference["queues"]
    assert (queue["waiting"], queue["admitted"]) == ({"before": 4, "after": 2}, {"before": 1, "after": 3})
    assert difference["over"] == []
    assert answer["commands"][0].startswith("kubectl patch clusterqueues.admitter.dev a --type=json")


async def test_less_quota_is_over(page: Served) -> None:
    answer = await tried(page, {**MORE, "value": "1"})
    (over,) = answer["difference"]["over"]
    assert over == {
        "where": "Cohort research",
        "flavor": "default",
        "resource": "cpu",
        "used": {"value": 10.0, "words": "10"},
        "allowed": {"value": 9.0, "words": "9"},
    }


async def test_the_manifest_by_the_command_has_the_same_answer(tmp_path: Path) -> None:
    state = department()
    async with served(state) as page:
        answer = await tried(
            page, {**MORE, "value": "12"}, {**MORE, "queue": "b", "part": "max", "value": "9"}
        )
    manifests = list(yaml.safe_load_all(answer["manifest"]))
    said = Desk(state, tmp_path).what_if(*manifests)
    difference = answer["difference"]
    assert [(row["namespace"], row["name"]) for row in difference["atOnce"]["admitted"]["rows"]] == [
        (each["namespace"], each["name"]) for each in said["workloads"] if each["effect"] == "admitted"
    ]
    assert sum(each["count"] for each in difference["atOnce"].values()) == len(said["workloads"])
    moved = {
        (row["namespace"], row["name"]) for kind in ("sooner", "later") for row in difference[kind]["rows"]
    }
    assert moved == {(each["namespace"], each["name"]) for each in said["starts"]}
    assert moved, "the example has some"
    assert len(difference["over"]) == len(said["over"])


async def test_it_is_for_users_that_may_edit_the_queue(page: Served) -> None:
    assert (await tried(page, MORE, token=EDITOR))["difference"] is not None
    refused = await tried(page, {**MORE, "queue": "b"}, token=EDITOR, status=403)
    assert refused == {"error": "editor may not edit ClusterQueue b"}
    assert await tried(page, {**MORE, "queue": "nope"}, token=EDITOR, status=403) == {
        "error": "editor may not edit ClusterQueue nope"
    }
    await tried(page, MORE, {**MORE, "queue": "b"}, token=EDITOR, status=403)
    await tried(page, MORE, token=TENANT, status=403)
    await tried(page, MORE, token="another", status=401)
    assert await tried(page, {**MORE, "queue": "nope"}, status=404) == {
        "error": "there is no ClusterQueue nope"
    }


async def test_the_form_says_what_may_be_edited(page: Served) -> None:
    form = await ask(page, "/api/try", EDITOR, queues="a,b,nope")
    first, second, missing = form["queues"]
    assert (first["may"], second["may"], missing) == (True, False, {"name": "nope", "known": False})
    (quota,) = first["quotas"]
    assert (quota["min"], quota["max"], quota["used"]["value"]) == (
        {"value": 8.0, "written": "8"},
        None,
        10.0,
    )
    assert quota["end"] == 16.0
    assert (form["every"], form["offers"]) == (["a", "b"], [])
    offers = (await ask(page, "/api/try", EDITOR))["offers"]
    assert [(each["name"], each["waiting"], each["cohort"]) for each in offers] == [
        ("a", 4, "research"),
        ("b", 0, "research"),
    ]
    assert (offers[0]["use"]["used"], offers[0]["use"]["min"]) == (10.0, 8.0)
    await ask(page, "/api/try", TENANT, 403, queues="a")
    await ask(page, "/api/try", ADMIN, 400, queues=",".join(f"q{number}" for number in range(21)))


async def test_a_user_is_told_no_name_of_another_namespace(page: Served) -> None:
    answer = await tried(page, MORE, token=EDITOR)
    admitted = answer["difference"]["atOnce"]["admitted"]
    assert (admitted["count"], admitted["hidden"]) == (2, 1)
    assert [row["name"] for row in admitted["rows"]] == ["train-0"]
    assert "secret" not in str(answer)
    assert "team-b" not in str(answer)


async def test_a_preemptor_of_another_namespace_has_no_name() -> None:
    state = State()
    for name, quota in (("a", "8"), ("b", "4")):
        state.queue(
            name, {"cpu": {"default": {"min": quota}}}, "research", preemption={"reclaimWithinCohort": "Any"}
        )
        state.namespace(f"team-{name}", name)
    for number in range(2):
        state.holds(
            "team-a", f"runs-{number}", {"cpu": ("4", "default")}, cluster_queue="a", since=-60 - number
        )
    state.waits("team-b", "secret", {"cpu": "4"})
    async with served(state) as page:
        for token, why in ((ADMIN, "for team-b/secret"), (EDITOR, "for a Workload of another namespace")):
            answer = await tried(page, {**MORE, "value": "4"}, token=token)
            (row,) = answer["difference"]["atOnce"]["evicted"]["rows"]
            assert (row["name"], row["why"]) == ("runs-0", f"preempted {why}")


async def test_what_the_api_would_refuse_is_said_at_its_number(page: Served) -> None:
    answer = await tried(page, {**MORE, "part": "max", "value": "7"})
    assert answer["refused"] == [
        {
            "queue": "a",
            "resource": "cpu",
            "flavor": "default",
            "part": "max",
            "message": "max 7 is less than min 8",
        }
    ]
    assert (answer["difference"], answer["manifest"], answer["commands"]) == (None, "", [])


async def test_nothing_is_worked_out_where_nothing_changes(page: Served) -> None:
    answer = await tried(page, {**MORE, "value": "8"})
    assert (answer["difference"], answer["refused"], answer["manifest"]) == (None, [], "")


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "null",
        "[]",
        '{"set": 1}',
        {"set": [{**MORE, "part": "lendingLimit"}]},
        {"set": [{**MORE, "value": 16}]},
        {"set": [{**MORE, "value": "9" * 65}]},
        {"set": [{**MORE, "queue": "q" * 254}]},
        {"set": [{**MORE, "namespace": "team-b"}]},
        {"set": [], "apply": True},
        {"set": [MORE] * 501},
        {"set": [{**MORE, "queue": f"q{number}"} for number in range(21)]},
    ],
)
async def test_what_is_no_change_is_refused(page: Served, body: Any) -> None:
    assert "error" in await post(page, body, status=400)


async def test_a_body_that_is_too_large_is_refused(page: Served) -> None:
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{page.address}/api/try", data=b" " * 1_000_000) as answer,
    ):
        assert answer.status == 413


async def test_another_sites_page_can_not_try(page: Served) -> None:
    headers = {"Authorization": f"Bearer {ADMIN}", "Sec-Fetch-Site": "cross-site"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{page.address}/api/try", json={"set": [MORE]}) as answer,
    ):
        assert answer.status == 403


async def test_a_newer_change_of_the_same_user_ends_the_one_before(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any, **more: Any) -> Any:
        if not begun.is_set():
            begun.set()
            may_go_on.wait()
        return compare(*arguments, **more)

    monkeypatch.setattr(trials, "compare", slow)
    try:
        older = asyncio.create_task(tried(page, {**MORE, "value": "9"}, status=409))
        await asyncio.to_thread(begun.wait)
        trial = page.stage.limits.trials._of["admin"]
        newer = asyncio.create_task(tried(page, MORE))
        await asyncio.to_thread(trial.replaced.wait)
        may_go_on.set()
        assert await older == {"error": "you try another change by now"}
        assert (await newer)["difference"]["atOnce"]["admitted"]["count"] == 2
    finally:
        may_go_on.set()
    assert len(page.stage.limits.trials) == 0


async def test_users_do_not_end_each_others_changes(page: Served) -> None:
    both = await asyncio.gather(tried(page, MORE), tried(page, {**MORE, "value": "9"}, token=EDITOR))
    assert [answer["difference"] is not None for answer in both] == [True, True]


async def test_decisions_that_take_too_long_are_given_up(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: Any, proceed: Any, **__: Any) -> Any:
        while True:
            proceed()

    monkeypatch.setattr(trials, "compare", endless)
    monkeypatch.setattr(try_change, "TRIAL_SECONDS", 0.05)
    answer = await tried(page, MORE)
    assert answer["difference"] is None
    assert "admitter what-if answers without a limit" in answer["late"]
    monkeypatch.undo()
    assert (await tried(page, MORE))["difference"] is not None, "the next one has its turn"


async def test_a_step_that_takes_too_long_is_told_from_a_turn_that_does_not_come(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def stuck(*_: Any, **__: Any) -> Any:
        begun.set()
        may_go_on.wait()
        raise OutOfTimeError

    monkeypatch.setattr(trials, "compare", stuck)
    monkeypatch.setattr(try_change, "QUEUEING_SECONDS", 0.05)
    monkeypatch.setattr(try_change, "TRIAL_SECONDS", 0.5)
    try:
        first = asyncio.create_task(tried(page, MORE))
        await asyncio.to_thread(begun.wait)
        behind = await tried(page, MORE, token=EDITOR)
        assert "had no turn in time" in behind["late"]
        assert "take longer than there is time" in (await first)["late"]
    finally:
        may_go_on.set()


async def test_an_answer_is_worked_out_once_for_all_that_look_at_it(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await tried(page, MORE)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is known")

    monkeypatch.setattr(trials, "compare", never)
    assert await tried(page, MORE) == first
    assert (await tried(page, MORE, token=EDITOR))["difference"]["atOnce"]["admitted"]["hidden"] == 1


def test_a_playout_ends_when_it_is_told_to() -> None:
    known = facts(department().snapshot())
    steps = 0

    def proceed() -> None:
        nonlocal steps
        steps += 1
        if steps > 3:
            raise OutOfTimeError

    change = {"apiVersion": "admitter.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "a"}}
    with pytest.raises(OutOfTimeError):
        compare(
            known, [Change(known.taken, 0, {**change, "spec": {}})], allowed=Allowance(0), proceed=proceed
        )
    assert steps == 4


async def test_the_texts_of_a_change_are_made_once_and_beside_other_requests(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To write twenty large queues takes more than a second, in which no other request would be answered."""
    threads: list[tuple[str, bool]] = []
    for name in ("manifest", "patches", "commands"):
        make = getattr(try_change, name)

        def noted(change: Any, name: str = name, make: Any = make) -> Any:
            threads.append((name, threading.current_thread() is threading.main_thread()))
            return make(change)

        monkeypatch.setattr(try_change, name, noted)
    answer = await tried(page, MORE)
    assert answer["manifest"]
    assert answer["difference"] is not None
    assert sorted(threads) == [("commands", False), ("manifest", False), ("patches", False)]

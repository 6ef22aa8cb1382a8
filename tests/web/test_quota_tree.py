"""What the quota tree says: use, which place lends to which queue, and small pictures of use."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.insight.states import State
from tests.web.pages import ADMIN, EDITOR, TENANT, Served, department, served
from tests.web.states import research
from tests.web.test_server import ask

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "x" * 220


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(research()) as made:
        yield made


async def loans(page: Served, name: str, kind: str = "queue", flavor: str = "a100") -> Json:
    return await ask(page, "/api/lending", kind=kind, name=name, flavor=flavor, resource=GPU)


def pairs(answer: Json) -> list[tuple[str, str, float]]:
    return [
        (loan["lender"]["name"] if loan["lender"] else "", loan["borrower"]["name"], loan["amount"]["value"])
        for loan in answer["loans"]
    ]


async def test_loans_agree_with_what_the_tree_says(page: Served) -> None:
    lines = {line["name"]: line for line in (await ask(page, "/api/tree"))["lines"]}
    borrowed = await loans(page, "vision")
    assert pairs(borrowed) == [("language", "vision", 1.0), ("speech", "vision", 1.0)]
    assert all((loan["borrows"], loan["lends"]) == (True, False) for loan in borrowed["loans"])
    use = next(use for use in lines["vision"]["uses"] if use["flavor"] == "a100")
    assert borrowed["borrowed"]["value"] == use["borrowed"] == 2.0
    for lender in ("speech", "language"):
        answer = await loans(page, lender)
        use = next(use for use in lines[lender]["uses"] if use["flavor"] == "a100")
        assert sum(amount for _, _, amount in pairs(answer)) == use["lent"] == answer["lent"]["value"] == 1.0
    whole = await loans(page, "research", "cohort")
    assert pairs(whole) == pairs(borrowed)
    assert all((loan["borrows"], loan["lends"]) == (True, True) for loan in whole["loans"])
    assert pairs(await loans(page, "vision", flavor="t4")) == []


async def test_very_many_loans_are_told_largest_first_and_added_up() -> None:
    state = State()
    state.put("cohorts", "all", spec={})
    for number in range(260):
        state.queue(f"q-{number:03}", {"cpu": {"default": {"min": str(1 + number % 3)}}}, "all")
    state.namespace("team", "q-000")
    state.holds("team", "large", {"cpu": ("301", "default")}, cluster_queue="q-000")
    async with served(state) as page:
        answer = await ask(page, "/api/lending", kind="queue", name="q-000", flavor="default", resource="cpu")
    assert (len(answer["loans"]), answer["more"]) == (200, 59)
    amounts = [loan["amount"]["value"] for loan in answer["loans"]]
    assert amounts == sorted(amounts, reverse=True)
    assert round(sum(amounts) + answer["moreAmount"]["value"], 3) == answer["borrowed"]["value"] == 300.0


async def test_small_pictures_are_of_the_scarcest_resource(page: Served) -> None:
    found = (await ask(page, "/api/sparks"))["queues"]
    assert set(found) == {"vision", "speech", "language"}
    vision = found["vision"]
    assert (vision["flavor"], vision["resource"], vision["quota"]) == ("a100", GPU, 8.0)
    assert vision["used"][-1] == 10.0
    assert len(vision["used"]) == 32


async def test_the_weight_is_said_where_it_counts() -> None:
    state = department()
    state.put("cohorts", "fair", spec={"fairSharing": {"enabled": True}})
    state.queue("c", {"cpu": {"default": {"min": "1"}}}, "fair", fairSharing={"weight": "2500m"})
    async with served(state) as page:
        lines = {line["name"]: line["weight"] for line in (await ask(page, "/api/tree"))["lines"]}
    assert lines == {"research": None, "a": None, "b": None, "fair": 1.0, "c": 2.5}


async def test_tenants_are_told_nothing_of_the_tree(page: Served) -> None:
    for path in ("/api/tree", "/api/sparks", "/api/lending", "/api/try"):
        for name in ("vision", "nope"):
            refused = await ask(page, path, TENANT, 403, kind="queue", name=name, flavor="a100", resource=GPU)
            assert "vision" not in str(refused)
        assert await ask(page, path, "another", 401, name="vision") == {"error": "log in with a token"}
    assert (
        pairs(
            await ask(page, "/api/lending", EDITOR, kind="queue", name="vision", flavor="a100", resource=GPU)
        )
        != []
    )


async def test_what_is_not_there_is_said(page: Served) -> None:
    for kind, name, words in (
        ("queue", "nope", "there is no queue nope"),
        ("cohort", "vision", "there is no Cohort vision"),
        ("", "", "there is no queue "),
        ("queue", HOSTILE, f"there is no queue {HOSTILE}"),
    ):
        missing = await ask(
            page, "/api/lending", status=404, kind=kind, name=name, flavor="a100", resource=GPU
        )
        assert missing == {"error": words}
    other = await ask(page, "/api/lending", status=404, kind="queue", name="vision", flavor="x", resource="y")
    assert other == {"error": "ClusterQueue vision has no y in flavor x"}
    assert not [key for key in page.stage.scene._made if "x" in key], "nothing is remembered of it"  # type: ignore[union-attr]


async def test_hostile_names_are_told_as_they_are() -> None:
    state = department()
    state.put("cohorts", HOSTILE, spec={})
    state.queue(HOSTILE, {"cpu": {"default": {"min": "4"}}}, "research")
    async with served(state) as page:
        lines = (await ask(page, "/api/tree"))["lines"]
        assert f"Cohort {HOSTILE}" in [line["title"] for line in lines]
        query = {"kind": "cohort", "flavor": "default", "resource": "cpu"}
        missing = await ask(page, "/api/lending", ADMIN, 404, name=HOSTILE, **query)
        assert missing == {"error": f"Cohort {HOSTILE} has no cpu in flavor default"}
        form = (await ask(page, "/api/try", queues=HOSTILE))["queues"][0]
        assert form["title"] == f"ClusterQueue {HOSTILE}"

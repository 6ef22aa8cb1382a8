"""Thirty queues, and a thousand with 20,000 Workloads: what is done for a key, or for a new picture."""

import time

import pytest

from admitter.top.scene import TopScene
from admitter.top.table import Table
from tests.top.clusters import company, many
from tests.top.screens import Glass, names, scene_of, watching


@pytest.fixture(scope="module")
def large() -> TopScene:
    return scene_of(many(1000, 20_000))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of all lines of tables that are drawn."""
    found: list[int] = []
    draw = Table.render_line

    def noted(table: "Table[object]", y: int) -> object:
        found.append(y)
        return draw(table, y)

    monkeypatch.setattr(Table, "render_line", noted)
    return found


async def test_thirty_queues_are_a_page_and_a_half() -> None:
    async with watching(many(30, 60)) as glass:
        lines = await glass.lines()
        assert lines[2].endswith("1–16 of 32")
        assert (await glass.press("pagedown"))[2].endswith("2–17 of 32")
        assert (await glass.press("end"))[2].endswith("17–32 of 32")
        assert names(await glass.press("home"))[0] == "department-00"


@pytest.mark.long
async def test_only_what_is_in_view_is_drawn(large: TopScene, drawn: list[int]) -> None:
    async with watching(large) as glass:
        assert (await glass.lines())[1].startswith("1,000 queues: 10,000 waiting, 10,000 admitted")
        widgets = len(glass.app.screen.query("*"))
        assert widgets < 20
        assert len(drawn) <= 3 * 17
        drawn.clear()
        await glass.press("down")
        assert sorted(drawn) == [1, 2], "the line that was left, and the one that was come to"
        drawn.clear()
        await glass.press("end")
        assert len(drawn) <= 2 * 17
        drawn.clear()
        await glass.press("enter")
        assert (await glass.lines())[2].endswith("1–16 of 20")
        assert len(glass.app.screen.query("*")) <= widgets


@pytest.mark.long
async def test_a_picture_that_is_the_same_draws_nothing(large: TopScene, drawn: list[int]) -> None:
    async with watching(large) as glass:
        drawn.clear()
        glass.app.take(large)
        await glass.lines()
        assert drawn == []


async def test_a_picture_draws_what_has_changed(drawn: list[int]) -> None:
    async with watching(company()) as glass:
        drawn.clear()
        state = company()
        state.waits("alone", "more", {"memory": "1Gi"})
        await glass.show(state)
        assert drawn == [4], "one more waits in queue alone"


@pytest.mark.long
async def test_keys_cost_little(large: TopScene) -> None:
    """Some milliseconds of CPU each; a second would be too much to wait."""
    async with watching(large) as glass:
        keys = [
            *["down"] * 20,
            *["pagedown"] * 5,
            "u",
            "w",
            "a",
            "n",
            "minus",
            "plus",
            "slash",
            *"0777",
            "escape",
        ]
        assert await cpu(glass, *keys) / len(keys) < 0.25
        await glass.press("home", "enter")
        keys = [*["down"] * 20, "end", "slash", *"1900", "escape"]
        assert await cpu(glass, *keys) / len(keys) < 0.25


async def cpu(glass: Glass, *keys: str) -> float:
    """How much CPU keys take, in seconds."""
    before = time.process_time()
    await glass.press(*keys)
    return time.process_time() - before


@pytest.mark.long
async def test_twenty_thousand_in_one_queue(drawn: list[int]) -> None:
    async with watching(many(1, 20_000)) as glass:
        drawn.clear()
        lines = await glass.press("down", "enter", "end")
        assert lines[2].endswith("19,985–20,000 of 20,000")
        assert len(drawn) <= 5 * 17

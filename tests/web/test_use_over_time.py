"""What a Job used that gave quota back, or grew, while it ran."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.web.history import History
from admitter.web.use_over_time import MOST_PARTS, Earlier, Usage, changed, most, parts
from tests.insight.states import NOW, State, moment
from tests.web.histories import change, cluster, shown
from tests.web.pages import ADMIN, TENANT, served
from tests.web.test_server import ask

Json = dict[str, Any]
HOUR = 3600.0


def cores(amount: float) -> Usage:
    return (("default", "cpu", amount),)


def ten_pods() -> tuple[State, Json]:
    """A queue of 20 CPUs, and a Workload that has run ten pods of one CPU for a minute."""
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "20"}}})
    state.namespace("team-a", "a")
    made = state.holds("team-a", "job", {"cpu": ("10", "default")}, cluster_queue="a", since=-60)
    made["spec"]["podSets"][0].update(count=10, requests={"cpu": "1"})
    made["status"]["admission"]["podSets"][0]["count"] = 10
    return state, made


def held_back(_: Json) -> Json:
    return {"held": [{"name": "main", "count": 1}]}


def lowered(status: Json) -> Json:
    pod_set = status["admission"]["podSets"][0] | {"count": 1, "usage": {"cpu": "1"}}
    return {"admission": status["admission"] | {"podSets": [pod_set]}}


def grown(_: Json) -> Json:
    return {"resize": {"granted": 20, "wanted": 20, "changedAt": moment(30)}}


CHANGES = [
    pytest.param(held_back, 30, 1, id="it gives back all but one"),
    pytest.param(lowered, 3570, 1, id="its admission is lowered"),
    pytest.param(grown, 30, 20, id="it grows"),
]


@pytest.mark.parametrize(("how", "at", "after"), CHANGES)
async def test_what_was_used_is_what_the_chart_of_its_queue_says(
    how: Callable[[Json], Json], at: int, after: int
) -> None:
    """Ten cores from a minute before midnight until some second, and after that more, or fewer."""
    state, made = ten_pods()
    async with served(state) as page:
        for second in range(30, 3601, 30):
            if second == at:
                change(made, how(made["status"]))
            page.stage.show(state, second)
        mine = await ask(page, "/api/mine", TENANT)
        chart = page.stage.history.course("a").used["default", "cpu"]
    (day,), (hour,) = mine["used"]["day"], mine["used"]["hour"]
    assert day["hours"] == pytest.approx((10 * (60 + at) + after * (3600 - at)) / HOUR)
    assert hour["hours"] == pytest.approx((10 * at + after * (3600 - at)) / HOUR)
    numbers = [value for value in chart if value is not None]
    assert hour["hours"] == pytest.approx(sum(numbers) / len(numbers), rel=0.02)


async def test_the_strip_of_a_queue_has_what_was_used_when() -> None:
    state, made = ten_pods()
    async with served(state) as page:
        page.stage.show(state, 600)
        change(made, held_back(made["status"]))
        for second in (1200, 1800):
            page.stage.show(state, second)
        query: dict[str, Any] = {"from": str(NOW - 600), "to": str(NOW + 1800), "quota": "1", "high": "size"}
        answer = await ask(page, "/api/timeline", ADMIN, **query)
    points = answer["use"]["a"]["points"]
    for second, amount in ((-30, 10.0), (1190, 10.0), (1220, 1.0), (1790, 1.0)):
        assert [used for time, used in points if time <= NOW + second][-1] == amount, second
    assert answer["largest"] == 10.0, "bars are as high as the most that they used at one time"


def test_what_the_page_has_not_seen_counts_as_the_first_that_it_saw() -> None:
    history = History()
    state, made = ten_pods()
    change(made, held_back(made["status"]))
    shown(history, state, 0)
    (span,) = history.spans(0)
    assert (span.usage, span.earlier) == (cores(1.0), ())


def test_an_admission_after_another_begins_with_its_own_use() -> None:
    history = History()
    state, made = ten_pods()
    shown(history, state, 0)
    change(made, lowered(made["status"]))
    for condition in made["status"]["conditions"]:
        condition["lastTransitionTime"] = moment(100)
    shown(history, state, 110)
    first, second = history.spans(0)
    assert (first.usage, first.earlier, second.usage, second.earlier) == (cores(10.0), (), cores(1.0), ())


def test_a_restarted_page_knows_what_was_used_earlier(tmp_path: Path) -> None:
    state, made = ten_pods()
    history = History(tmp_path / "history")
    shown(history, state, 0)
    change(made, held_back(made["status"]))
    shown(history, state, 60)
    history.close()
    history = History(tmp_path / "history")
    shown(history, state, 120)
    (span,) = history.spans(0)
    assert (span.usage, span.earlier) == (cores(1.0), ((NOW + 60, cores(10.0)),))
    history.close()


def test_the_file_of_the_version_before_is_read_and_written(tmp_path: Path) -> None:
    path, state = tmp_path / "history", cluster("a")
    state.holds("team-a", "one", {"cpu": ("2", "default")}, cluster_queue="a", since=-90, finished=-10)
    history = History(path)
    shown(history, state, 0)
    history.close()
    with sqlite3.connect(path, isolation_level=None) as old:
        (body,) = old.execute("SELECT body FROM spans").fetchone()
        old.execute("UPDATE spans SET body = ?", (orjson.dumps(orjson.loads(body)[:-1]),))
        old.execute("PRAGMA user_version = 1")
    old.close()
    history = History(path)
    shown(history, cluster("a"), 15)
    (span,) = history.spans(0)
    assert (span.name, span.usage, span.earlier) == ("one", cores(2.0), ())
    history.close()
    with sqlite3.connect(path) as new:
        assert new.execute("PRAGMA user_version").fetchone() == (2,)
    new.close()
    assert [each.name for each in tmp_path.iterdir()] == ["history"], "nothing is put aside"


seconds = st.lists(st.tuples(st.integers(0, 3600), st.integers(0, 9).map(float)), min_size=1, max_size=60)


@given(seconds)
def test_however_often_it_changes_the_sum_is_kept_in_few_parts(changes: list[tuple[int, float]]) -> None:
    now, usage, exact = 0.0, cores(4.0), 0.0
    earlier: Earlier = ()
    for later, amount in changes:
        exact += usage[0][2] * later
        now += later
        earlier = changed(0.0, earlier, usage, now)
        usage = cores(amount)
    found = list(parts(0.0, now + 100, earlier, usage))
    assert len(found) <= MOST_PARTS + 1
    assert [begins for begins, _, _ in found] == [0.0, *(ends for _, ends, _ in found[:-1])]
    total = sum((ends or 0.0) * used[0][2] - begins * used[0][2] for begins, ends, used in found)
    assert total == pytest.approx(exact + 100 * usage[0][2])


def test_parts_end_with_their_admission() -> None:
    earlier = ((10.0, cores(1.0)), (20.0, cores(2.0)))
    assert list(parts(0.0, 15.0, earlier, cores(3.0))) == [(0.0, 10.0, cores(1.0)), (10.0, 15.0, cores(2.0))]
    assert list(parts(0.0, None, earlier, ()))[-1] == (20.0, None, ())
    assert most(earlier, cores(0.5), "cpu") == 2.0
    assert most((), cores(0.5), "memory") == 0.0

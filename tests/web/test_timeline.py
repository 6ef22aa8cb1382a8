"""The timeline as the server tells it: what was and what will be, and which user is told what."""

import gzip
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.insight.forecast.deadline import Allowance
from admitter.web.history import Span
from admitter.web.views import timeline
from admitter.web.views.timeline import MOST_BARS, MOST_LAYOUTS, PAST, most_at_once
from tests.insight.states import NOW, State
from tests.web.pages import ADMIN, TENANT, Served, department, served
from tests.web.test_server import ask
from tests.web.timelines import GPU, HOUR, busy, long_day, stopping

Json = dict[str, Any]
DAY = {"from": str(NOW - PAST), "to": str(NOW + 12 * HOUR), "rows": "400"}
HOSTILE = ("<img src=x onerror=alert(1)>", "\u202eabc\u2066", "x" * 253, "'\"&</script>")


async def told(
    page: Served, query: Mapping[str, str] = DAY, token: str = ADMIN, status: int = 200, **more: str
) -> Json:
    """What a user is told of the timeline: by default of all of it."""
    return await ask(page, "/api/timeline", token, status, **(dict(query) | more))


def named(answer: Json) -> dict[str, Json]:
    """The single bars of an answer by the names of their Workloads; times are in seconds from now."""
    texts, columns = answer["texts"], answer["bars"]
    found: dict[str, Json] = {}
    for index, place in enumerate(columns.get("name", ())):
        if place < 0:
            continue
        at = answer["base"] + columns["at"][index] - NOW
        long = columns["long"][index]
        each = {
            "at": at,
            "to": None if long < 0 else at + long,
            "how": texts[columns["how"][index]],
            "queue": texts[columns["queue"][index]],
            "namespace": texts[columns["namespace"][index]],
            "flavors": texts[columns["flavors"][index]],
            "range": answer["ranges"].get(str(index)),
            "stop": [texts[place] for place in answer["stops"].get(str(index), ())[:4]],
        }
        if texts[place] not in found or found[texts[place]]["at"] > at:
            found[texts[place]] = each  # its first admission
    return found


def counted(answer: Json) -> int:
    """How many admissions the bars of an answer are."""
    lanes = answer["bars"].get("lane", ())
    return sum(answer["joined"].get(str(index), [1])[0] for index in range(len(lanes)))


async def test_what_ran_what_runs_and_what_is_expected() -> None:
    async with served(department()) as page:
        answer = await told(page)
    found = named(answer)
    assert [group["name"] for group in answer["groups"]] == ["a"]
    done, long = found["done"], found["long"]
    assert (done["at"], done["to"], done["how"], done["flavors"]) == (-900, -500, "succeeded", "default")
    assert (long["at"], long["to"], long["how"], long["namespace"]) == (-200, 200, "running", "team-a")
    assert found["secret"]["how"] == "forecast"
    assert found["secret"]["at"] == 200
    assert found["train-2"]["at"] == 600
    starts = [answer["base"] + each - NOW for each in found["train-2"]["range"]]
    assert starts[0] <= 600 <= starts[1]
    assert starts[2] <= found["train-2"]["to"] <= starts[3]
    forecast = answer["forecast"]
    assert (forecast["state"], forecast["whole"], forecast["told"]) == ("there", True, 20)
    assert forecast["sources"] == {"finished Jobs of its namespace": 4, "finished Jobs of its queue": 1}
    assert forecast["unknown"] == 0


async def test_an_eviction_says_for_whom_and_by_which_rule() -> None:
    async with served(busy()) as page:
        gone = named(await told(page, only="vision"))["gone"]
    assert (gone["how"], gone["to"]) == ("running", 0), "its quota is not free yet"
    assert gone["stop"] == [
        "Preempted",
        "reclaimWithinCohort: the queue takes its own quota back",
        "vision",
        "now-0",
    ]


async def test_by_namespace_and_of_some() -> None:
    async with served(busy()) as page:
        by_namespace = await told(page, by="namespace")
        some = await told(page, find="EE")
        one = await told(page, only="vision")
        none = await told(page, only="another")
    assert [group["name"] for group in by_namespace["groups"]] == ["language", "speech", "vision"]
    assert [group["name"] for group in some["groups"]] == ["speech"]
    assert {each["queue"] for each in named(one).values()} == {"vision"}
    assert (none["groups"], none["lanes"]) == ([], 0)


async def test_as_high_as_large_and_with_the_use_of_each_queue() -> None:
    async with served(busy()) as page:
        answer = await told(page, high="size", quota="1", only="vision")
    assert (answer["resource"], answer["largest"], answer["strip"]) == (GPU, 7.0, answer["head"])
    assert set(answer["bars"]["high"]) > {2, 8}
    use = answer["use"]["vision"]
    assert (use["min"], use["max"]) == (8.0, None)
    now = [amount for time, amount in use["points"] if time <= NOW][-1]
    assert now == 8.0, "three of 2, and one of 2 that is being evicted"


async def test_every_admission_in_view_is_drawn_or_counted() -> None:
    async with served(long_day(40, 3000)) as page:
        far = await told(page, width="100")
        near = await told(page, {"from": str(NOW - 2 * HOUR), "to": str(NOW), "rows": "400", "width": "2000"})
        top = await told(page, DAY | {"rows": "5"})
    assert counted(far) == far["all"]["bars"] == 3000
    assert len(far["bars"]["lane"]) < 3000
    assert counted(near) == near["all"]["bars"] < 3000
    assert near["narrow"] == 2 * HOUR / 2000
    assert max(top["bars"]["lane"]) < 5
    assert top["lanes"] == far["lanes"]


@pytest.mark.long
async def test_an_answer_is_small_however_much_there_is() -> None:
    """20,000 admissions with long names."""
    state = long_day(20, 20_000)
    for each in state.objects["workloads"]:
        each["metadata"]["name"] += "-of-a-user-that-likes-long-names"
    async with served(state) as page:
        for width in ("400", "1400", "8000"):
            answer = await told(page, DAY | {"width": width})
            assert len(answer["bars"]["lane"]) <= MOST_BARS
            assert counted(answer) == 20_000
            assert len(gzip.compress(orjson.dumps(answer))) < 150_000


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"by": "user"}, "by is queue or namespace"),
        ({"high": "tall"}, "high is uniform or size"),
        ({"from": "nan"}, "from is no number"),
        ({"to": "1e999"}, "to is no number"),
        ({"width": "wide"}, "width is no number"),
        ({"from": str(NOW), "to": str(NOW + 59)}, "to is at least 60 seconds after from"),
        ({"from": str(NOW), "to": str(NOW - 3600)}, "to is at least 60 seconds after from"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(query: dict[str, str], says: str) -> None:
    async with served(department()) as page:
        assert says in (await told(page, query, status=400))["error"]


async def test_numbers_have_bounds() -> None:
    async with served(department()) as page:
        huge = await told(page, {}, width="1e300", rows="1e300", first="1e300")
        assert (huge["rows"], huge["first"]) == (400, 10**7)
        past = await told(page, {"from": "0", "to": "3600"})
        assert (past["from"], past["to"]) == (NOW - PAST, NOW - PAST + 3600)
        whole = await told(page, {"from": "0", "to": "1e12"})
        assert (whole["from"], whole["to"]) == (whole["bounds"]["from"], whole["bounds"]["to"])
        least = await told(page, {}, width="-5", rows="-5", first="-5")
        assert (least["rows"], least["first"]) == (1, 0)


async def test_a_tenant_sees_own_bars_and_of_others_their_number() -> None:
    state = department()
    state.holds("team-b", "hidden", {"cpu": ("1", "default")}, cluster_queue="a", since=-3000)
    state.holds("team-b", "elsewhere", {"cpu": ("1", "default")}, cluster_queue="b", since=-3000)
    async with served(state) as page:
        answer = await told(page, token=TENANT)
        by_namespace = await told(page, token=TENANT, by="namespace")
        both = (answer, by_namespace)
        assert {each["namespace"] for each in named(answer).values()} == {"team-a"}
        assert [group["name"] for group in answer["groups"]] == ["a"]
        assert [group["name"] for group in by_namespace["groups"]] == ["team-a"]
        for each in both:
            for secret in ("team-b", "hidden", "elsewhere", "secret"):
                assert secret not in str(each), secret
        (name,) = answer["others"]
        others = answer["others"]["a"]
        assert name == "a"
        assert (others["counts"][0], others["counts"][-1]) == (0, 1)
        assert others["step"] >= 60
        assert others["from"] + others["step"] * len(others["counts"]) <= NOW + others["step"], "no forecast"
        assert "others" not in by_namespace
        assert answer["forecast"]["others"] is True
        assert sum(answer["forecast"]["sources"].values()) == 4, "of their own Workloads only"


@pytest.mark.parametrize("hours", [4, 24])
async def test_others_that_ran_one_after_another_are_one_at_once(hours: int) -> None:
    state = department()
    for number in range(60):
        began = -3600.0 + 30 * number
        state.holds(
            "team-b",
            f"short-{number}",
            {"cpu": ("1", "default")},
            cluster_queue="a",
            since=began,
            finished=began + (20 if number % 2 else 30),
        )
    async with served(state) as page:
        query = {"from": str(NOW - hours * HOUR), "to": str(NOW)}
        counts = (await told(page, query, TENANT))["others"]["a"]["counts"]
    assert set(counts) == {0, 1}


async def test_how_many_others_there_are_now_is_told_for_every_range() -> None:
    state, usage = department(), {"cpu": ("1", "default")}
    state.holds("team-a", "own", usage, cluster_queue="a", since=-8000)
    for number in range(3):
        name = f"over-{number}"
        state.holds("team-b", name, usage, cluster_queue="a", since=-7200, finished=-3600)
    state.holds("team-b", "runs", usage, cluster_queue="a", since=-60)
    async with served(state) as page:
        for begins, ends in ((-7000, -5000), (-7000, 0), (100, 900)):
            query = {"from": str(NOW + begins), "to": str(NOW + ends)}
            others = (await told(page, query, TENANT))["others"]["a"]
            assert others["now"] == 1
            assert max(others["counts"], default=3) == 3


moments = st.integers(0, 600).map(float)
lives = st.lists(st.tuples(moments, st.one_of(st.none(), st.integers(1, 300).map(float))), max_size=12)


@given(lives, st.integers(0, 4), st.integers(0, 8), st.sampled_from([60.0, 90.0]))
def test_at_once_is_the_most_at_one_moment_of_each_step(
    found: list[tuple[float, float | None]], first: int, count: int, step: float
) -> None:
    spans = [
        Span("u", "n", "j", "w", "q", (), (), 1, 0, 0.0, begins, None if long is None else begins + long)
        for begins, long in found
    ]

    def held(second: int) -> int:
        return sum(span.admitted <= second and (span.ended is None or second < span.ended) for span in spans)

    expected = [
        max(map(held, range(int(place * step), int((place + 1) * step))))
        for place in range(first, first + count)
    ]
    assert most_at_once(spans, first, step, count) == expected


async def test_of_a_queue_with_a_hidden_line_nothing_of_others_and_no_forecast() -> None:
    state = department()
    state.objects["clusterqueues"][0]["spec"]["visibility"] = "Namespace"
    state.holds("team-b", "hidden", {"cpu": ("1", "default")}, cluster_queue="a", since=-3000)
    async with served(state) as page:
        answer = await told(page, token=TENANT)
        assert answer["others"] == {}
        assert named(answer)["long"]["to"] is None
        assert "train-0" not in named(answer)
        assert "train-0" in named(await told(page)), "an administrator sees it"


async def test_a_rule_names_no_hidden_workload() -> None:
    state = department()
    by = {
        "namespace": "team-b",
        "name": "x",
        "message": "evicted for Workload team-b/job-secret: it owns this",
    }
    stopping(state, "team-a", "victim", {"cpu": ("1", "default")}, -100.0, by)
    async with served(state) as page:
        rule = named(await told(page, token=TENANT))["victim"]["stop"][1]
        assert rule == "evicted for a Workload of another namespace: it owns this"
        assert named(await told(page))["victim"]["stop"][1] == by["message"]


async def test_a_namespace_that_is_not_there_is_no_other_than_a_hidden_one() -> None:
    async with served(department()) as page:
        hidden = await told(page, {}, TENANT, 403, namespace="team-b")
        missing = await told(page, {}, TENANT, 403, namespace="team-x")
        assert str(hidden["error"]).replace("team-b", "team-x") == missing["error"]
        for only in ("b", "team-b", "nothing"):
            answer = await told(page, token=TENANT, only=only)
            assert (answer["groups"], answer["all"]) == ([], {"groups": 0, "bars": 0})
        own = await told(page, token=TENANT, namespace="team-a")
        assert "long" in named(own)
        one = await told(page, namespace="team-b")
        assert {each["namespace"] for each in named(one).values()} == {"team-b"}


async def test_a_hidden_preemptor_has_no_name() -> None:
    state = department()
    by = {"namespace": "team-b", "name": "preemptor-of-b", "message": "reclaimWithinCohort"}
    stopping(state, "team-a", "victim", {"cpu": ("1", "default")}, -100.0, by)
    async with served(state) as page:
        seen = named(await told(page, token=TENANT))["victim"]["stop"]
        assert seen == ["Preempted", "reclaimWithinCohort", "", ""]
        whole = named(await told(page))["victim"]["stop"]
        assert whole == ["Preempted", "reclaimWithinCohort", "team-b", "preemptor-of-b"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_come_as_they_are(name: str) -> None:
    state = department()
    state.holds("team-a", name, {"cpu": ("1", "default")}, cluster_queue="a", since=-500)
    async with served(state) as page:
        assert name in named(await told(page))
        assert (await told(page, only=name, find=name))["groups"] == []


async def test_without_time_there_is_no_forecast_and_all_else_is_there() -> None:
    async with served(department(), Allowance(0.0)) as page:
        answer = await told(page)
        assert answer["forecast"]["state"] == "none"
        assert named(answer)["long"]["to"] is None
        assert "secret" not in named(answer)


async def test_nothing_at_all_is_no_error() -> None:
    async with served(State()) as page:
        answer = await told(page, {})
        assert (answer["groups"], answer["lanes"], answer["bars"]) == ([], 0, {})
        assert (await told(page, {}, "", 401)) == {"error": "log in with a token"}
        assert (await told(page, {}, TENANT, 403))["error"].endswith("in any namespace that has some")


async def test_bars_are_put_into_lanes_once_for_all_that_see_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    make = timeline._layout

    def counted(*arguments: Any) -> Any:
        made.append(1)
        return make(*arguments)

    monkeypatch.setattr(timeline, "_layout", counted)
    async with served(department()) as page:
        await told(page, by="namespace")
        await page.stage.forecasts.made()  # so that all look at the same one
        made.clear()
        for token, by in ((TENANT, "queue"), (ADMIN, "queue"), (TENANT, "namespace")):
            tables = [await told(page, token=token, by=by, width=width) for width in ("900", "901", "902")]
            assert len({str(table["bars"]) for table in tables}) == 1
            assert ("secret" in str(tables)) == (token == ADMIN)
        assert len(made) == 3
        assert "secret" not in str(await told(page, namespace="team-a")), "a layout of its own"
        assert len(made) == 4


def test_of_many_layouts_those_that_were_asked_for_last_are_kept() -> None:
    layouts, made = timeline._Layouts(), list[int]()

    def make(number: int) -> timeline._Layout:
        made.append(number)
        return timeline._Layout([], "cpu", 0.0)

    for number in range(MOST_LAYOUTS):
        layouts.of(number, partial(make, number))
    layouts.of(0, partial(make, 0))
    layouts.of("one more", partial(make, -1))
    layouts.of(0, partial(make, 0))
    layouts.of(1, partial(make, 1))
    assert made == [*range(MOST_LAYOUTS), -1, 1]

"""What the page remembers: samples, admissions and evictions, from scenes."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.web import admissions
from admitter.web.history import KEPT_SECONDS, Course, Ending, History
from admitter.web.samples import TIERS, Key, Samples, series
from tests.insight.states import NOW, State, moment
from tests.scale import examples
from tests.web.histories import change, cluster, evicted, shown

Json = dict[str, Any]
HOUR = 3600.0


def test_use_and_quota_of_each_queue_are_sampled() -> None:
    history, state = History(), cluster("a", "b")
    shown(history, state, 0)
    state.holds("team-a", "one", {"cpu": ("2500m", "default")}, cluster_queue="a", since=10)
    shown(history, state, 20)
    use = history.use("default", "cpu")
    assert use.times == [NOW, NOW + 20]
    assert use.used == {"a": [0.0, 2.5]}, "b has used nothing"
    assert use.quota == [16.0, 16.0]
    assert history.use("default", "cpu", {"b"}).used == {}
    assert history.use("other", "cpu").quota == [None, None]
    course = history.course("a")
    assert course == Course(use.times, {("default", "cpu"): [0.0, 2.5]}, [0.0, 0.0])
    assert history.course("unknown").times == []


def test_quota_of_cohorts_counts_once() -> None:
    history, state = History(), State()
    flavors = [{"name": "default", "quota": {"min": "8"}}]
    state.put("cohorts", "all", spec={"resources": [{"name": "cpu", "flavors": flavors}]})
    state.queue("a", {"cpu": {"default": {"min": "4"}}}, "all")
    shown(history, state, 0)
    assert history.use("default", "cpu").quota == [12.0]


def test_waits_are_counted_and_ordered() -> None:
    history, state = History(), cluster("a")
    for age in range(1, 101):
        state.waits("team-a", f"job-{age}", {"cpu": "9"}, created=-age)
    state.holds("team-a", "runs", {"cpu": ("1", "default")}, cluster_queue="a")
    shown(history, state, 0)
    counts = history.counts()
    assert (counts.waiting, counts.admitted) == ([100.0], [1.0])
    assert (counts.p50, counts.p95) == ([50.0], [95.0])


def test_a_gap_shows_that_nothing_is_known() -> None:
    history, state = History(), cluster("a")
    state.holds("team-a", "one", {"cpu": ("1", "default")}, cluster_queue="a")
    for second in (0, 15, 1000, 1015):
        shown(history, state, second)
    use = history.use("default", "cpu")
    assert use.times == [NOW, NOW + 15, NOW + 30, NOW + 1000, NOW + 1015]
    assert use.used == {"a": [1.0, 1.0, None, 1.0, 1.0]}


def test_few_points_are_every_second_sample_or_less_with_the_newest() -> None:
    history, state = History(), cluster("a")
    for second in [*range(0, 150, 15), *range(1000, 1150, 15)]:
        shown(history, state, second)
    times = history.use("default", "cpu", points=5).times
    assert times == [NOW + second for second in (15, 75, 135, 150, 1015, 1075, 1135)]
    assert history.counts(since=NOW + 1100).times == [NOW + second for second in (1105, 1120, 1135)]


def test_a_queue_that_came_later_has_nothing_before() -> None:
    history = History()
    shown(history, cluster("a"), 0)
    shown(history, cluster("a", "b"), 15)
    assert history.course("b").used == {("default", "cpu"): [None, 0.0]}
    shown(history, cluster("a"), 30)
    assert history.course("b").waiting == [None, 0.0, None]


def test_what_is_closer_than_a_step_is_no_sample() -> None:
    history, state = History(), cluster("a")
    for second in (0, 1, 14.9, 15, 29, 30):
        shown(history, state, second)
    assert history.use("default", "cpu").times == [NOW, NOW + 15, NOW + 30]


def test_old_samples_get_coarser_and_then_go() -> None:
    samples, key = Samples(), ("a", "default", "cpu")
    for number in range(int(30 * HOUR / 15)):
        samples.add(NOW + 15 * number, {key: float(number)})
    now = NOW + 30 * HOUR - 15
    rows = list(samples)
    assert all(earlier.time < later.time for earlier, later in pairwise(rows))
    for row in rows:
        oldest = next(keep for step, keep in TIERS if step == row.step)
        assert now - row.time <= oldest + 300, "none is older than its step gets"
        count = row.step / 15
        first = (row.time - NOW) / 15
        assert row.values[0] == first + (count - 1) / 2, "the mean of what it was made of"
    assert {row.step for row in rows} == {15.0, 60.0, 300.0}
    assert len(rows) <= 245 + 301 + 217


def test_the_clock_may_be_set_back() -> None:
    history, state = History(), cluster("a")
    for second in (0, 15, HOUR / 2, 30):
        shown(history, state, second)
    assert history.use("default", "cpu").times == [NOW, NOW + 15, NOW + 30]


amounts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 100).map(float), max_size=3)
steps = st.lists(st.tuples(st.integers(-7200, 40_000), amounts), max_size=60)


@settings(max_examples=examples(100))
@given(steps)
def test_samples_are_bounded_ordered_and_add_up_for_any_scenes(
    taken: list[tuple[int, dict[str, float]]],
) -> None:
    samples, time = Samples(), NOW
    most = 0.0
    for seconds, used in taken:
        time += seconds
        found: dict[Key, float] = {(queue, "f", "cpu"): each for queue, each in used.items()}
        found["", "f", "cpu"] = sum(used.values())
        most = max(most, *found.values())
        samples.add(time, found)
        rows = list(samples)
        assert all(earlier.time < later.time for earlier, later in pairwise(rows))
        assert rows[-1].time <= time
        assert rows[0].time >= rows[-1].time - KEPT_SECONDS - TIERS[-1][0]
        for step, keep in TIERS:
            assert sum(row.step == step for row in rows) <= keep / step + TIERS[-1][0] / step + 1
        for row in rows:
            values = dict(zip(row.keys, row.values, strict=True))
            total = values.pop(("", "f", "cpu"))
            assert abs(sum(values.values()) - total) < 1e-6, "what queues use is what all use"
            assert 0 <= total <= most
    times, found_series = series(samples, lambda _: True)
    assert all(len(each) == len(times) for each in found_series.values())
    assert times == sorted(times)


@settings(max_examples=examples(50))
@given(st.lists(st.floats(0, 100), min_size=1, max_size=900))
def test_over_time_the_sum_is_kept_when_samples_get_coarser(values: list[float]) -> None:
    """Each sample stands for its step, as long as there is one in each 15 s."""
    samples, start = Samples(), NOW - NOW % 300
    for number, value in enumerate(values):
        samples.add(start + 15 * number, {("", "f", "cpu"): value})
    held = sum(row.values[0] * row.step for row in samples)
    assert abs(held - 15 * sum(values)) < 1e-6 * max(1.0, held)


def test_an_admission_is_a_span_from_its_status() -> None:
    history, state = History(), cluster("a")
    made = state.holds(
        "team-a", "one", {"cpu": ("2", "default")}, cluster_queue="a", since=-100, created=-160, priority=5
    )
    shown(history, state, 0)
    (span,) = history.spans(NOW - HOUR)
    assert (span.namespace, span.name, span.workload, span.queue) == ("team-a", "one", "one", "a")
    assert (span.flavors, span.usage, span.pods) == (("default",), (("default", "cpu", 2.0),), 1)
    assert (span.queued, span.admitted, span.waited) == (NOW - 160, NOW - 100, 60)
    assert (span.ended, span.how, span.priority) == (None, Ending.RUNNING, 5)
    over = {"type": "Finished", "status": "True", "reason": "JobFailed", "lastTransitionTime": moment(50)}
    change(made, {"state": "Finished", "conditions": [*made["status"]["conditions"], over]})
    shown(history, state, 60)
    (span,) = history.spans_of("team-a", "one")
    assert (span.ended, span.how, span.reason) == (NOW + 50, Ending.FAILED, "JobFailed")
    assert history.spans(NOW + 51) == []


def test_what_ended_before_the_page_began_is_known_by_its_status() -> None:
    history, state = History(), cluster("a")
    for name, finished in (("new", -500.0), ("old", -25 * HOUR)):
        state.holds(
            "team-a",
            name,
            {"cpu": ("1", "default")},
            cluster_queue="a",
            since=finished - 60,
            finished=finished,
        )
    shown(history, state, 0)
    (span,) = history.spans(0)
    assert (span.name, span.ended, span.how) == ("new", NOW - 500, Ending.SUCCEEDED)


def test_a_preempted_workload_has_a_span_an_eviction_and_a_second_span() -> None:
    history, state = History(), cluster("a")
    state.waits("team-a", "urgent", {"cpu": "8"})
    made = state.holds("team-a", "victim", {"cpu": ("8", "default")}, cluster_queue="a", since=-100)
    shown(history, state, 0)
    by = {"namespace": "team-a", "name": "urgent", "message": "priority 5 is higher than 0"}
    reserved = made["status"]["conditions"][0]
    status = evicted(20, by=by)
    change(made, status | {"conditions": [reserved, status["conditions"][1]]})
    shown(history, state, 25)
    (eviction,) = history.evictions(NOW)
    assert (eviction.time, eviction.name, eviction.queue, eviction.reason) == (
        NOW + 20,
        "victim",
        "a",
        "Preempted",
    )
    assert (eviction.for_namespace, eviction.for_name) == ("team-a", "urgent")
    assert eviction.rule == "priority 5 is higher than 0"
    (span,) = history.spans(NOW)
    assert (span.ended, span.evicted) == (None, NOW + 20), "it holds its quota until its pods are gone"
    change(made, evicted(20, released=40, by=by), drop=("admission",))
    shown(history, state, 45)
    (span,) = history.spans(NOW)
    assert (span.ended, span.how, span.reason) == (NOW + 40, Ending.EVICTED, "Preempted")
    again = state.holds("team-a", "x", {"cpu": ("8", "default")}, cluster_queue="a", since=70)["status"]
    state.objects["workloads"].pop()
    change(made, again, drop=("preemption", "reason"))
    shown(history, state, 75)
    first, second = history.spans(NOW)
    assert (first.key, second.key) == (
        (made["metadata"]["uid"], NOW - 100),
        (made["metadata"]["uid"], NOW + 70),
    )
    assert (second.queued, second.waited, second.ended) == (NOW + 40, 30, None)
    assert len(history.evictions_of("team-a", "victim")) == 1


def test_an_admission_that_was_missed_ends_where_the_next_begins() -> None:
    history, state = History(), cluster("a")
    made = state.holds("team-a", "one", {"cpu": ("1", "default")}, cluster_queue="a", since=-100)
    shown(history, state, 0)
    later = state.holds("team-a", "x", {"cpu": ("1", "default")}, cluster_queue="a", since=200)["status"]
    state.objects["workloads"].pop()
    change(made, later)
    shown(history, state, 210)
    first, second = history.spans(NOW)
    assert (first.ended, first.how) == (NOW + 200, Ending.UNKNOWN)
    assert second.ended is None


def test_what_is_deleted_ends_then() -> None:
    history, state = History(), cluster("a")
    state.holds("team-a", "one", {"cpu": ("1", "default")}, cluster_queue="a", since=-100)
    shown(history, state, 0)
    state.objects["workloads"].clear()
    shown(history, state, 5)
    (span,) = history.spans(NOW)
    assert (span.ended, span.how) == (NOW + 5, Ending.DELETED)


def test_how_it_ended_is_told_for_each_reason() -> None:
    history, state = History(), cluster("a")
    expected = {
        "JobSucceeded": Ending.SUCCEEDED,
        "JobFailed": Ending.FAILED,
        "Evicted": Ending.EVICTED,
        "MaxRuntimeExceeded": Ending.OUT_OF_TIME,
        "SomethingNew": Ending.UNKNOWN,
    }
    for reason in expected:
        made = state.holds(
            "team-a", reason.lower(), {"cpu": ("1", "default")}, cluster_queue="a", since=-90, finished=-5
        )
        made["status"]["conditions"][-1]["reason"] = reason
    shown(history, state, 0)
    assert {span.reason: span.how for span in history.spans(0)} == expected


def test_others_have_no_names() -> None:
    history, state = History(), cluster("a")
    state.namespace("team-b", "a")
    for team in ("team-a", "team-b"):
        made = state.holds(team, f"of-{team}", {"cpu": ("1", "default")}, cluster_queue="a", since=-100)
        by = {"namespace": "team-b", "name": "secret", "message": "why"}
        change(made, evicted(-10, released=-5, by=by), drop=("admission",))
    shown(history, state, 0)

    def sees(namespace: str) -> bool:
        return namespace == "team-a"

    (own,) = history.evictions(0, sees=sees)
    assert (own.name, own.for_namespace, own.for_name, own.rule) == ("of-team-a", "", "", "why")
    assert len(history.evictions(0)) == 2


def test_many_spans_and_evictions_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(admissions, "MOST_SPANS", 10)
    monkeypatch.setattr(admissions, "MOST_EVICTIONS", 5)
    history, state = History(), cluster("a")
    for number in range(30):
        finished = -1000 + 10.0 * number
        made = state.holds(
            "team-a",
            f"job-{number}",
            {"cpu": ("1", "default")},
            cluster_queue="a",
            since=-2000,
            finished=finished,
        )
        made["status"]["conditions"].append(evicted(finished)["conditions"][1])
    shown(history, state, 0)
    assert [span.name for span in history.spans(0)] == [f"job-{number}" for number in range(20, 30)]
    assert len(history.evictions(0)) == 5
    shown(history, state, 1)
    assert len(history.spans(0)) == 10, "what was dropped does not come back"


def test_one_namespace_does_not_push_out_what_others_had(monkeypatch: Any) -> None:
    monkeypatch.setattr(admissions, "MOST_SPANS", 10)
    history, state = History(), cluster("a", "b")
    state.holds("team-a", "night", {"cpu": ("4", "default")}, cluster_queue="a", since=-9000, finished=-3000)
    for number in range(40):
        name, ended = f"short-{number}", -2000 + 10.0 * number
        state.holds(
            "team-b", name, {"cpu": ("1", "default")}, cluster_queue="b", since=ended - 60, finished=ended
        )
    shown(history, state, 0)
    names = [span.name for span in history.spans(0)]
    assert names == ["night", *(f"short-{number}" for number in range(31, 40))]


def test_a_day_later_it_is_forgotten() -> None:
    history, state = History(), cluster("a")
    state.holds("team-a", "one", {"cpu": ("1", "default")}, cluster_queue="a", since=-100, finished=-50)
    shown(history, state, 0)
    assert len(history.spans(0)) == 1
    shown(history, cluster("a"), KEPT_SECONDS + 600)
    assert history.spans(0) == []
    assert len(history.use("default", "cpu").times) == 1


def test_sparks_are_small_and_of_the_scarcest_resource() -> None:
    history, state = History(), State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}, "memory": {"default": {"min": "64Gi"}}})
    state.namespace("team-a", "a")
    for second in range(0, 1801, 15):
        shown(history, state, second)
    state.holds("team-a", "one", {"cpu": ("6", "default")}, cluster_queue="a", since=1810)
    shown(history, state, 1815)
    (spark,) = history.sparks(12).values()
    assert (spark.flavor, spark.resource, spark.quota, spark.seconds) == ("default", "cpu", 8.0, 1800.0)
    assert spark.used == [None] * 10 + [0.0, 6.0]
    assert list(history.sparks(12)) == ["a"]

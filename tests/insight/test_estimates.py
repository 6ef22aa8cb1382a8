"""When Workloads start: runtimes that are known, and the future that follows from them."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from admitter.cache.views import parse_job
from admitter.insight.explain.text import short, start
from admitter.insight.forecast.durations import LONGER, POINTS, Durations, Runtimes, RuntimeSource, likely
from admitter.insight.forecast.estimates import Estimate, Estimator
from admitter.insight.report import estimate_json
from admitter.insight.snapshot_file import facts
from admitter.names import API_VERSION, SIMULATED_RUNTIME_ANNOTATION
from admitter.policy.snapshot import Snapshot
from admitter.simulate.manifests import Change
from tests.insight.states import NOW, State, moment


@pytest.fixture
def state() -> State:
    """One queue of four CPUs, of which all are in use."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="total", since=-60)
    return state


def finished(state: State, *runtimes: float, cpus: str = "4", namespace: str = "a") -> None:
    """Workloads that have taken so long."""
    for number, runtime in enumerate(runtimes):
        name = f"took-{cpus}-{number}"
        usage = {"cpu": (cpus, "default")}
        state.holds(namespace, name, usage, cluster_queue="total", since=-9000, finished=-9000 + runtime)


def estimated(state: State, *names: str, expected: Sequence[Change] | None = None) -> list[Estimate]:
    known = facts(state.snapshot())
    picture = Snapshot(known)
    views = [picture.find("a", name) for name in names]
    found = Estimator(known, picture, expected=expected).of([view for view in views if view is not None])
    return [found[view.uid] for view in views if view is not None]


def runtimes(state: State, name: str) -> Runtimes | None:
    picture = Snapshot(facts(state.snapshot()))
    view = picture.find("a", name)
    assert view is not None
    return Durations(picture).of(view)


def test_what_a_job_says_goes_before_all_else(state: State) -> None:
    finished(state, 100, 200, 300)
    state.waits("a", "says", {"cpu": "4"}, annotations={"admitter.dev/expected-runtime": "90s"})
    said = runtimes(state, "says")
    assert said == Runtimes(RuntimeSource.SAID, (90.0,), unproven=True, otherwise=(100.0, 200.0, 300.0))


def test_an_annotation_that_is_no_duration_says_nothing(state: State) -> None:
    state.waits("a", "says", {"cpu": "4"}, annotations={"admitter.dev/expected-runtime": "soon"})
    assert runtimes(state, "says") is None


def test_three_finished_ones_like_it_tell_more_than_its_deadline_and_no_more_than_that(state: State) -> None:
    finished(state, 300, 100, 200, 900)
    state.waits("a", "waits", {"cpu": "4"}, spec={"activeDeadlineSeconds": 400})
    known = runtimes(state, "waits")
    assert known is not None
    assert known.seconds == (100.0, 200.0, 300.0)


def test_with_two_the_deadline_counts(state: State) -> None:
    finished(state, 300, 100)
    state.waits("a", "waits", {"cpu": "4"}, spec={"activeDeadlineSeconds": 400})
    assert runtimes(state, "waits") == Runtimes(RuntimeSource.DEADLINE, (400.0,))


def test_those_elsewhere_that_ask_for_the_same_tell_more_than_other_jobs_of_its_namespace(
    state: State,
) -> None:
    state.namespace("b", "total")
    finished(state, 1, 2, 3, cpus="1")
    finished(state, 300, 100, 200, namespace="b")
    state.waits("a", "waits", {"cpu": "4"}, spec={"activeDeadlineSeconds": 250})
    state.waits("a", "other", {"cpu": "2"})
    with_deadline = runtimes(state, "waits")
    assert with_deadline == Runtimes(RuntimeSource.DEADLINE, (250.0,)), "two are within it"
    state.waits("a", "waits", {"cpu": "4"})
    assert runtimes(state, "waits") == Runtimes(RuntimeSource.REQUESTS, (100.0, 200.0, 300.0))
    other = runtimes(state, "other")
    assert other is not None
    assert other.source is RuntimeSource.NAMESPACE


def test_without_its_like_its_namespace_tells_then_its_queue(state: State) -> None:
    finished(state, 100, 200, 300, cpus="1")
    state.waits("a", "waits", {"cpu": "4"})
    assert runtimes(state, "waits") == Runtimes(RuntimeSource.NAMESPACE, (100.0, 200.0, 300.0))


def test_one_that_has_run_for_long_takes_longer_than_those_that_took_less() -> None:
    known = Runtimes(RuntimeSource.SHAPE, (100.0, 200.0, 300.0))
    assert {known.draw(Random(seed), 250) for seed in range(9)} == {300.0}
    assert known.middle(150) == 300.0
    assert known.middle(400) > 400, "longer than all before it: it ends soon"
    assert all(known.draw(Random(seed), 400) > 400 for seed in range(9))


def test_those_that_still_run_take_longer_than_so_far() -> None:
    """Of four, two ended after 10 and 20, one has run for 15: half of what is left at 15 ends at 20."""
    found = likely([10.0, 20.0, 40.0], [15.0])
    assert Counter(found) == {10.0: POINTS / 4, 20.0: POINTS * 3 / 8, 40.0: POINTS * 3 / 8}
    assert list(found) == sorted(found)


def test_a_workload_that_outlasts_all_that_have_ended_takes_a_little_longer() -> None:
    found = likely([10.0, 20.0, 30.0], [25.0, 50.0, 50.0])
    # 1/6, then 1/5 and at 30 one in three of the rest end; two thirds of it, 4/9, go on beyond 50.
    assert Counter(found)[50.0 * LONGER] == round(POINTS * 4 / 9)


def test_those_that_have_just_begun_tell_nothing() -> None:
    assert likely([10.0, 20.0, 30.0], [1.0, 9.0, 10.0]) == (10.0, 20.0, 30.0)


def test_what_runs_is_reckoned_with(state: State) -> None:
    finished(state, 10, 20, 30)
    state.waits("a", "waits", {"cpu": "4"})
    known = runtimes(state, "waits")
    assert known is not None
    assert known.seconds[-1] == 60 * LONGER, "one of it has run for a minute"
    assert Counter(known.seconds)[60 * LONGER] == POINTS / 4


def test_the_next_starts_when_the_first_is_expected_to_end(state: State) -> None:
    finished(state, 160, 160, 160)
    state.waits("a", "second", {"cpu": "4"}, created=-20)
    state.waits("a", "third", {"cpu": "4"}, created=-10)
    second, third = estimated(state, "second", "third")
    assert (second.earliest, second.median, second.latest) == (100.0, 100.0, 100.0)
    assert (third.earliest, third.median, third.latest) == (260.0, 260.0, 260.0)
    assert second.sources == (RuntimeSource.SHAPE,)


def test_what_varied_gives_a_range(state: State) -> None:
    finished(state, *range(100, 1100, 100))
    state.waits("a", "second", {"cpu": "4"})
    (second,) = estimated(state, "second")
    assert second.earliest is not None
    assert second.median is not None
    assert second.latest is not None
    assert 40 <= second.earliest < second.median < second.latest <= 940
    assert estimated(state, "second") == [second], "the same state, the same answer"


def test_the_end_of_a_workload_of_which_nothing_is_known_is_unknown(state: State) -> None:
    state.waits("a", "second", {"cpu": "4"})
    (second,) = estimated(state, "second")
    assert (second.earliest, second.median, second.latest, second.unknown) == (None, None, None, 2)


def test_a_workload_of_which_nothing_is_known_ends_at_its_deadline(state: State) -> None:
    asks = {"admitter.dev/max-runtime": "5m"}
    state.waits("a", "second", {"cpu": "4"}, annotations=asks)
    state.waits("a", "third", {"cpu": "4"}, created=10, annotations=asks)
    for workload in state.objects["workloads"]:
        workload["status"]["runTime"] = {"deadline": moment(90)}
    second, third = estimated(state, "second", "third")
    assert (second.earliest, second.median, second.latest, second.unknown) == (90, 90, 90, 0)
    assert third.median == 390


def test_no_estimate_is_beyond_a_deadline(state: State) -> None:
    """Others like it took ten minutes and more, and its time is over in one."""
    finished(state, *range(600, 1600, 100))
    for workload in state.objects["workloads"]:
        if workload["status"]["state"] == "Admitted":
            workload["status"]["runTime"] = {"deadline": moment(60)}
    state.waits("a", "second", {"cpu": "4"})
    (second,) = estimated(state, "second")
    assert (second.earliest, second.latest) == (60, 60)


def test_other_trees_make_no_difference(state: State) -> None:
    finished(state, 160, 160, 160)
    state.waits("a", "second", {"cpu": "4"})
    alone = estimated(state, "second")
    state.queue("other", {"cpu": {"default": {"min": "4"}}})
    state.namespace("b", "other")
    state.holds("b", "endless", {"cpu": ("4", "default")}, cluster_queue="other")
    for number in range(5):
        state.waits("b", f"waits-{number}", {"cpu": "4"})
    assert estimated(state, "second") == alone


def keep_coming(state: State, priority_class: str, cpus: str = "4") -> None:
    """Workloads that come every minute, and take all of the queue, or some of it, for seventy seconds."""
    value = {"normal": 0, "high": 1000}[priority_class]
    state.put("priorityclasses", priority_class, value=value)
    for number in range(20):
        at = -1230.0 + 60 * number
        made = state.holds(
            "a",
            f"took-{number}",
            {"cpu": (cpus, "default")},
            cluster_queue="total",
            priority=value,
            created=at,
            since=at,
            finished=at + 70,
        )
        made["spec"]["priorityClassName"] = priority_class


def test_newcomers_that_go_first_move_the_end_of_the_range_alone(state: State) -> None:
    keep_coming(state, "high")
    state.waits("a", "second", {"cpu": "4"})
    (second,) = estimated(state, "second")
    (told,) = estimated(state, "second", expected=())
    assert (told.earliest, told.median, told.latest) == (10.0, 10.0, 10.0)
    assert (second.earliest, second.median) == (10.0, 10.0)
    assert second.latest is not None
    assert second.latest > 1200, "in half of all futures they go on for longer than the twenty minutes so far"
    assert (second.coming, told.coming) == (True, False)
    assert estimate_json(second, NOW)["coming"] is True
    assert start(told) == "in 10 s with 90% confidence, by finished Jobs like it"
    assert short(told) == "in 10 s", "one number, and no range"
    assert re.fullmatch(
        "in 10 s if no more Jobs come; between in 10 s and in .* min .* with 90% confidence "
        "if they keep coming as they did, by finished Jobs like it",
        start(second),
    )
    assert short(second).startswith("in 10 s (10 s to ")


def test_newcomers_that_queue_up_behind_it_make_no_difference(state: State) -> None:
    keep_coming(state, "normal")
    state.waits("a", "second", {"cpu": "4"})
    assert estimated(state, "second")[0].latest == estimated(state, "second", expected=())[0].latest


def test_smaller_ones_that_keep_coming_pass_where_the_order_is_best_effort() -> None:
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    finished(state, 95, 95, 95, cpus="3")
    state.holds("a", "runs", {"cpu": ("3", "default")}, cluster_queue="total", since=-60)
    for at in range(-1200, 0, 10):
        usage = {"cpu": ("1", "default")}
        name = f"small{at}"
        state.holds("a", name, usage, cluster_queue="total", created=at, since=at, finished=at + 12)
    state.waits("a", "second", {"cpu": "4"})
    (second,) = estimated(state, "second")
    (told,) = estimated(state, "second", expected=())
    assert (second.median, told.median, told.latest) == (35.0, 35.0, 35.0)
    assert second.latest is not None
    assert second.latest > 600, "the next small one comes before the last has ended"
    assert second.coming


def test_an_end_that_is_unknown_with_newcomers_is_told_so() -> None:
    second = Estimate(600.0, 600.0, None, (), unknown=1, coming=True)
    assert start(second).endswith("in 10 min if no more Jobs come, or later if they keep coming as they did")
    assert start(replace(second, coming=False)) == "not before in 10 min, probably in 10 min, or later"


def test_a_workload_that_starts_in_no_playout_with_newcomers_is_not_told_as_if_they_made_no_difference() -> (
    None
):
    """A Workload of unknown runtime gets in beside them, and stays."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "20"}}})
    state.namespace("a", "total")
    state.put("priorityclasses", "high", value=1000)
    for at in range(-1000, 0, 50):
        told = {"admitter.dev/expected-runtime": f"{2000 - at}s"}
        job = state.waits("a", f"job{at}", {"cpu": "1"}, priority="high", created=at, annotations=told)
        job["spec"]["suspend"] = False
        usage = {"cpu": ("1", "default")}
        name = parse_job(job).workload
        made = state.holds("a", name, usage, cluster_queue="total", priority=1000, since=at, created=at)
        made["spec"]["priorityClassName"] = "high"
        owner = {"kind": "Job", "name": f"job{at}", "uid": job["metadata"]["uid"], "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
    minute = {"admitter.dev/expected-runtime": "60s"}
    state.waits("a", "second", {"cpu": "20"}, created=-10, annotations=minute)
    state.waits("a", "endless", {"cpu": "1"}, created=-5)
    (told_so,) = estimated(state, "second", expected=())
    (second,) = estimated(state, "second")
    assert (told_so.median, told_so.latest, told_so.coming) == (2000.0, 2000.0, False)
    assert (second.median, second.latest, second.coming) == (2000.0, None, True)


def test_an_expected_workload_is_reckoned_with_in_every_playout(state: State) -> None:
    finished(state, 160, 160, 160)
    state.waits("a", "second", {"cpu": "4"})
    state.put("priorityclasses", "high", value=1)
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "4"}}
    spec = {"queueName": "main", "priority": 1, "priorityClassName": "high", "podSets": [pod_set]}
    metadata = {"name": "first", "namespace": "a", "annotations": {SIMULATED_RUNTIME_ANNOTATION: "7s"}}
    workload = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}
    (second,) = estimated(state, "second", expected=(Change(NOW + 50, 0, workload),))
    assert (second.earliest, second.median, second.latest) == (107.0, 107.0, 107.0)

"""What Jobs say of their own runtime: what it is worth, and that it breaks no answer about another one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from admitter.cache.views import parse_job
from admitter.insight.explain.text import short, start
from admitter.insight.forecast.durations import Durations, Runtimes, RuntimeSource
from admitter.insight.forecast.estimates import Estimate, Estimator
from admitter.insight.forecast.runtime_words import LONGEST
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.asking import Desk
from tests.insight.states import Json, State

WORD = "admitter.dev/expected-runtime"
YEAR = 365 * 86_400
FALSE: Mapping[str, str] = {
    "9" * 5000: "is too long for a duration",
    "9" * 60 + "d": "is longer than 1000 years",
    "365001d": "is longer than 1000 years",
    "1e999": "is not a duration",
    "nan": "is not a duration",
    "-5m": "is not a duration",
    "٣m": "is not a duration",
    "soon \x1b[31m\u202e": "is not a duration",
    "0.0s": "is no time at all",
    "": "is not a duration",
}
"""What is no word, and why."""


@pytest.fixture
def state() -> State:
    """A queue of four CPUs for two namespaces."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    for name in ("a", "b"):
        state.namespace(name, "total")
    return state


def told(state: State, name: str, namespace: str = "a") -> Runtimes | None:
    """What is known of a Job's runtime."""
    picture = Snapshot(facts(state.snapshot()))
    view = picture.find(namespace, name)
    assert view is not None
    return Durations(picture).of(view)


def estimate(state: State, name: str, namespace: str) -> Estimate:
    known = facts(state.snapshot())
    picture = Snapshot(known)
    view = picture.find(namespace, name)
    assert view is not None
    return Estimator(known, picture).of([view])[view.uid]


def had_begun(
    state: State, name: str, word: str, *, since: float, finished: float | None = None, **holds: Any
) -> None:
    """A Job of namespace `a` that says how long it runs, and its Workload that was admitted."""
    namespace = holds.pop("namespace", "a")
    job = state.waits(namespace, name, {"cpu": "4"}, annotations={WORD: word}, created=since)
    job["spec"]["suspend"] = False
    usage = {"cpu": ("4", "default")}
    made = state.holds(
        namespace,
        parse_job(job).workload,
        usage,
        cluster_queue="total",
        since=since,
        finished=finished,
        **holds,
    )
    owner = {"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    if finished is not None:
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}


def past(state: State, said: str, *took: float, namespace: str = "a") -> None:
    """Jobs that said the same, and what they took."""
    for number, seconds in enumerate(took):
        since = -90_000.0 + number
        name = f"past-{said}-{number}"
        had_begun(state, name, said, since=since, finished=since + seconds, namespace=namespace)


def word(text: str, **spec: Any) -> Json:
    return {"annotations": {WORD: text}, "spec": spec}


@pytest.mark.parametrize("text", FALSE, ids=lambda text: ascii(text[:12]))
def test_what_is_no_duration_is_as_if_it_were_absent_and_its_own_answer_says_why(
    state: State, tmp_path: Path, text: str
) -> None:
    had_begun(state, "runs", "1h", since=-60, namespace="b")
    state.waits("b", "other", {"cpu": "4"}, created=-30, annotations={WORD: "5m"})
    state.waits("a", "says", {"cpu": "4"}, created=-20)
    without = [Desk(state, tmp_path).explain("other", "b"), told(state, "says")]
    state.objects["jobs"][-1]["metadata"]["annotations"][WORD] = text
    desk = Desk(state, tmp_path)
    assert [desk.explain("other", "b"), told(state, "says")] == without
    (hint,) = desk.explain("says")["hints"]
    assert hint.startswith(f"annotation {WORD} is not taken: ")
    assert FALSE[text] in hint
    assert len(hint) < 200
    assert desk.tell("says")[2].startswith(f"  hint: annotation {WORD} is not taken: ")


def test_no_more_is_kept_of_a_text_than_tells_that_it_is_too_long(state: State) -> None:
    job = state.waits("a", "says", {"cpu": "4"}, annotations={WORD: "  " + "9" * 200_000})
    assert len(parse_job(job).spec["expected"]) < 100


def test_a_deadline_beyond_all_reckoning_tells_nothing(state: State, tmp_path: Path) -> None:
    """Kubernetes takes any number of 64 bits; no moment of the calendar is that late."""
    had_begun(state, "runs", "1h", since=-60)
    state.waits("a", "endless", {"cpu": "4"}, created=-30, spec={"activeDeadlineSeconds": 2**63 - 1})
    state.waits("b", "other", {"cpu": "4"}, created=-20)
    assert told(state, "endless") is None
    answer = Desk(state, tmp_path).explain("other", "b")
    assert (answer["start"]["median"], answer["start"]["unknown"]) == (None, 2)


def test_a_start_later_than_the_calendar_is_its_last_moment(state: State, tmp_path: Path) -> None:
    """Nine Jobs, one after the other, that each say a thousand years."""
    for number in range(9):
        state.waits("a", f"endless-{number}", {"cpu": "4"}, created=number, **word("365000d"))
    state.waits("b", "other", {"cpu": "4"}, created=60)
    desk = Desk(state, tmp_path)
    assert desk.explain("other", "b")["start"]["median"] == "9999-12-31T23:59:59Z"
    assert "in 3285000 d" in desk.tell("other", "b")[-1]
    more = {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "LocalQueue",
        "metadata": {"name": "more", "namespace": "b"},
        "spec": {"clusterQueue": "total"},
    }
    assert desk.what_if(more)["starts"] == []
    (shift,) = desk.what_if(options=("--without", "LocalQueue/b/main"))["workloads"]
    assert shift["name"] == "other"


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({"activeDeadlineSeconds": 60}, 60.0),
        ({"activeDeadlineSeconds": 600}, 90.0),
        ({"activeDeadlineSeconds": "soon"}, 90.0),
    ],
)
def test_a_word_is_worth_no_more_than_the_deadline(state: State, spec: Json, seconds: float) -> None:
    state.waits("a", "says", {"cpu": "4"}, **word("90s", **spec))
    found = told(state, "says")
    assert found is not None
    assert (found.source, found.seconds, found.unproven) == (RuntimeSource.SAID, (seconds,), True)


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({"backoffLimit": 0}, 10.0),
        ({"backoffLimit": 2}, 30.0),
        ({}, 70.0),
        ({"backoffLimit": 0, "completions": 5, "parallelism": 2}, 30.0),
        ({"backoffLimit": 2**31 - 1}, 90.0),
    ],
)
def test_the_deadline_of_pods_counts_once_for_each_round_of_them(
    state: State, spec: Json, seconds: float
) -> None:
    job = state.waits("a", "says", {"cpu": "4"}, **word("90s", **spec))
    job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = 10
    found = told(state, "says")
    assert found is not None
    assert found.seconds == (seconds,)


def test_words_are_worth_what_earlier_ones_of_their_owner_came_to(state: State) -> None:
    past(state, "1h", 60, 72, 108)
    state.waits("a", "says", {"cpu": "4"}, **word("2h"))
    state.waits("b", "says", {"cpu": "4"}, **word("2h"))
    assert told(state, "says") == Runtimes(RuntimeSource.SAID, (120.0, 144.0, 216.0))
    other = told(state, "says", "b")
    assert other is not None
    assert (other.seconds, other.unproven) == ((7200.0,), True), "those of a tell nothing of b"
    assert other.otherwise == (60.0, 72.0, 108.0), "but they ask for the same"


def test_two_tell_too_little(state: State) -> None:
    past(state, "1h", 60, 72)
    state.waits("a", "says", {"cpu": "4"}, **word("2h"))
    assert told(state, "says") == Runtimes(RuntimeSource.SAID, (7200.0,), unproven=True)


def test_those_that_still_run_bear_out_that_it_takes_longer(state: State) -> None:
    past(state, "60s", 6, 12, 600)
    had_begun(state, "runs", "60s", since=-300)
    state.waits("a", "says", {"cpu": "4"}, **word("100s"))
    found = told(state, "says")
    assert found is not None
    # Two of four have ended before the fifth part of their time; the one that runs is at five times.
    assert found.seconds.count(1000.0) == len(found.seconds) / 2


def test_few_seconds_bear_out_no_year(state: State) -> None:
    past(state, "1s", 1, 1, 1)
    state.waits("a", "soon", {"cpu": "4"}, **word("20s"))
    state.waits("a", "late", {"cpu": "4"}, **word("365d"))
    soon, late = told(state, "soon"), told(state, "late")
    assert soon == Runtimes(RuntimeSource.SAID, (20.0, 20.0, 20.0))
    assert late == Runtimes(RuntimeSource.SAID, (YEAR,), unproven=True, otherwise=(1.0, 1.0, 1.0))


def test_what_comes_of_a_word_is_bounded_too(state: State) -> None:
    past(state, "1s", 80_000, 80_000, 80_000)
    state.waits("a", "says", {"cpu": "4"}, **word("20s", activeDeadlineSeconds=100_000))
    state.waits("a", "ever", {"cpu": "4"}, **word("90s"))
    found = told(state, "says")
    assert found is not None
    assert found.seconds == (100_000.0,) * 3
    past(state, "300000d", 80_000, 80_000, 80_000)
    state.waits("a", "late", {"cpu": "4"}, **word("365000d"))
    late = told(state, "late")
    assert late is not None
    assert late.seconds[-1] <= LONGEST


@pytest.mark.parametrize("lie", ["365000d", "1ms"])
def test_a_lie_moves_the_estimates_of_others_no_further_than_the_range_says(state: State, lie: str) -> None:
    """Finished Jobs that ask for the same took ten minutes; one that has just begun says something else."""
    for number in range(3):
        usage = {"cpu": ("4", "default")}
        state.holds("b", f"took-{number}", usage, cluster_queue="total", since=-9000, finished=-9000 + 600)
    had_begun(state, "liar", "10m", since=-60)
    job = state.objects["jobs"][-1]
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    del job["metadata"]["annotations"][WORD]
    honest = estimate(state, "other", "b")
    assert (honest.earliest, honest.median, honest.latest, honest.unproven) == (540.0, 540.0, 540.0, 0)
    job["metadata"]["annotations"][WORD] = lie
    found = estimate(state, "other", "b")
    assert found.earliest is not None
    assert found.latest is not None
    assert found.earliest <= 540.0 <= found.latest
    assert found.unproven == 1
    assert start(found).endswith("; rests on what 1 Workload of other namespaces says of itself")
    assert short(found).endswith(", by unproven words)")


def test_an_owner_with_three_false_statements_misleads_others_no_more(state: State) -> None:
    past(state, "30d", 600, 600, 600)
    had_begun(state, "liar", "30d", since=-60)
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    found = estimate(state, "other", "b")
    assert (found.earliest, found.latest, found.unproven) == (540.0, 540.0, 0)


def test_a_true_word_is_the_median_also_while_it_is_unproven(state: State) -> None:
    for number in range(3):
        usage = {"cpu": ("4", "default")}
        state.holds("b", f"took-{number}", usage, cluster_queue="total", since=-9000, finished=-8990)
    had_begun(state, "honest", "10m", since=-60)
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    assert estimate(state, "other", "b").median == 540.0


def test_one_that_is_past_its_word_takes_a_little_longer(state: State) -> None:
    had_begun(state, "late", "10s", since=-600)
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    found = estimate(state, "other", "b")
    assert found.latest is not None
    assert 0 < found.latest <= 61 + 1


def test_an_answer_says_which_ends_are_known_by_a_stated_runtime_only(state: State, tmp_path: Path) -> None:
    had_begun(state, "runs", "10m", since=-60)
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    desk = Desk(state, tmp_path)
    answer = desk.explain("other", "b")
    assert (answer["wouldLetIn"][0]["unproven"], answer["start"]["unprovenWords"]) == (True, 1)
    lines = desk.tell("other", "b")
    assert "  a/runs, priority 0, expected to end in 9 min by its own word; not evicted" in "\n".join(lines)
    assert lines[-1].endswith(
        "by its annotation; rests on what 1 Workload of other namespaces says of itself"
    )


def test_what_one_says_of_itself_is_no_word_of_others(state: State, tmp_path: Path) -> None:
    had_begun(state, "runs", "10m", since=-60)
    state.waits("a", "next", {"cpu": "4"}, created=-30, **word("10m"))
    assert Desk(state, tmp_path).explain("next")["start"]["unprovenWords"] == 0


def test_what_if_says_on_how_many_words_it_rests(state: State, tmp_path: Path) -> None:
    had_begun(state, "runs", "10m", since=-60)
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    desk = Desk(state, tmp_path)
    gone = ("--without", "LocalQueue/b/main")
    assert desk.what_if(options=gone)["unprovenWords"] == 1


def test_what_if_counts_words_below_the_starts_that_it_compares(state: State, tmp_path: Path) -> None:
    had_begun(state, "runs", "10m", since=-60)
    state.waits("a", "next", {"cpu": "4"}, created=-30, **word("10m"))
    state.waits("b", "other", {"cpu": "4"}, created=-20)
    desk = Desk(state, tmp_path)
    printed = desk.run("what-if", "--without", "LocalQueue/a/main", "--estimate-for", "1h")
    assert printed.splitlines()[-1] == "  This rests on what 2 Workloads say of themselves"


def test_a_status_with_times_that_no_calendar_has_leaves_only_its_own_workload_out(
    state: State, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="total")
    state.waits("b", "other", {"cpu": "4"}, created=-30)
    invalid = state.holds("a", "invalid", {"cpu": ("1", "default")}, cluster_queue="total")
    invalid["status"]["conditions"][0]["lastTransitionTime"] = "9999-12-31T23:59:59-14:00"
    born = state.waits("a", "unborn", {"cpu": "4"})
    born["metadata"]["creationTimestamp"] = "0001-01-01T00:00:00+14:00"
    desk = Desk(state, tmp_path)
    assert desk.explain("other", "b")["ahead"] == []
    rows = json.loads(desk.run("get", "workloads", "-A", "-o", "json"))
    assert [row["state"] for row in rows if row["name"] == "invalid"] == ["Admitted"], "what it holds counts"
    left_out = {record.message.split(" ")[2] for record in caplog.records}
    assert left_out == {"workloads/a/invalid", "jobs/a/unborn"}

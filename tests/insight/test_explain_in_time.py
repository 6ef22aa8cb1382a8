"""The reason comes first, whatever else takes long; what there is no time for is said to be missing."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from admitter.cli import estimating, explain
from admitter.insight.explain.explainer import Answer, Explainer
from admitter.insight.explain.outlook import first, with_blocking
from admitter.insight.explain.status_summary import summary_lines, summary_of
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Facts, Snapshot
from tests.insight.asking import AT_LEISURE, Desk
from tests.insight.states import State
from tests.patience import PATIENCE_SECONDS

NO_TIME = ("--estimate-for", "0s")


@pytest.fixture
def state() -> State:
    """A queue of four CPUs, all in use by two, for which two more wait, one of them a second ago."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    for name in ("one", "two"):
        state.holds("a", name, {"cpu": ("2", "default")}, cluster_queue="total", since=-60)
    message = "asks for 2 cpu from ClusterQueue total: too much of it is in use"
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "2"}}
    spec = {"queueName": "main", "priority": 0, "podSets": [pod_set]}
    status = {"state": "Pending", "reason": "InsufficientQuota", "message": message}
    state.put("workloads", "train", "a", spec=spec, status=status)
    state.waits("a", "new", {"cpu": "2"}, created=-1)
    return state


@pytest.fixture
def desk(state: State, tmp_path: Path) -> Desk:
    return Desk(state, tmp_path)


def printed() -> str:
    """What a command has printed so far."""
    output = sys.stdout.buffer
    assert isinstance(output, io.BytesIO), "the standard output of a test"
    return output.getvalue().decode()


def test_the_reason_is_printed_before_anything_dear_begins(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}

    def watched(name: str) -> None:
        original: Callable[..., Any] = getattr(explain, name)

        def watching(*arguments: Any) -> Any:
            seen[name] = printed()
            return original(*arguments)

        monkeypatch.setattr(explain, name, watching)

    watched("with_blocking")
    watched("start_of")
    whole = desk.run("explain", "train", "-n", "a", *AT_LEISURE)
    assert seen["with_blocking"].startswith(
        "a/train: Pending in ClusterQueue total, number 1 in line\n  waits for"
    )
    assert "Flavors:" in seen["with_blocking"]
    assert "It could start if these ended:" not in seen["with_blocking"]
    assert "It could start if these ended:\n  a/one" in seen["start_of"]
    assert "Start:" not in seen["start_of"]
    assert whole.startswith(seen["start_of"])
    assert whole.splitlines()[-1].startswith("Start: can't be told")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train", "  asks for 2 cpu from ClusterQueue total: too much of it is in use"),
        ("new", "  nothing is known yet: no controller has looked at it"),
    ],
)
def test_the_status_says_the_reason_if_even_that_takes_long_to_work_out(
    desk: Desk, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Event()
    say = explain._say

    def telling(lines: Any) -> None:
        say(lines)
        said.set()

    def slow(known: Facts) -> Snapshot:
        assert said.wait(PATIENCE_SECONDS), "the reason does not wait for this"
        return Snapshot(known)

    monkeypatch.setattr(estimating, "SOON", 0.0)
    monkeypatch.setattr(explain, "_say", telling)
    monkeypatch.setattr(explain, "Snapshot", slow)
    lines = desk.tell(name)
    assert lines[:4] == [f"a/{name}: Pending", words, "So says its status; more is being worked out.", ""]
    assert lines[4].startswith(f"a/{name}: Pending in ClusterQueue total")
    assert lines[-1].startswith("Start: ")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("over", "it has finished, and its Workload is gone"),
        ("foreign", "Admitter has nothing to do with it: it has no label admitter.dev/queue-name"),
    ],
)
def test_of_a_job_without_a_workload_it_says_why(state: State, name: str, words: str) -> None:
    over, foreign = (state.waits("a", each, {"cpu": "2"}) for each in ("over", "foreign"))
    over["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    del foreign["metadata"]["labels"]
    stated = summary_of(facts(state.snapshot()), "a", name)
    assert stated is not None
    assert list(summary_lines(stated)) == [f"a/{name}", f"  {words}"]


def test_what_is_not_there_is_not_made_up_meanwhile(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = []

    def at_once(_seconds: float, say: Callable[[], None]) -> Any:
        timers.append(say)
        say()
        return _Timer()

    monkeypatch.setattr(estimating, "Timer", at_once)
    assert desk.run("explain", "trian", "-n", "a", exit_code=1) == ""
    assert len(timers) == 1


class _Timer:
    daemon = False

    def start(self) -> None: ...
    def cancel(self) -> None: ...
    def join(self) -> None: ...


def test_without_time_all_that_is_dear_is_said_to_be_missing(desk: Desk) -> None:
    lines = desk.run("explain", "train", "-n", "a", *NO_TIME).splitlines()
    assert lines[1].startswith("  waits for 2 × cpu")
    assert lines[-2:] == ["Blocking workloads: not found in time", "Start: no estimate in time"]


def test_programs_get_one_document_that_says_what_is_missing(desk: Desk) -> None:
    answer = json.loads(desk.run("explain", "train", "-n", "a", "-o", "json", *NO_TIME))
    assert answer["message"].startswith("waits for 2 × cpu")
    assert answer["wouldLetIn"] is None
    start = answer["start"]
    assert (start["inTime"], start["futures"], start["median"]) == (False, {"told": 0, "of": 20}, None)
    assert (start["confidence"], start["playedUntil"]) == (None, None)
    whole = desk.explain("train")
    assert [other["name"] for other in whole["wouldLetIn"]] == ["one"]
    assert (whole["start"]["inTime"], whole["start"]["futures"]) == (True, {"told": 20, "of": 20})


def test_a_time_that_is_none_is_refused(desk: Desk) -> None:
    for command in ("explain train", "get workloads", "what-if --without Cohort/x"):
        desk.run(*command.split(), "--estimate-for", "soon", exit_code=2)


def test_a_table_says_what_there_was_no_time_for(desk: Desk) -> None:
    *_, train, new = desk.run("get", "workloads", "-n", "a", "-o", "wide", *NO_TIME).splitlines()
    assert train.rstrip().endswith("no estimate in time")
    assert new.rstrip().endswith("no estimate in time")


def asked(state: State, name: str) -> tuple[Explainer, Answer]:
    explainer = Explainer(Snapshot(facts(state.snapshot())))
    return explainer, first(explainer, "a", name)


def test_the_search_for_blocking_workloads_has_a_part_of_the_time(state: State) -> None:
    explainer, answer = asked(state, "train")
    assert (answer.sought, answer.blocking) == (False, ())
    times = iter([0.0, 4.9, 4.9, 5.0])
    late = with_blocking(explainer, answer, Deadline(10.0, lambda: next(times)))
    assert (late.sought, late.blocking) == (False, ())
    assert list(times) == [], "it ended when half of the time had passed"
    in_time = with_blocking(explainer, answer, Deadline(10.0, lambda: 0.0))
    assert [other.key for other in in_time.blocking] == [("a", "one")]


def test_for_what_can_never_run_nothing_is_searched(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    state.waits("a", "huge", {"cpu": "100"})
    explainer, answer = asked(state, "huge")
    monkeypatch.delattr(Explainer, "explain")
    assert with_blocking(explainer, answer, Deadline(0.0, lambda: 1.0)).sought


def test_the_blocking_workloads_of_one_that_is_on_its_way_in_are_known_at_once(tmp_path: Path) -> None:
    state = State()
    state.put("priorityclasses", "high", value=10)
    preemption = {"withinClusterQueue": "LowerPriority"}
    state.queue("total", {"cpu": {"default": {"min": "4"}}}, preemption=preemption)
    state.namespace("a", "total")
    state.holds("a", "low", {"cpu": ("4", "default")}, cluster_queue="total")
    state.waits("a", "urgent", {"cpu": "4"}, priority="high")
    lines = Desk(state, tmp_path).run("explain", "urgent", "-n", "a", *NO_TIME).splitlines()
    assert lines[-3:-1] == ["It starts when these have ended:", "  a/low, priority 0"]

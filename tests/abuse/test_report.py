"""What is wrong in a run of operations is said, and each kind of it makes the run fail."""

from collections import Counter
from typing import Any

import pytest

from tests.abuse.crowd import LOST, Crowd, Done
from tests.abuse.harness import Outcome, exceptions
from tests.abuse.operations import patch
from tests.abuse.report import markdown, summary

SOUND: dict[str, Any] = {"answers": Counter({200: 6, 422: 4}), "highest": {"queue a: cpu": 100}}


def outcome(**more: Any) -> Outcome:
    return Outcome(1, 10, **(SOUND | more))


def test_a_run_in_order_has_nothing_wrong() -> None:
    assert outcome().wrong == []
    assert outcome().untried == []
    told = markdown(summary([outcome()]))
    assert "10 operations, 0 times more in use than there is, 0 controllers that ended by themselves" in told
    assert "| queue a: cpu | 100 |" in told


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"findings": ["at version 1: 5 of 4"]}, "excess at version 1: 5 of 4"),
        ({"restarts": 1}, "a controller ended by itself 1 times"),
        ({"errors": ["line"]}, "exception in the log: line"),
        ({"unfinished": ["sound/a"]}, "sound Job sound/a did not end"),
        ({"left": ["pods open-a/b"]}, "pods open-a/b could not be deleted"),
        ({"lost": ["open-a/whole"]}, "Job open-a/whole did not run, though its quota is free"),
        ({"answers": Counter({200: 9, LOST: 1})}, "9 of 10 operations were answered"),
    ],
    ids=["excess", "restart", "exception", "progress", "leftover", "lost quota", "lost answer"],
)
def test_what_is_wrong_is_said(what: dict[str, Any], words: str) -> None:
    wrong = outcome(**what)
    assert any(words in each for each in wrong.wrong)
    assert words in markdown(summary([outcome(), wrong]))


def test_limits_that_were_not_tried_are_named() -> None:
    assert outcome(highest={"queue a: cpu": 50, "queue b: cpu": 95}).untried == ["queue a: cpu: 50 %"]


def test_exceptions_are_found_in_a_log() -> None:
    log = '{"event":"ready"}\n{"event":"handling failed","exception":"Traceback"}\n'
    assert exceptions(log) == ['{"event":"handling failed","exception":"Traceback"}']


def test_the_last_operations_on_a_job_are_told() -> None:
    crowd = Crowd("", None, 1.0)
    for number, name in enumerate(("t0-a", "t0-b", "t0-a")):
        operation = patch("open-a", "jobs", name, {"spec": {"suspend": False}})
        crowd._last["open-a"].append(
            Done(number, float(number), "tenant-0", operation, operation.path, 200, "")
        )
    told = crowd.trail(["open-a/t0-a (queue at its start: main)"], most=1)
    assert len(told) == 1
    assert "2.00 s tenant-0 PATCH" in told[0]
    assert "t0-a" in told[0]

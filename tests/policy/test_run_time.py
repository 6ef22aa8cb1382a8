"""The maximum run time, as arithmetic: what counts, what is left, and when it is over."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.api.lifecycle import Lifecycle, OnMaxRuntime
from admitter.cache.run_time_status import RunTimeStatus, run_time_of
from admitter.policy import run_time
from admitter.policy.run_time import Maximum, RunTimeRules

DAY = 1_800_000_000.0
"""A moment, in seconds since the epoch."""
Fields = dict[str, Any]
HOUR = Maximum(3600, False, "maxRuntime 1h of ClusterQueue team")


@pytest.mark.parametrize(
    ("own", "near", "far", "expected"),
    [
        ({}, {}, {}, RunTimeRules()),
        ({"max_runtime": "2h"}, {"max_runtime": "1h"}, {}, RunTimeRules(7200, "ClusterQueue q")),
        ({}, {"max_runtime": "1h"}, {"max_runtime": "3h"}, RunTimeRules(3600, "Cohort near")),
        (
            {"max_runtime": 90},
            {},
            {"on_max_runtime": OnMaxRuntime.REQUEUE},
            RunTimeRules(90, "ClusterQueue q", True),
        ),
        (
            {"max_runtime": 90, "on_max_runtime": OnMaxRuntime.FINISH},
            {"on_max_runtime": OnMaxRuntime.REQUEUE},
            {},
            RunTimeRules(90, "ClusterQueue q"),
        ),
    ],
    ids=["none", "own", "nearest Cohort", "field by field", "own end"],
)
def test_the_nearest_place_that_sets_a_field_counts(
    own: Fields, near: Fields, far: Fields, expected: RunTimeRules
) -> None:
    places = [("ClusterQueue q", own), ("Cohort near", near), ("Cohort far", far)]
    assert run_time.rules_of([(title, Lifecycle(**fields)) for title, fields in places]) == expected


def test_an_admission_fixes_the_deadline_and_an_eviction_adds_up() -> None:
    first = run_time.begun(RunTimeStatus(), HOUR, DAY + 0.7)
    assert (first.deadline, first.used) == (DAY + 3600, 0)
    waits, over = run_time.stopped(first, DAY, DAY + 1000, DAY + 1030)
    assert (waits.used, waits.deadline, over) == (1000, None, False)
    second = run_time.begun(waits, HOUR, DAY + 5000)
    assert second.deadline == DAY + 5000 + 2600
    assert not run_time.is_over(second, DAY + 7599)
    assert run_time.is_over(second, DAY + 7600)
    ended, over = run_time.stopped(second, DAY + 5000, DAY + 7601, DAY + 7640)
    assert (ended.used, over) == (3601, True)


def test_a_requeued_workload_has_all_of_its_time_again_and_another_place() -> None:
    most = replace(HOUR, requeues=True)
    runs = run_time.begun(RunTimeStatus(), most, DAY)
    waits, over = run_time.stopped(runs, DAY, DAY + 3600, DAY + 3630)
    assert (waits.used, waits.requeued, over) == (0, DAY + 3630, False)
    assert run_time.begun(waits, most, DAY + 4000).deadline == DAY + 7600
    assert run_time.begun(waits, most, DAY + 4000).requeued == DAY + 3630


def test_a_shorter_cap_counts_from_the_next_admission_on() -> None:
    waits = RunTimeStatus(used=1000)
    shorter = replace(HOUR, seconds=900)
    assert run_time.left_of(shorter, waits) == 0
    assert "for 16m40s, and may for no longer" in run_time.used_up_message(shorter, waits)
    assert run_time.left_of(replace(shorter, requeues=True), waits) == 900
    assert run_time.begun(waits, replace(shorter, requeues=True), DAY).used == 0
    assert run_time.left_of(replace(HOUR, seconds=1600), waits) == 600


def test_without_a_maximum_nothing_is_kept() -> None:
    assert run_time.begun(RunTimeStatus(used=5), None, DAY) == RunTimeStatus()
    assert run_time.run_time_json(RunTimeStatus(used=5), RunTimeStatus()) == {"runTime": None}
    assert run_time.run_time_json(RunTimeStatus(), RunTimeStatus()) == {}
    assert run_time.stopped(RunTimeStatus(), DAY, DAY + 9, DAY + 9) == (RunTimeStatus(), False)
    assert not run_time.is_over(RunTimeStatus(), DAY)


times = st.integers(1, 5000)


@given(
    st.integers(1, 10_000),
    st.booleans(),
    st.lists(st.tuples(times, times, st.integers(0, 60), st.integers(0, 3)), max_size=20),
)
def test_the_sum_of_all_admissions_is_never_above_the_maximum(
    cap: int, requeues: bool, history: list[tuple[int, int, int, int]]
) -> None:
    """Each waits, runs until it is stopped or its time is over, with a controller that may be late."""
    most, kept, now, held = Maximum(cap, requeues, "a maximum"), RunTimeStatus(), DAY, 0
    for waits, runs, ends_in, late in history:
        now += waits
        assert run_time.left_of(most, kept) > 0, "what is over is not admitted"
        begun = run_time.begun(kept, most, now)
        assert begun.deadline is not None
        assert run_time_of(run_time.run_time_json(kept, begun)) == begun, "a restart finds the same"
        stop = min(now + runs, begun.deadline + late)
        held += int(min(stop, begun.deadline) - now)
        assert held <= cap
        was_due = run_time.is_over(begun, stop)
        kept, over = run_time.stopped(begun, now, stop, stop + ends_in)
        now = stop + ends_in
        if over:
            assert was_due
            assert held == cap
            return
        if was_due:
            assert requeues
            held = 0
        assert kept.used == held

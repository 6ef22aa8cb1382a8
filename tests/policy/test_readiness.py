"""The arithmetic of readiness: waits end, jitter repeats itself, and what is given up, when."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.api.lifecycle import Lifecycle
from admitter.cache.readiness_status import ReadinessStatus, read, written
from admitter.names import READY_TIMEOUT_ANNOTATION
from admitter.policy.readiness import (
    JITTER,
    Backoff,
    GiveUp,
    ReadyRules,
    admitted_anew,
    after_eviction,
    asked_limit,
    deadline,
    gives_up,
    is_late,
    rules_of,
    to_note,
    wait,
)

UIDS = st.uuids().map(str)
BACKOFFS = st.builds(
    Backoff,
    base=st.floats(0, 1e7),
    factor=st.integers(1, 100),
    most=st.floats(0, 1e7),
)
TIMES = st.integers(0, 4_000_000_000).map(float)
MAYBE = st.none() | TIMES
STATUSES = st.builds(
    ReadinessStatus,
    MAYBE,
    MAYBE,
    MAYBE,
    st.integers(0, 1000),
    st.integers(0, 1000),
    MAYBE,
    MAYBE,
    st.sampled_from(["", "given up"]),
)


@given(BACKOFFS, st.integers(1, 1_000_000), UIDS)
def test_each_wait_ends_within_the_cap_and_is_the_same_again(
    backoff: Backoff, attempt: int, uid: str
) -> None:
    seconds = wait(backoff, attempt, uid)
    assert 1 <= seconds <= max(2, backoff.most + 1)
    assert seconds == wait(backoff, attempt, uid)


@given(BACKOFFS, st.integers(1, 50), UIDS)
def test_a_wait_is_at_most_by_the_jitter_shorter_than_the_series(
    backoff: Backoff, attempt: int, uid: str
) -> None:
    nominal = min(max(1.0, backoff.most), max(1.0, backoff.base) * backoff.factor ** (attempt - 1))
    assert nominal * (1 - JITTER) <= wait(backoff, attempt, uid) < nominal + 1


def test_the_default_series_doubles_from_a_minute_to_an_hour() -> None:
    waits = [wait(Backoff(), attempt, "a") for attempt in range(1, 10)]
    nominal = [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert all(0.9 * each <= seconds <= each for each, seconds in zip(nominal, waits, strict=True))


def test_workloads_that_fail_together_do_not_all_come_back_together() -> None:
    assert len({wait(Backoff(3600), 1, f"uid-{n}") for n in range(200)}) > 100


@given(st.integers(1, 100), st.integers(0, 200))
def test_a_number_of_attempts_gives_up_from_that_number_on(most: int, failures: int) -> None:
    assert bool(gives_up(GiveUp(attempts=most), failures, 0.0, 1e9)) == (failures >= most)


@given(st.floats(1, 1e6), TIMES, st.floats(0, 2e6))
def test_a_time_gives_up_once_it_has_passed(after: float, since: float, passed: float) -> None:
    now = since + passed
    assert bool(gives_up(GiveUp(after=after), 1, since, now)) == (now - since >= after)


@given(st.integers(0, 10**6), TIMES, TIMES)
def test_without_a_rule_nothing_is_given_up(failures: int, since: float, now: float) -> None:
    assert gives_up(GiveUp(), failures, since, now) == ""


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 10), UIDS)
def test_want_of_nodes_never_gives_up_and_each_eviction_has_a_next_try_or_an_end(
    to_blame: list[bool], most: int, uid: str
) -> None:
    rules = ReadyRules(60.0, give_up=GiveUp(attempts=most))
    known, now = ReadinessStatus(), 1000.0
    for number, fault in enumerate(to_blame, 1):
        known = after_eviction(admitted_anew(known, now + 60), now, now + 60, uid, rules, to_blame=fault)
        assert known.attempts == number
        assert known.failures == sum(to_blame[:number])
        assert known.since == 1000.0
        assert (known.next_try is None) == bool(known.gave_up)
        if known.gave_up:
            assert fault
            assert known.failures == most
            return
        assert known.next_try is not None
        assert known.next_try > now + 60
        now = known.next_try
    assert sum(to_blame) < most


def test_what_its_user_sets_going_again_begins_a_new_row() -> None:
    given_up = ReadinessStatus(attempts=5, failures=5, since=1.0, gave_up="often enough")
    assert admitted_anew(given_up, 100.0) == ReadinessStatus(100.0)
    goes_on = replace(given_up, gave_up="", next_try=50.0)
    assert admitted_anew(goes_on, 100.0) == ReadinessStatus(100.0, attempts=5, failures=5, since=1.0)


@given(STATUSES)
def test_a_status_is_read_as_it_was_written(known: ReadinessStatus) -> None:
    assert read(written(known)) == known


@given(STATUSES, TIMES, st.booleans())
def test_what_is_ready_is_never_late(known: ReadinessStatus, now: float, was: bool) -> None:
    assert not is_late(known, now, ready=True, was_ready=was)


@pytest.mark.parametrize(
    ("known", "now", "was_ready", "late"),
    [
        (ReadinessStatus(100.0), 99.9, False, False),
        (ReadinessStatus(100.0), 100.0, False, True),
        (ReadinessStatus(100.0), 1000.0, True, False),  # it lacks a pod, and has time to recover
        (ReadinessStatus(100.0, ready_at=50.0), 1000.0, False, False),
        (ReadinessStatus(100.0, 50.0, recover_by=200.0), 199.0, True, False),
        (ReadinessStatus(100.0, 50.0, recover_by=200.0), 200.0, True, True),
        (ReadinessStatus(), 1000.0, False, False),
    ],
)
def test_when_a_workload_is_late(known: ReadinessStatus, now: float, was_ready: bool, late: bool) -> None:
    assert is_late(known, now, ready=False, was_ready=was_ready) is late


def test_what_is_noted_of_one_that_runs() -> None:
    def note(known: ReadinessStatus, now: float, lost: float | None, ready: bool) -> ReadinessStatus | None:
        return to_note(known, now, lost, 600.0, ready=ready, was_ready=True)

    waits = ReadinessStatus(100.0, attempts=2, failures=1, since=1.0)
    assert note(waits, 50.0, None, ready=True) is None, "before the deadline nothing is written"
    assert note(waits, 100.0, None, ready=True) == ReadinessStatus(100.0, 100.0), "it begins a new row"
    assert note(waits, 50.0, 20.0, ready=False) is None, "most pods are there again within a minute"
    lacks = note(waits, 80.0, 20.0, ready=False)
    assert lacks == replace(waits, ready_at=80.0, recover_by=620.0)
    assert note(lacks, 90.0, 20.0, ready=False) is None, "once is enough"
    recovered = note(lacks, 95.0, None, ready=True)
    assert recovered == replace(waits, ready_at=80.0)
    assert note(recovered, 100.0, None, ready=True) == ReadinessStatus(100.0, 80.0)
    assert note(ReadinessStatus(100.0, 80.0), 200.0, None, ready=True) is None


def test_a_lost_pod_is_not_noted_where_there_is_no_limit_to_recover() -> None:
    known = ReadinessStatus(100.0, 80.0)
    assert to_note(known, 5000.0, 200.0, 0.0, ready=False, was_ready=True) is None


QUEUE = "ClusterQueue q"


@pytest.mark.parametrize(
    ("text", "limit", "counts", "words"),
    [
        (None, 1800.0, 1800.0, ""),
        ("5m", 1800.0, 300.0, ""),
        ("30m", 1800.0, 1800.0, ""),
        ("5m", 0.0, 300.0, ""),
        ("0s", 0.0, 0.0, ""),
        ("2h", 1800.0, 1800.0, "2h is longer than ClusterQueue q allows; 30m of ClusterQueue q counts"),
        ("0", 1800.0, 1800.0, "0s, which is no limit, is longer than ClusterQueue q allows; 30m"),
        ("soon", 1800.0, 1800.0, "'soon' is not a duration such as 30, 500ms, 90s or 1h30m; 30m"),
        ("soon", 0.0, 0.0, "ClusterQueue q sets no limit"),
    ],
)
def test_an_annotation_shortens_the_limit_and_a_wrong_one_is_named(
    text: str | None, limit: float, counts: float, words: str
) -> None:
    found, told = asked_limit(text, limit, QUEUE, "Job a/b")
    assert found == counts
    assert words in told
    assert told == "" or told.startswith(f"Job a/b: metadata.annotations[{READY_TIMEOUT_ANNOTATION}]: ")


def test_rules_are_read_with_defaults_for_what_is_left_out() -> None:
    assert rules_of(Lifecycle()) == ReadyRules()
    said = {"readyTimeout": "90s", "backoff": {"base": 5}, "giveUp": {"attempts": 3}}
    assert rules_of(Lifecycle.model_validate(said)) == ReadyRules(90.0, None, Backoff(5.0), GiveUp(3))
    assert rules_of(Lifecycle(ready_timeout="0s")).limit(by_default=True) == 0.0
    assert (ReadyRules().limit(by_default=True), ReadyRules().limit(by_default=False)) == (1800.0, 0.0)
    assert ReadyRules(600.0).recovery_limit(by_default=True) == 600.0
    assert ReadyRules(600.0, 0.0).recovery_limit(by_default=True) == 0.0
    assert ReadyRules(0.0, 60.0).recovery_limit(by_default=True) == 0.0


def test_a_deadline_is_a_whole_second() -> None:
    assert deadline(100.2, 30.0) == 131.0

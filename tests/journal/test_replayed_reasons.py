"""Which reasons a replay compares: cycles tell only those that are new, and a new engine has told none."""

from admitter.journal.replay import Reasons

SHORT, BUSY = {"reason": "InsufficientQuota"}, {"reason": "Preempting"}


def test_what_a_new_engine_has_told_already_is_the_same() -> None:
    reasons = Reasons()
    reasons.take({}, {"refusals": {"a": SHORT, "b": SHORT}})  # the journal's engine had told that before
    reasons.take({"refusals": {"a": SHORT}}, {})
    assert reasons.differing == ({}, {})


def test_another_reason_is_a_difference_until_both_tell_the_same() -> None:
    reasons = Reasons()
    reasons.take({"refusals": {"a": SHORT}}, {"refusals": {"a": BUSY}})
    assert reasons.differing == ({"a": SHORT}, {"a": BUSY})
    reasons.take({}, {"refusals": {"a": SHORT}})
    assert reasons.differing == ({}, {})


def test_a_reason_that_is_missing_is_a_difference_unless_the_workload_waits_no_longer() -> None:
    reasons = Reasons()
    reasons.take({"refusals": {"a": SHORT, "b": SHORT}}, {})
    assert reasons.differing == ({"a": SHORT, "b": SHORT}, {"a": None, "b": None})
    reasons.forget("a")
    reasons.take({"admissions": [["b", {}]]}, {"admissions": [["b", {}]]})
    assert reasons.differing == ({}, {})

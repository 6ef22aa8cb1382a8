"""Everything about one waiting workload. Source: design, *explain*."""

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.explain.explanation import Explanation
from admitter.engine.policy import PreemptionPolicy, Reclaim, Strategy, VictimTerms, WithinQueue
from admitter.engine.refusal import Reason
from tests.engine.builders import (
    SPOT_TAINT,
    admitted,
    cohort,
    engine,
    evicted,
    flavor,
    pods,
    queue,
    use,
    workload,
)

DEFAULT = flavor("default")


def explained(made: Engine, uid: str) -> Explanation:
    made.cycle()
    found = made.explain(uid)
    assert found is not None
    return found


def test_what_is_asked_free_and_borrowable() -> None:
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "9"}}, cohort="c"),
        queue("b", {"cpu": {"default": "12"}}, cohort="c"),
    )
    made.apply(Reserve("runs-a", use("a", "default", cpu="4")))
    made.apply(Reserve("runs-b", use("b", "default", cpu="10")))
    made.apply(Submit(workload("w", pods(cpu="8"), queue="a")))
    found = explained(made, "w")
    (amounts,) = found.amounts["main"]
    assert (amounts.asked, amounts.free, amounts.borrowable) == (8000, 5000, 2000)
    assert amounts.lacking == 1000
    assert (amounts.cut_by_max, amounts.keepers) == (0, ())
    assert found.refusal is not None
    assert found.refusal.reason is Reason.INSUFFICIENT_QUOTA
    assert found.blocking == ("runs-a",)


def test_what_limits_cut() -> None:
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "2..4"}}, cohort="c"),
        queue("b", {"cpu": {"default": "9/3"}}, cohort="c"),
    )
    made.apply(Reserve("runs", use("a", "default", cpu="1")))
    made.apply(Submit(workload("w", pods(cpu="4"), queue="a")))
    (amounts,) = explained(made, "w").amounts["main"]
    assert (amounts.free, amounts.borrowable) == (1000, 2000), "max leaves 3"
    assert amounts.cut_by_max == 1000, "5 in the pool, 1 in use: 4 without max"
    assert sum(amount for _, amount in amounts.keepers) == 6000


def test_flavors_that_do_not_suit_are_named() -> None:
    made = engine(
        flavor("spot", taints=(SPOT_TAINT,)), DEFAULT, queue("q", {"cpu": {"spot": "9", "default": "1"}})
    )
    made.apply(Submit(workload("w", pods(cpu="2"))))
    found = explained(made, "w")
    assert [refused.flavor for refused in found.mismatches["main"]] == ["spot"]
    assert [amounts.flavor for amounts in found.amounts["main"]] == ["default"]
    assert found.blocking == (), "no workload's end helps"


def test_the_explanation_lists_workloads_ahead_and_behind_a_strict_head() -> None:
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "4"}}, Strategy.STRICT_FIFO))
    made.apply(Reserve("runs", use("q", "default", cpu="3")))
    for number in range(3):
        made.apply(Submit(workload(f"w{number}", pods(cpu="2"), created=number)))
    assert [explained(made, f"w{number}").ahead for number in range(3)] == [0, 1, 2]


def test_the_explanation_lists_candidates_that_would_not_be_enough() -> None:
    policy = PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY, reclaim=Reclaim.ANY)
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "4"}}, preemption=policy))
    for uid, priority in (("low", 0), ("high", 9)):
        who = workload(uid, pods(cpu="2"), priority=priority)
        made.apply(Reserve(uid, use("q", "default", cpu="2"), who))
    made.apply(Submit(workload("w", pods(cpu="3"), priority=5)))
    found = explained(made, "w")
    assert found.evictable == ("low",)
    assert found.blocking == ("high",), "then it evicts the other one"


def test_a_pending_eviction_for_a_preemptor_that_ends_too() -> None:
    """`asks` takes back what `told` borrows, that may go on, and would stay if `asks` alone ended."""
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "2"}}, cohort="c", preemption=PreemptionPolicy(reclaim=Reclaim.ANY)),
        replace(queue("b", {"cpu": {"default": "0"}}, cohort="c"), victim_terms=VictimTerms(grace=30)),
        queue("d", {"cpu": {"default": "0"}}, cohort="c"),
    )
    made.apply(Submit(workload("told", pods(cpu="2"), queue="b")))
    made.cycle()
    made.apply(Submit(workload("asks", pods(cpu="2"), queue="a")))
    assert evicted(made.cycle()) == {"told": "asks"}
    made.apply(Submit(workload("w", pods(cpu="2"), queue="d")))
    assert explained(made, "w").blocking == ("asks", "told")
    assert explained(made, "w").blocking == ("asks", "told"), "to ask has changed nothing"
    made.apply(Release("told"))
    assert admitted(made.cycle()) == ["asks"]


def test_a_search_that_is_ended_says_so_and_changes_nothing_wherever_that_is() -> None:
    """Three of `a` run, `asks` is on the way in for one of `b` that may go on: all have to end for `w`."""
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "4"}}, cohort="c", preemption=PreemptionPolicy(reclaim=Reclaim.ANY)),
        replace(queue("b", {"cpu": {"default": "0"}}, cohort="c"), victim_terms=VictimTerms(grace=30)),
        queue("d", {"cpu": {"default": "0"}}, cohort="c"),
    )
    for number in range(3):
        made.apply(Reserve(f"r{number}", use("a", "default", cpu="1"), since=number))
    made.apply(Submit(workload("told", pods(cpu="1"), queue="b")))
    made.cycle()
    made.apply(Submit(workload("asks", pods(cpu="1"), queue="a")))
    assert evicted(made.cycle()) == {"told": "asks"}
    made.apply(Submit(workload("w", pods(cpu="4"), queue="d")))
    made.cycle()
    whole = explained(made, "w")
    assert (whole.blocking, whole.sought) == (("asks", "r0", "r1", "r2", "told"), True)
    looks = 0
    while True:
        left = iter(range(looks))
        found = made.explain("w", enough=lambda left=left: next(left, None) is None)  # type: ignore[misc]
        assert found is not None
        assert (found.refusal, found.amounts, found.ahead) == (whole.refusal, whole.amounts, whole.ahead)
        assert explained(made, "w") == whole, f"ended after {looks} looks it has changed something"
        if found.sought:
            assert found == whole
            break
        assert (found.evictable, found.blocking) == ((), ())
        looks += 1
    assert looks > 10, "it is asked between all attempts"


@given(
    running=st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 5)), max_size=7),
    asked=st.integers(1, 12),
    lending=st.sampled_from(["6", "6/2", "6..8/4"]),
)
def test_the_end_of_the_blocking_workloads_lets_it_in_and_none_can_be_left_out(
    running: list[tuple[str, int]], asked: int, lending: str
) -> None:
    made = engine(
        DEFAULT,
        cohort("c", limits={"cpu": {"default": "1"}}),
        queue("a", {"cpu": {"default": "6"}}, cohort="c"),
        queue("b", {"cpu": {"default": lending}}, cohort="c"),
    )
    for number, (name, cpu) in enumerate(running):
        made.apply(Reserve(f"r{number}", use(name, "default", cpu=str(cpu))))
    made.apply(Submit(workload("w", pods(cpu=str(asked)), queue="a")))
    if admitted(made.cycle()):
        return
    found = made.explain("w")
    assert found is not None
    if not found.blocking:
        for number in range(len(running)):
            made.apply(Release(f"r{number}"))
        assert admitted(made.cycle()) == [], "not even the end of all would help"
        return
    for spared in found.blocking:
        without = copy.deepcopy(made)
        for uid in set(found.blocking) - {spared}:
            without.apply(Release(uid))
        assert admitted(without.cycle()) == [], f"{spared} is not needed"
    for uid in found.blocking:
        made.apply(Release(uid))
    assert admitted(made.cycle()) == ["w"]


def test_a_workload_behind_a_strict_head_says_so_again() -> None:
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}, Strategy.STRICT_FIFO))
    made.apply(Submit(workload("head", pods(cpu="5"))))
    made.apply(Submit(workload("small", pods(cpu="1"), created=1)))
    made.cycle()
    head, small = made.explain("head"), made.explain("small")
    assert head is not None
    assert head.refusal is not None
    assert head.refusal.reason is Reason.NEVER_FITS
    assert small is not None
    assert small.refusal is not None
    assert small.refusal.reason is Reason.BEHIND_HEAD


def test_blocking_workloads_of_a_workload_that_can_do_with_fewer_pods() -> None:
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}))
    made.apply(Reserve("one", use("q", "f", cpu="1"), since=1))
    made.apply(Reserve("three", use("q", "f", cpu="3"), since=0))
    made.apply(Submit(workload("w", pods(4, cpu="1", min_count=1))))
    made.cycle()
    explanation = made.explain("w")
    assert explanation is not None
    assert explanation.blocking == ("one",)


def test_the_explanation_lists_candidates_in_the_second_flavor() -> None:
    lower = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)
    made = engine(flavor("a"), flavor("b"), queue("q", {"cpu": {"a": "4", "b": "4"}}, preemption=lower))
    made.apply(Reserve("high", use("q", "a", cpu="4"), workload("high", priority=9)))
    made.apply(Reserve("low", use("q", "b", cpu="1"), workload("low")))
    made.apply(Reserve("fixed", use("q", "b", cpu="3")))
    made.apply(Submit(workload("w", pods(cpu="2"), priority=5)))
    made.cycle()
    explanation = made.explain("w")
    assert explanation is not None
    assert explanation.evictable == ("low",)


def test_a_workload_that_waits_for_its_victims_and_one_that_waits_for_that_one() -> None:
    lower = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "4"}}, preemption=lower))
    made.apply(Reserve("low", use("q", "f", cpu="4"), workload("low")))
    made.apply(Submit(workload("high", pods(cpu="4"), priority=5)))
    made.apply(Submit(workload("next", pods(cpu="4"), priority=1)))
    made.cycle()
    high, following = made.explain("high"), made.explain("next")
    assert high is not None
    assert high.refusal is not None
    assert following is not None
    assert (high.refusal.reason, high.blocking) == (Reason.PREEMPTING, ("low",))
    assert following.blocking == ("high",)

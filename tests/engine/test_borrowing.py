"""Borrowing between queues of a cohort. Source: docs/coming-from-kueue.md."""

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.policy import Fungibility, PreemptionPolicy, WithinQueue
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, cohort, engine, flavor, flavors_of, pods, queue, use, workload

DEFAULT = flavor("default")
TEAM_A = queue("a", {"cpu": {"default": "9"}, "memory": {"default": "36Gi"}}, cohort="team-ab")
TEAM_B = queue("b", {"cpu": {"default": "12"}, "memory": {"default": "48Gi"}}, cohort="team-ab")


def test_a_alone_can_use_the_quota_of_both() -> None:
    made = engine(DEFAULT, TEAM_A, TEAM_B)
    made.apply(Submit(workload("w", pods(21, cpu="1", memory="4Gi"), queue="a")))
    assert admitted(made.cycle()) == ["w"]


@pytest.mark.parametrize(("cpu", "memory"), [("22", "84Gi"), ("21", "85Gi")])
def test_but_no_more_than_that(cpu: str, memory: str) -> None:
    made = engine(DEFAULT, TEAM_A, TEAM_B)
    made.apply(Submit(workload("w", pods(cpu=cpu, memory=memory), queue="a")))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_pending_workloads_of_b_go_before_new_ones_of_a_that_would_borrow() -> None:
    made = engine(DEFAULT, TEAM_A, TEAM_B)
    made.apply(Reserve("runs", use("a", "default", cpu="9")))
    made.apply(
        Submit(workload("a-borrows", pods(cpu="12", memory="1Gi"), queue="a", created=1, priority=100))
    )
    made.apply(Submit(workload("b-owns", pods(cpu="1", memory="1Gi"), queue="b", created=2)))
    plan = made.cycle()
    assert admitted(plan) == ["b-owns"]
    assert plan.refusals["a-borrows"].reason is Reason.INSUFFICIENT_QUOTA


def test_a_queue_borrows_only_for_flavors_that_it_defines() -> None:
    rich = queue("rich", {"cpu": {"default": "1", "spot": "9"}}, cohort="c")
    poor = queue("poor", {"cpu": {"default": "1"}}, cohort="c")
    made = engine(DEFAULT, flavor("spot"), rich, poor)
    made.apply(Submit(workload("w", pods(cpu="3"), queue="poor")))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_a_queue_outside_of_the_cohort_lends_nothing() -> None:
    made = engine(DEFAULT, TEAM_A, queue("alone", {"cpu": {"default": "99"}}))
    made.apply(Submit(workload("w", pods(cpu="10", memory="1Gi"), queue="a")))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_one_cycle_admits_as_much_as_fits_of_every_queue() -> None:
    made = engine(DEFAULT, TEAM_A, TEAM_B)
    for number in range(30):
        name = "ab"[number % 2]
        made.apply(Submit(workload(f"w{number:02}", pods(cpu="1", memory="1Gi"), queue=name, created=number)))
    plan = made.cycle()
    assert len(plan.admissions) == 21
    by_queue = [w.queue for w, _ in plan.admissions]
    assert by_queue.count("a") == 9, "b has 12 of its own, and takes them before a borrows"


def test_among_those_that_need_no_borrowing_priority_then_age_decides() -> None:
    made = engine(DEFAULT, TEAM_A, TEAM_B)
    made.apply(Submit(workload("later", pods(cpu="1", memory="1Gi"), queue="a", created=2)))
    made.apply(Submit(workload("first", pods(cpu="1", memory="1Gi"), queue="b", created=9, priority=1)))
    made.apply(Submit(workload("older", pods(cpu="1", memory="1Gi"), queue="b", created=1)))
    assert admitted(made.cycle()) == ["first", "older", "later"]


SPOT_FIRST = {"cpu": {"spot": "4", "on-demand": "4"}}
OTHER = queue("other", {"cpu": {"spot": "4", "on-demand": "4"}}, cohort="c")


@pytest.mark.parametrize(
    ("fungibility", "expected"),
    [(Fungibility(), "spot"), (Fungibility(borrow=False), "on-demand")],
    ids=["whenCanBorrow: Borrow", "whenCanBorrow: TryNextFlavor"],
)
def test_borrowing_in_the_first_flavor_or_own_quota_in_the_next(
    fungibility: Fungibility, expected: str
) -> None:
    mine = queue("mine", SPOT_FIRST, cohort="c", fungibility=fungibility)
    made = engine(flavor("spot"), flavor("on-demand"), mine, OTHER)
    made.apply(Reserve("runs", use("mine", "spot", cpu="3")))
    made.apply(Submit(workload("w", pods(cpu="2"), queue="mine")))
    assert flavors_of(made.cycle(), "w") == {"main": {"cpu": expected}}


def test_what_was_passed_over_is_taken_if_nothing_better_comes() -> None:
    mine = queue("mine", SPOT_FIRST, cohort="c", fungibility=Fungibility(borrow=False))
    made = engine(flavor("spot"), flavor("on-demand"), mine, OTHER)
    made.apply(Submit(workload("w", pods(cpu="5"), queue="mine")))
    assert flavors_of(made.cycle(), "w") == {"main": {"cpu": "spot"}}


def test_a_cohort_above_lends_to_both_of_its_children() -> None:
    made = engine(
        DEFAULT,
        cohort("top", limits={"cpu": {"default": "10"}}),
        cohort("left", "top", {"cpu": {"default": "0..6"}}),
        queue("a", {"cpu": {"default": "1"}}, cohort="left"),
        queue("b", {"cpu": {"default": "1"}}, cohort="left"),
        queue("c", {"cpu": {"default": "0"}}, cohort="top"),
    )
    for name in "abc":
        made.apply(Submit(workload(name, pods(cpu="4"), queue=name, created="abc".index(name))))
    assert admitted(made.cycle()) == ["a", "c"], "left's max of 6 keeps b out; c has the company's quota"


def test_what_waits_is_woken_by_the_quota_it_waits_for_and_by_no_other() -> None:
    gpu = queue("gpu", {"cpu": {"default": "4"}, "gpu": {"vendor": "1"}}, cohort="c")
    made = engine(DEFAULT, flavor("vendor"), gpu)
    made.apply(Reserve("cpus", use("gpu", "default", cpu="3")))
    made.apply(Reserve("one-gpu", use("gpu", "vendor", gpu="1")))
    made.apply(Submit(workload("wants-gpu", pods(gpu="1"), queue="gpu")))
    made.cycle()
    made.apply(Release("cpus"))
    assert admitted(made.cycle()) == []
    made.apply(Release("one-gpu"))
    assert admitted(made.cycle()) == ["wants-gpu"]


@pytest.mark.parametrize(("count", "expected"), [(9, 9), (12, 10), (20, 10)])
def test_partial_admission_takes_the_largest_count_that_fits(count: int, expected: int) -> None:
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "10"}}))
    made.apply(Submit(workload("w", pods(count, cpu="1", min_count=2))))
    ((_, admission),) = made.cycle().admissions
    assert admission.pod_sets[0].count == expected


def test_partial_admission_not_below_the_least_count() -> None:
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "3"}}))
    made.apply(Submit(workload("w", pods(8, cpu="1", min_count=4))))
    assert made.cycle().refusals["w"].reason is Reason.NEVER_FITS


def test_partial_admission_leaves_out_no_more_pods_than_it_must() -> None:
    made = engine(flavor("f"), queue("q", {"cpu": {"f": "3"}}))
    made.apply(
        Submit(
            workload("w", pods(2, name="x", cpu="1", min_count=1), pods(2, name="y", cpu="1", min_count=1))
        )
    )
    ((_, admission),) = made.cycle().admissions
    assert [(a.name, a.count) for a in admission.pod_sets] == [("x", 1), ("y", 2)]


@pytest.mark.parametrize("preempt", [True, False], ids=["Preempt", "TryNextFlavor"])
def test_partial_admission_counts_what_fits_without_evicting(*, preempt: bool) -> None:
    made = engine(
        flavor("a"),
        flavor("b"),
        queue(
            "q",
            {"cpu": {"a": "4", "b": "2"}},
            preemption=PreemptionPolicy(WithinQueue.LOWER_PRIORITY),
            fungibility=Fungibility(preempt=preempt),
        ),
    )
    made.apply(Reserve("x", use("q", "a", cpu="3"), workload("x", priority=5)))
    made.apply(Submit(workload("w", pods(4, cpu="1", min_count=1))))
    ((_, admission),) = made.cycle().admissions
    assert admission.pod_sets[0].count == 2

"""Extra pods: which workloads get idle quota, and how it is taken back. Source: docs/design/growing.md."""

import time

import pytest

from admitter.engine.commands import Define, Evict, Release, Reserve, SetExtra, SetPods, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.model import PodSet
from admitter.engine.policy import PreemptionPolicy, Reclaim, WithinQueue
from admitter.engine.quota.extras import GROWTH_SECONDS, Extra
from admitter.engine.tree_cycle import Plan
from tests.engine.builders import NO_PREEMPTION, admitted, engine, evicted, flavor, pods, queue, use, workload
from tests.engine.elastic import gpus, quotas, running
from tests.engine.test_capacity import labels

CPU = ("any", "cpu")
SOON = GROWTH_SECONDS
EVICTS = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)


def grows(
    made: Engine, uid: str, most: int, *, base: int = 1, size: int = 1, name: str = "q", since: float = 0.0
) -> None:
    """Something runs with so many pods of so many CPUs, and could use more of them."""
    known = workload(uid, pods(base, cpu=str(size)), queue=name)
    made.apply(Reserve(uid, use(name, "any", cpu=str(base * size)), known, since))
    made.apply(SetExtra(uid, Extra(((CPU, 1000 * size),), base, most, since=since)))


def extra(made: Engine, uid: str) -> tuple[int, int]:
    """How many extra pods may live, and how many of these go on."""
    found = made.ledger.extras.get(uid)
    assert found is not None
    return found.granted, found.kept


def have_ended(made: Engine, uid: str) -> None:
    """The extra pods that were to end are gone, and that is written."""
    found = made.ledger.extras.get(uid)
    assert found is not None
    made.apply(SetExtra(uid, Extra(found.each, found.base, found.most, found.kept, found.kept, found.since)))


def resized(plan: Plan) -> list[str]:
    return [each.holder for each in plan.resized]


def one(cpus: str = "8", preemption: PreemptionPolicy = NO_PREEMPTION) -> Engine:
    return engine(flavor("any"), queue("q", {"cpu": {"any": cpus}}, preemption=preemption))


def test_pod_sets_grow_and_shrink_by_themselves_each_in_proportion_to_what_was_admitted() -> None:
    made = one("12")
    sets = (pods(2, name="small", cpu="1"), pods(1, name="big", cpu="2"))
    known = workload("tune", *sets, queue="q")
    made.apply(Reserve("tune", use("q", "any", cpu="4"), known, 0.0))
    for part, base, size in (("small", 2, 1), ("big", 1, 2)):
        made.apply(SetExtra("tune", Extra(((CPU, 1000 * size),), base, 9, since=0.0), part))
    plan = made.cycle(SOON)
    assert {each.part: each.extra.granted for each in plan.resized} == {"small": 4, "big": 2}
    assert dict(made.ledger.used("q")) == {CPU: 12000}
    made.apply(Submit(workload("next", pods(1, cpu="3"), queue="q", created=40.0)))
    plan = made.cycle(40.0)
    assert {each.part: each.extra.kept for each in plan.resized} == {"small": 3, "big": 1}
    made.apply(Release("tune"))
    assert list(made.ledger.extras) == []
    assert dict(made.ledger.used("q")) == {}


def test_it_grows_into_idle_quota_when_its_time_has_come() -> None:
    made = one()
    grows(made, "sweep", 6, base=4)
    assert resized(made.cycle(SOON - 1)) == []
    assert made.due == SOON
    assert resized(made.cycle(SOON)) == ["sweep"]
    assert extra(made, "sweep") == (4, 4)
    assert dict(made.ledger.used("q")) == {CPU: 8000}
    assert not made.changed
    assert made.due == SOON + GROWTH_SECONDS, "it could use two more"


def test_it_does_not_grow_again_before_its_time() -> None:
    made = one()
    grows(made, "sweep", 6, base=4)
    made.apply(Reserve("other", use("q", "any", cpu="3"), None, 0.0))
    made.cycle(SOON)
    assert extra(made, "sweep") == (1, 1)
    made.apply(Release("other"))
    assert resized(made.cycle(SOON + 1)) == []
    assert resized(made.cycle(2 * SOON)) == ["sweep"]
    assert extra(made, "sweep") == (4, 4)


def test_what_waits_comes_first_and_what_does_not_fit_keeps_nothing_idle() -> None:
    made = one()
    grows(made, "sweep", 9, base=2)
    made.apply(Submit(workload("fits", pods(3, cpu="1"))))
    made.apply(Submit(workload("large", pods(7, cpu="1"))))
    plan = made.cycle(SOON)
    assert admitted(plan) == ["fits"]
    assert extra(made, "sweep") == (3, 3), "what is left"
    made.apply(Release("fits"))
    assert resized(made.cycle(SOON + 1)) == []
    made.apply(Withdraw("large"))
    assert extra(made, "sweep") == (3, 3)


def test_the_one_with_the_fewest_for_each_pod_of_its_own_is_next() -> None:
    made = one("40")
    grows(made, "a", 30, base=2)
    grows(made, "b", 30, base=8)
    made.cycle(SOON)
    (a, _), (b, _) = extra(made, "a"), extra(made, "b")
    assert a + b == 30
    assert abs(a / 2 - b / 8) <= 0.5, "in proportion, give or take one pod"


def test_of_equal_ones_the_smaller_uid_has_the_odd_pod() -> None:
    made = one("5")
    for uid in ("b", "a"):
        grows(made, uid, 9)
    made.cycle(SOON)
    assert [extra(made, uid)[0] for uid in ("a", "b")] == [2, 1]


def test_a_thousand_million_pods_are_shared_out_at_once() -> None:
    made = one("3000000000")
    for uid in ("a", "b", "c"):
        grows(made, uid, 2_000_000_000)
    began = time.process_time()
    made.cycle(SOON)
    assert time.process_time() - began < 1
    found = [extra(made, uid)[0] for uid in ("a", "b", "c")]
    assert sum(found) == 2_999_999_997
    assert max(found) - min(found) <= 1


def test_only_as_many_end_as_are_needed_and_their_quota_is_kept_for_what_waits() -> None:
    made = one()
    grows(made, "sweep", 4, base=4)
    made.cycle(SOON)
    made.apply(Submit(workload("next", pods(3, cpu="1"))))
    plan = made.cycle(SOON + 5)
    assert (admitted(plan), evicted(plan), resized(plan)) == ([], {}, ["sweep"])
    assert extra(made, "sweep") == (4, 1)
    made.apply(Submit(workload("third", pods(1, cpu="1"), created=1.0)))
    assert admitted(made.cycle(SOON + 6)) == []
    assert extra(made, "sweep") == (4, 0)
    have_ended(made, "sweep")
    assert admitted(made.cycle(SOON + 7)) == ["next", "third"]


def test_what_comes_later_does_not_take_what_some_extra_pods_have_left_for_another() -> None:
    made = one()
    grows(made, "a", 2, base=2)
    grows(made, "b", 2, base=2)
    made.cycle(SOON)
    made.apply(Submit(workload("next", pods(4, cpu="1"))))
    made.cycle(SOON + 1)
    have_ended(made, "a")
    made.apply(Submit(workload("small", pods(2, cpu="1"), priority=-1)))
    assert admitted(made.cycle(SOON + 2)) == [], "two are free, for the other one"
    have_ended(made, "b")
    assert admitted(made.cycle(SOON + 3)) == ["next"]


def test_extra_pods_go_before_anything_is_evicted() -> None:
    made = one(preemption=EVICTS)
    grows(made, "low", 4, base=2)
    made.apply(Reserve("other", use("q", "any", cpu="2"), workload("other", pods(2, cpu="1")), 1.0))
    made.cycle(SOON)
    made.apply(Submit(workload("high", pods(4, cpu="1"), priority=5)))
    assert evicted(made.cycle(SOON + 1)) == {}
    assert extra(made, "low") == (4, 0)


def test_when_all_extra_pods_are_not_enough_a_victim_goes_with_its_own() -> None:
    made = one(preemption=EVICTS)
    grows(made, "low", 6, base=2)
    made.cycle(SOON)
    made.apply(Submit(workload("high", pods(8, cpu="1"), priority=5)))
    assert evicted(made.cycle(SOON + 1)) == {"low": "high"}
    made.apply(Release("low"))
    assert dict(made.ledger.used("q")) == {}
    assert admitted(made.cycle(SOON + 2)) == ["high"]


def test_another_queue_gets_back_what_it_owns_without_any_policy() -> None:
    lent = {"cpu": {"any": "4"}}
    made = engine(flavor("any"), queue("q", lent, cohort="c"), queue("owner", lent, cohort="c"))
    grows(made, "sweep", 9, base=4)
    made.cycle(SOON)
    assert extra(made, "sweep") == (4, 4)
    made.apply(Submit(workload("back", pods(4, cpu="1"), queue="owner")))
    made.cycle(SOON + 1)
    assert extra(made, "sweep") == (4, 0)
    have_ended(made, "sweep")
    assert admitted(made.cycle(SOON + 2)) == ["back"]


def test_the_one_with_most_extra_pods_gives_back_first() -> None:
    made = one("12")
    for uid, most in (("a", 2), ("b", 6)):
        grows(made, uid, most, base=2)
    made.cycle(SOON)
    assert [extra(made, uid)[0] for uid in ("a", "b")] == [2, 6]
    made.apply(Submit(workload("next", pods(3, cpu="1"))))
    made.cycle(SOON + 1)
    assert [extra(made, uid)[1] for uid in ("a", "b")] == [2, 3]


@pytest.mark.parametrize(("limits", "expected"), [("8..6", 4), ("8/2", 6)])
def test_the_limits_of_its_queue_hold(limits: str, expected: int) -> None:
    made = one(limits)
    grows(made, "sweep", 9, base=2)
    made.cycle(SOON)
    assert extra(made, "sweep")[0] == expected


def test_a_smaller_limit_ends_extra_pods_though_nothing_waits() -> None:
    made = one()
    grows(made, "sweep", 4, base=4)
    made.cycle(SOON)
    made.apply(Define((queue("q", {"cpu": {"any": "5"}}),)))
    assert resized(made.cycle(SOON + 1)) == ["sweep"]
    assert extra(made, "sweep") == (4, 1)


def test_a_victim_does_not_grow() -> None:
    made = one()
    grows(made, "low", 4, base=2)
    made.apply(Evict("low", workload("gone", pods(1, cpu="1")), use("q", "any", cpu="1")))
    made.apply(Withdraw("gone"))
    assert resized(made.cycle(SOON)) == []


def test_nothing_grows_while_another_waits_for_its_place() -> None:
    made = one()
    grows(made, "sweep", 9, base=2)
    gone = workload("gone", pods(2, cpu="1"))
    made.apply(Reserve("gone", use("q", "any", cpu="2"), gone, 0.0))
    made.apply(Evict("gone", workload("next", pods(1, cpu="5")), use("q", "any", cpu="5")))
    assert resized(made.cycle(SOON)) == []
    made.apply(Release("gone"))
    plan = made.cycle(SOON + 1)
    assert admitted(plan) == ["next"]
    assert extra(made, "sweep") == (1, 1)


def test_of_a_tree_that_another_process_decides_nothing_is_resized() -> None:
    made = one()
    grows(made, "sweep", 4, base=4)
    assert resized(made.cycle(SOON, lambda _: False)) == []
    assert not made.changed
    made.resume(lambda _: True)
    assert resized(made.cycle(SOON + 1, lambda _: True)) == ["sweep"]


def test_the_limit_of_an_elastic_quota_holds_and_extra_pods_are_over_quota() -> None:
    made = quotas(gpus("q", 4, 6), gpus("other", 10))
    mine: PodSet = pods(2, gpu="1")
    running(made, "sweep", mine, name="q")
    made.apply(SetPods("sweep", ((1.0, "p1"), (2.0, "p2"))))
    ((key, _),) = made.ledger.real.used("q").items()
    made.apply(SetExtra("sweep", Extra(((key, 1),), 2, 9)))
    made.cycle(SOON)
    assert extra(made, "sweep") == (4, 4)
    assert labels(made.capacity.real("q")) == {"sweep": {"..."}}, "the next pods will be"
    made.apply(SetPods("sweep", ((1.0, "p1"), (2.0, "p2"), (9.0, "p3"))))
    assert labels(made.capacity.real("q")) == {"sweep": {"p3", "..."}}
    assert labels(made.capacity.planned("q")) == {}, "by the plan they do not exist"


def test_what_is_told_again_changes_nothing() -> None:
    made = one()
    grows(made, "sweep", 4, base=4)
    made.cycle(SOON)
    found = made.ledger.extras.get("sweep")
    made.apply(SetExtra("sweep", found))
    assert not made.changed
    made.apply(SetExtra("sweep", None))
    assert dict(made.ledger.used("q")) == {CPU: 4000}

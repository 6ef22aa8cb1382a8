"""How many pods there are, as a resource: each pod is one, where a queue lists it (Kueue's `pods`)."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.commands import Define, Release, Submit
from admitter.engine.cycle import Engine
from admitter.engine.explain.explanation import Amounts
from admitter.engine.model import PodSet, Workload
from admitter.engine.policy import (
    BorrowWithin,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    WithinQueue,
)
from admitter.engine.refusal import Reason
from admitter.engine.tree_cycle import Plan
from admitter.names import PODS
from admitter.quotas.elastic import POOL
from tests.engine.builders import (
    SPOT_TAINT,
    TOLERATES_SPOT,
    admitted,
    engine,
    evicted,
    flavor,
    flavors_of,
    pods,
    queue,
    workload,
)
from tests.engine.elastic import over, quota
from tests.engine.elastic import quotas as elastic

KUEUE = {"cpu": {"default": "9"}, "memory": {"default": str(36 * 2**30)}, PODS: {"default": "5"}}
"""The queue of Kueue's documentation that limits how many pods there are."""

LOWER = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)
DEFAULT = flavor("default")


def submit(made: Engine, uid: str, *pod_sets: PodSet, priority: int = 0, name: str = "q") -> Plan:
    made.apply(Submit(workload(uid, *pod_sets, queue=name, priority=priority, created=float(len(uid)))))
    return made.cycle()


def test_each_pod_counts_as_one_beside_what_it_requests() -> None:
    made = engine(DEFAULT, queue("q", KUEUE))
    assert admitted(submit(made, "three", pods(3, cpu="1"))) == ["three"]
    assert made.ledger.used("q") == {("default", "cpu"): 3000, ("default", PODS): 3}
    refusal = submit(made, "more", pods(3, cpu="1")).refusals["more"]
    assert (refusal.reason, refusal.flavors[0].resource) == (Reason.INSUFFICIENT_QUOTA, PODS)
    assert admitted(submit(made, "two", pods(2, cpu="3"))) == ["two"], "5 pods, and 9 CPUs"
    made.apply(Release("three"))
    assert admitted(made.cycle()) == ["more"]


def test_more_pods_than_there_ever_are_never_fit() -> None:
    made = engine(DEFAULT, queue("q", KUEUE))
    assert submit(made, "six", pods(6, cpu="1")).refusals["six"].reason is Reason.NEVER_FITS


def test_a_queue_of_pods_alone_takes_what_requests_nothing_else() -> None:
    made = engine(DEFAULT, queue("q", {PODS: {"default": "2"}}))
    assert admitted(submit(made, "plain", pods(2))) == ["plain"]
    assert made.ledger.used("q") == {("default", PODS): 2}
    assert submit(made, "another", pods(1)).refusals["another"].reason is Reason.INSUFFICIENT_QUOTA
    refusal = submit(made, "requests", pods(1, cpu="1")).refusals["requests"]
    assert (refusal.reason, refusal.resources) == (Reason.RESOURCE_NOT_COVERED, ("cpu",))


def test_a_queue_that_does_not_list_pods_does_not_count_them() -> None:
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "9"}}))
    plan = submit(made, "three", pods(3, cpu="1"))
    assert flavors_of(plan, "three") == {"main": {"cpu": "default"}}
    assert made.ledger.used("q") == {("default", "cpu"): 3000}
    assert submit(made, "nothing", pods(1)).refusals["nothing"].reason is Reason.NOTHING_REQUESTED


def test_nothing_is_counted_for_no_pods() -> None:
    made = engine(DEFAULT, queue("q", {PODS: {"default": "0"}}))
    assert admitted(submit(made, "empty", pods(0))) == ["empty"]
    assert made.ledger.used("q") == {}


def test_pods_of_all_pod_sets_add_up() -> None:
    made = engine(DEFAULT, queue("q", {PODS: {"default": "5"}}))
    refusal = submit(made, "six", pods(1, name="driver"), pods(5, name="workers")).refusals["six"]
    assert refusal.pod_set == "workers"
    assert admitted(submit(made, "five", pods(1, name="driver"), pods(4, name="workers"))) == ["five"]


def test_with_fewer_pods_so_many_are_counted() -> None:
    made = engine(DEFAULT, queue("q", KUEUE))
    (_, admission), *_ = submit(made, "some", pods(9, min_count=1, cpu="1")).admissions
    (assignment,) = admission.pod_sets
    assert (assignment.count, dict(assignment.usage)) == (5, {"cpu": 5000, PODS: 5})
    refusal = submit(made, "another", pods(9, min_count=1)).refusals["another"]
    assert refusal.reason is Reason.INSUFFICIENT_QUOTA, "once the first has ended, it starts with fewer"


def test_pods_get_the_flavor_of_what_they_are_listed_with() -> None:
    limits = {"cpu": {"spot": "9", "rest": "9"}, PODS: {"spot": "2", "rest": "9"}}
    made = engine(flavor("spot", taints=(SPOT_TAINT,)), flavor("rest"), queue("q", limits))
    plan = submit(made, "plain", pods(1, cpu="1"))
    assert flavors_of(plan, "plain")["main"] == {"cpu": "rest", PODS: "rest"}
    plan = submit(made, "large", pods(3, cpu="1", tolerations=TOLERATES_SPOT))
    assert flavors_of(plan, "large")["main"] == {"cpu": "rest", PODS: "rest"}, "too many pods for spot"
    plan = submit(made, "smaller", pods(2, cpu="1", tolerations=TOLERATES_SPOT))
    assert flavors_of(plan, "smaller")["main"] == {"cpu": "spot", PODS: "spot"}


def test_a_limit_holds_over_the_pods_of_all_flavors() -> None:
    limits = {"cpu": {"a": "9", "b": "9"}, PODS: {"a": "9", "b": "9"}}
    made = engine(flavor("a"), flavor("b"), replace(queue("q", limits), limits={PODS: 3}))
    assert admitted(submit(made, "two", pods(2, cpu="4"))) == ["two"]
    assert submit(made, "more", pods(2, cpu="1")).refusals["more"].reason is Reason.INSUFFICIENT_QUOTA
    assert admitted(submit(made, "one", pods(1, cpu="1"))) == ["one"]


def test_a_workload_with_too_many_pods_is_preempted() -> None:
    made = engine(DEFAULT, queue("q", KUEUE, preemption=LOWER))
    submit(made, "few", pods(1, cpu="1"))
    submit(made, "many", pods(4, cpu="1"))
    assert evicted(submit(made, "urgent", pods(2, cpu="1"), priority=1)) == {"many": "urgent"}


def test_an_elastic_quota_counts_pods_too() -> None:
    made = elastic(quota("q", {PODS: 2}, {PODS: 3}))
    assert admitted(submit(made, "three", pods(3, cpu="1"))) == []
    assert admitted(submit(made, "two", pods(2, cpu="1"))) == ["two"]
    assert made.ledger.used("q") == {(POOL, PODS): 2}
    assert admitted(submit(made, "nothing", pods(1))) == [], "beyond min, and no queue lends"
    made.apply(Define((quota("r", {PODS: 4}),)))
    assert admitted(made.cycle(9)) == ["nothing"]
    assert over(made, "q") == ["nothing"]


def test_namespaces_share_the_pods_of_a_queue() -> None:
    made = engine(DEFAULT, replace(queue("q", {PODS: {"default": "4"}}), by_namespace=True))
    for number in range(4):
        for namespace in ("a", "b"):
            uid = f"{namespace}{number}"
            made.apply(Submit(Workload(uid, "q", 0, float(namespace == "b"), (pods(1),), namespace)))
    assert sorted(admitted(made.cycle())) == ["a0", "a1", "b0", "b1"]


def test_the_explanation_tells_how_many_pods_are_free() -> None:
    made = engine(DEFAULT, queue("q", KUEUE))
    submit(made, "3", pods(3, cpu="1"))
    submit(made, "asks", pods(3, cpu="1"))
    explanation = made.explain("asks")
    assert explanation is not None
    assert explanation.amounts["main"][1:] == (Amounts("default", PODS, 3, 2, 0, 0, (), 5),)
    assert explanation.blocking == ("3",)


def test_a_place_is_given_up_once_pods_count_too() -> None:
    made = engine(DEFAULT, queue("q", {"cpu": {"default": "4"}}, preemption=LOWER))
    submit(made, "low", pods(4, cpu="1"))
    assert evicted(submit(made, "high", pods(4, cpu="1"), priority=1)) == {"low": "high"}
    made.apply(Define((queue("q", {"cpu": {"default": "4"}, PODS: {"default": "3"}}, preemption=LOWER),)))
    made.apply(Release("low"))
    assert made.cycle().refusals["high"].reason is Reason.NEVER_FITS


SEAT = "seat"
requests = st.tuples(
    st.sampled_from(["q0", "q1"]),
    st.integers(0, 4),  # pods
    st.integers(0, 2),  # priority
    st.sampled_from(["0", "1", "2"]),  # CPUs of each pod
    st.sampled_from([None, None, 1]),  # min_count
    st.sampled_from(["", "", "spot"]),  # what it tolerates
)
Asked = tuple[str, int, int, str, int | None, str]


@st.composite
def two_queues(draw: st.DrawFn) -> list[Queue]:
    made = []
    for name in ("q0", "q1"):
        numbers = st.integers(0, 6)
        cpus = {name: f"{draw(numbers)}" for name in ("spot", "rest")}
        seats = {name: f"{draw(numbers)}" for name in ("spot", "rest")}
        rules = PreemptionPolicy(
            draw(st.sampled_from(WithinQueue)),
            draw(st.sampled_from(Reclaim)),
            draw(st.sampled_from([BorrowWithin.NEVER, BorrowWithin.LOWER_PRIORITY])),
        )
        strategy = draw(st.sampled_from(Strategy))
        limits = {"cpu": cpus, SEAT: seats} if draw(st.booleans()) else {SEAT: seats}
        cohort, weight = draw(st.sampled_from(["", "c"])), Fraction(1)
        written = queue(name, limits, strategy, cohort=cohort, preemption=rules, weight=weight)
        most = {SEAT: draw(st.integers(1, 9))} if draw(st.booleans()) else {}
        made.append(replace(written, by_namespace=draw(st.booleans()), limits=most))
    return made


def of_pods(written: Queue) -> Queue:
    """The queue with `pods` where it has seats."""
    groups = tuple(
        replace(g, resources=tuple(PODS if r == SEAT else r for r in g.resources)) for g in written.groups
    )
    limits = {PODS if r == SEAT else r: most for r, most in written.limits.items()}
    changed: dict[tuple[str, str], Quota] = {
        (f, PODS if r == SEAT else r): each for (f, r), each in written.quotas.items()
    }
    return replace(written, groups=groups, limits=limits, quotas=changed)


def decided(plan: Plan) -> tuple[object, ...]:
    """A plan, in which a seat is called a pod."""
    admissions = [
        (workload.uid, [(each.name, each.count, _called(each.flavors), _called(each.usage)) for each in sets])
        for workload, admission in plan.admissions
        for sets in (admission.pod_sets,)
    ]
    reasons = {uid: refusal.reason for uid, refusal in plan.refusals.items()}
    return admissions, evicted(plan), reasons


def _called(pairs: tuple[tuple[str, object], ...]) -> dict[str, object]:
    return {PODS if resource == SEAT else resource: each for resource, each in pairs}


@given(queues=two_queues(), asked=st.lists(requests, max_size=9), ends=st.integers(0, 4))
def test_pods_are_decided_about_as_what_each_pod_requests_one_of(
    queues: list[Queue], asked: list[Asked], ends: int
) -> None:
    flavors = (flavor("spot", taints=(SPOT_TAINT,)), flavor("rest"))
    seated, counted = engine(*flavors, *queues), engine(*flavors, *map(of_pods, queues))
    for number, (name, count, priority, cpu, least, tolerates) in enumerate(asked):
        tolerations = TOLERATES_SPOT if tolerates else ()
        made = pods(count, cpu=cpu, min_count=least, tolerations=tolerations)
        who = Workload(f"w{number}", name, priority, number, (made,), f"n{number % 2}")
        with_seat = replace(made, requests=tuple(sorted((*made.requests, (SEAT, 1)))))
        seated.apply(Submit(replace(who, pod_sets=(with_seat,))))
        counted.apply(Submit(who))
        assert decided(seated.cycle(number)) == decided(counted.cycle(number))
    for number in range(ends):
        for each in (seated, counted):
            each.apply(Release(f"w{number}"))
        assert decided(seated.cycle(99 + number)) == decided(counted.cycle(99 + number))


@pytest.mark.parametrize("listed", [True, False])
def test_what_is_asked_of_pods_is_in_what_a_decision_depends_on(*, listed: bool) -> None:
    made = elastic(quota("q", {PODS: 1} if listed else {"cpu": 9}))
    interests = made._state.assigner.interests(workload("w", pods(3, cpu="1")), made.tree.queues["q"])
    assert interests == ({(POOL, PODS): 3} if listed else {(POOL, "cpu"): 3000})

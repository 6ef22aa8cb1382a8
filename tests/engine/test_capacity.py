"""Which pods are over an elastic quota. Sources: docs/design/elastic-quota.md, docs/coming-from-nos.md.

A pod is written as when it was created and its name; what is not there yet has a place all the same.
"""

from dataclasses import dataclass
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.engine.commands import CancelEviction, Define, Evict, Release, Reserve, SetPods
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment
from admitter.engine.quota.capacity import Standing
from admitter.names import ANY_NODE
from admitter.quotas.elastic import POOL
from tests.engine.builders import pods
from tests.engine.elastic import gpus, holds, over, quota, quotas, running
from tests.scale import examples

Labels = dict[str, set[str]]
"""The pods over quota by holder, `...` for those that are not there yet."""


def labels(standing: Standing) -> Labels:
    return {
        excess.reservation.holder: set(excess.pods) | ({"..."} if excess.coming else set())
        for excess in standing.excesses
    }


def one(made: Engine, uid: str, size: int, created: float | None = None, *, since: float = 0) -> None:
    """A workload of one pod with some GPUs, which is there since `created`, and has the workload's name."""
    running(made, uid, pods(gpu=str(size)), name="q", since=since)
    if created is not None:
        made.apply(SetPods(uid, ((created, uid),)))


def over_quota(made: Engine) -> set[str]:
    """The pods that are over quota now."""
    return {pod for pods_ in labels(made.capacity.real("q")).values() for pod in pods_}


def test_within_the_minimum_no_workload_is_over_quota() -> None:
    made = quotas(gpus("q", 20))
    one(made, "a", 10, 1)
    one(made, "b", 10, 2)
    assert labels(made.capacity.real("q")) == {}


def test_the_oldest_pods_are_in_quota_whenever_their_workloads_were_admitted() -> None:
    made = quotas(gpus("q", 20))
    one(made, "first-admitted", 10, 9, since=1)
    one(made, "second-admitted", 10, 3, since=2)
    one(made, "third-admitted", 10, 5, since=3)
    assert over_quota(made) == {"first-admitted"}


def test_of_one_second_the_smaller_goes_first() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 8, 5)
    one(made, "b", 3, 5)
    assert over_quota(made) == {"a"}


def test_of_one_second_and_size_the_name_decides() -> None:
    made = quotas(gpus("q", 10))
    for name in ("c", "a", "b"):
        one(made, name, 5, 5)
    assert over_quota(made) == {"c"}


def test_from_the_first_that_exceeds_all_are_over() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 6, 1)
    one(made, "b", 6, 2)
    one(made, "small", 1, 3)
    assert over_quota(made) == {"b", "small"}, "6 + 1 would be within 10, but it is not its turn"


def test_the_first_pod_of_all_may_be_over() -> None:
    made = quotas(gpus("q", 5))
    one(made, "large", 6, 1)
    one(made, "small", 1, 2)
    assert over_quota(made) == {"large", "small"}


def test_without_a_minimum_all_are_over() -> None:
    made = quotas(quota("q", most={"gpu": 9}))
    one(made, "a", 1, 1)
    assert over_quota(made) == {"a"}


def test_one_resource_that_is_exceeded_is_enough() -> None:
    made = quotas(quota("q", {"cpu": 4, "gpu": 10}))
    for number, (cpu, gpu) in enumerate([(3, 1), (1, 1), (1, 1), (0, 1)]):
        uid = f"w{number}"
        running(made, uid, pods(cpu=str(cpu), gpu=str(gpu)), name="q")
        made.apply(SetPods(uid, ((number, uid),)))
    assert over_quota(made) == {"w2", "w3"}, "of GPUs there would be plenty"


def test_a_pod_that_uses_nothing_of_the_quota_is_over_only_behind_others_that_are() -> None:
    made = quotas(gpus("q", 5))
    for uid, created in (("before", 1), ("after", 9)):
        made.apply(Reserve(uid, Admission("q", (Assignment("main", 1, (), ()),), POOL)))
        made.apply(SetPods(uid, ((created, uid),)))
    one(made, "large", 6, 5)
    assert over_quota(made) == {"large", "after"}


def test_places_without_a_pod_yet_come_last() -> None:
    made = quotas(gpus("q", 10))
    one(made, "waits-for-its-pod", 10, since=1)
    one(made, "runs", 10, 50, since=40)
    assert labels(made.capacity.real("q")) == {"waits-for-its-pod": {"..."}}
    made.apply(SetPods("waits-for-its-pod", ((60, "late"),)))
    assert labels(made.capacity.real("q")) == {"waits-for-its-pod": {"late"}}, "it is the newer pod for good"


def test_among_these_the_workload_that_was_admitted_first_goes_first() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 6, since=2)
    one(made, "b", 6, since=1)
    assert over(made, "q") == ["a"]
    one(made, "c", 4, since=2)
    assert over(made, "q") == ["a"], "of those admitted in one second the smaller goes first"


def test_a_job_may_be_over_quota_in_part() -> None:
    made = quotas(gpus("q", 10))
    running(made, "gang", pods(4, gpu="3"), name="q")
    made.apply(SetPods("gang", ((1, "p0"), (2, "p1"), (3, "p2"))))
    assert labels(made.capacity.real("q")) == {"gang": {"..."}}
    made.apply(SetPods("gang", ((1, "p0"), (2, "p1"), (3, "p2"), (4, "p3"))))
    assert labels(made.capacity.real("q")) == {"gang": {"p3"}}
    one(made, "older", 4, 0)
    assert labels(made.capacity.real("q")) == {"gang": {"p2", "p3"}}


def test_pods_of_a_job_that_are_replaced_are_new_pods() -> None:
    made = quotas(gpus("q", 10))
    one(made, "steady", 5, 2)
    one(made, "fails", 5, 1)
    one(made, "third", 5, 3)
    assert over_quota(made) == {"third"}
    made.apply(SetPods("fails", ((9, "again"),)))
    assert over_quota(made) == {"again"}, "the third has moved up"


def test_while_a_new_pod_is_awaited_its_place_comes_last() -> None:
    made = quotas(gpus("q", 10))
    one(made, "fails", 5, 1)
    one(made, "second", 5, 2)
    one(made, "third", 5, 3)
    made.apply(SetPods("fails", ()))
    assert labels(made.capacity.real("q")) == {"fails": {"..."}}


def test_pods_beyond_those_that_were_admitted_count_too() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 5, 1)
    running(made, "b", pods(gpu="5"), name="q")
    made.apply(SetPods("b", ((2, "ends-slowly"), (3, "its-successor"))))
    assert labels(made.capacity.real("q")) == {"b": {"its-successor"}}


def test_a_pod_that_outlived_its_workload_is_as_old_as_it_is() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 5, 1)
    one(made, "b", 5, 3)
    made.apply(Reserve("pod-uid", holds("q", pods(gpu="5")), since=2))
    assert over_quota(made) == {"b"}


def test_pods_of_several_pod_sets_have_their_sizes_in_turn() -> None:
    made = quotas(gpus("q", 10))
    running(made, "gang", pods(2, name="a", gpu="1"), pods(1, name="b", gpu="8"), name="q")
    made.apply(SetPods("gang", ((1, "p0"), (2, "p1"), (3, "p2"))))
    assert over_quota(made) == set()
    one(made, "oldest", 1, 0)
    assert over_quota(made) == {"p2"}


def test_a_pod_set_without_pods_has_no_place() -> None:
    made = quotas(gpus("q", 1))
    assignments = [
        Assignment(n, c, (("gpu", ANY_NODE),), (("gpu", c),)) for n, c in (("none", 0), ("one", 1))
    ]
    made.apply(Reserve("w", Admission("q", tuple(assignments), POOL)))
    made.apply(SetPods("w", ((1, "p0"),)))
    assert over_quota(made) == set()


def test_an_evicted_workload_is_over_quota_in_fact_but_not_by_the_plan() -> None:
    made = quotas(gpus("q", 10), gpus("other", 10))
    one(made, "a", 10, 1)
    one(made, "b", 5, 2)
    one(made, "c", 5, 3)
    other = running(made, "preemptor", pods(gpu="1"), name="other")
    made.apply(Release("preemptor"))
    made.apply(Evict("b", other, holds("other", pods(gpu="1"))))
    assert labels(made.capacity.real("q")) == {"b": {"b"}, "c": {"c"}}
    assert labels(made.capacity.planned("q")) == {"c": {"c"}}
    made.apply(CancelEviction("b"))
    assert labels(made.capacity.planned("q")) == labels(made.capacity.real("q"))


def test_once_an_older_one_goes_the_plan_has_the_next_in_quota() -> None:
    made = quotas(gpus("q", 10), gpus("other", 10))
    one(made, "a", 10, 1)
    one(made, "b", 10, 2)
    other = running(made, "preemptor", pods(gpu="1"), name="other")
    made.apply(Release("preemptor"))
    made.apply(Evict("a", other, holds("other", pods(gpu="1"))))
    assert labels(made.capacity.real("q")) == {"b": {"b"}}
    assert labels(made.capacity.planned("q")) == {}
    made.apply(Release("a"))
    assert labels(made.capacity.real("q")) == {}


def test_a_change_of_the_minimum_counts_at_once() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 10, 1)
    one(made, "b", 10, 2)
    assert over_quota(made) == {"b"}
    made.apply(Define((gpus("q", 20),)))
    assert over_quota(made) == set()
    made.apply(Define((gpus("q", 0),)))
    assert over_quota(made) == {"a", "b"}


def test_an_end_lets_the_others_move_up() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 10, 1)
    one(made, "b", 10, 2)
    made.apply(Release("a"))
    assert over_quota(made) == set()


def test_pods_that_are_known_before_their_workload_is() -> None:
    made = quotas(gpus("q", 10))
    made.apply(SetPods("a", ((9, "a"),)))
    one(made, "b", 10, 1)
    running(made, "a", pods(gpu="10"), name="q")
    assert over_quota(made) == {"a"}


def test_workloads_over_quota_are_listed_newest_first() -> None:
    made = quotas(gpus("q", 0))
    one(made, "a", 1, 2)
    one(made, "b", 1, 3)
    one(made, "c", 1, 1)
    running(made, "gang", pods(2, gpu="1"), name="q")
    made.apply(SetPods("gang", ((0, "old"), (2.5, "new"))))
    one(made, "d", 1, since=7)
    assert over(made, "q") == ["d", "b", "gang", "a", "c"], "a workload is as new as its newest pod"


def test_of_quotas_that_are_gone_all_is_over() -> None:
    made = quotas(gpus("q", 10))
    one(made, "a", 5, 1)
    made.apply(Define(gone=("q",)))
    assert over_quota(made) == {"a"}


@pytest.mark.parametrize("order", [("u1", "u2"), ("u2", "u1")], ids="-".join)
def test_pods_of_one_name_in_two_namespaces_have_an_order(order: tuple[str, str]) -> None:
    """A composite quota has pods of several namespaces, and names are unique in each of these only."""
    made = quotas(gpus("q", 5))
    for uid in order:
        running(made, uid, pods(gpu="5"), name="q")
        made.apply(SetPods(uid, ((7.0, "worker-0"),)))
    assert over(made, "q") == ["u2"]


def test_the_next_pod_of_a_job_that_is_over_in_part_is_in_quota() -> None:
    made = quotas(gpus("q", 10))
    running(made, "gang", pods(4, gpu="4"), name="q")
    (excess,) = made.capacity.real("q").excesses
    assert not excess.coming, "two of its pods are within 10, and the next one is the first"


# Random ones, against the sentence of docs/design/elastic-quota.md, word by word.


@dataclass(frozen=True)
class Job:
    """Pods of one size, `born` of them at these times; the others are not there yet."""

    count: int
    size: tuple[int, int]
    since: int
    born: tuple[int, ...]


jobs = st.integers(0, 4).flatmap(
    lambda count: st.builds(
        Job,
        st.just(count),
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
        st.integers(0, 3),
        st.lists(st.integers(0, 4), max_size=count + (count > 0)).map(lambda times: tuple(sorted(times))),
    )
)


def recount(worked: dict[str, Job], minimum: tuple[int, int]) -> Labels:
    """Pods by creation time, then smaller request, then name; those not there yet last, by admission.

    From the one that makes the cumulative use exceed min in any resource, all are over quota.
    """
    rows: list[tuple[float, int, tuple[int, int], str, str, str]] = []
    for uid, job in worked.items():
        rows += [(born, 0, job.size, f"{uid}-{n}", uid, f"{uid}-{n}") for n, born in enumerate(job.born)]
        rows += [(inf, job.since, job.size, uid, uid, "...")] * (job.count - len(job.born))
    found: Labels = {}
    within: set[tuple[str, str]] = set()
    total, exceeded = [0, 0], False
    for _, _, size, _, uid, pod in sorted(rows):
        total = [total[0] + size[0], total[1] + size[1]]
        exceeded = exceeded or total[0] > minimum[0] or total[1] > minimum[1]
        if not exceeded:
            within.add((uid, pod))
        elif (uid, pod) in within:  # some of those to come are in quota: the next one is
            found.setdefault(uid, set())
        else:
            found.setdefault(uid, set()).add(pod)
    return found


def filled(worked: dict[str, Job], minimum: tuple[int, int]) -> Engine:
    made = quotas(quota("q", {"cpu": f"{minimum[0]}m", "gpu": minimum[1]}))
    for uid, job in worked.items():
        shape = pods(job.count, cpu=f"{job.size[0]}m", gpu=str(job.size[1]))
        running(made, uid, shape, name="q", since=job.since)
        made.apply(SetPods(uid, tuple((float(born), f"{uid}-{n}") for n, born in enumerate(job.born))))
    return made


MANY = settings(max_examples=examples(40))


@MANY
@given(st.lists(jobs, max_size=6), st.tuples(st.integers(0, 20), st.integers(0, 20)), st.data())
def test_the_rule_by_a_recount(listed: list[Job], minimum: tuple[int, int], data: st.DataObject) -> None:
    worked = {f"w{number}": job for number, job in enumerate(listed)}
    made = filled(worked, minimum)
    assert labels(made.capacity.real("q")) == recount(worked, minimum)
    gone = data.draw(st.sets(st.sampled_from(sorted(worked)))) if worked else set()
    for uid in gone:
        made.ledger.evict(uid, "preemptor")
    left = {uid: job for uid, job in worked.items() if uid not in gone}
    assert labels(made.capacity.planned("q")) == recount(left, minimum)
    assert labels(made.capacity.real("q")) == recount(worked, minimum)


@MANY
@given(st.lists(jobs, max_size=6), st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_to_take_the_newest_changes_nothing_for_those_before(
    listed: list[Job], minimum: tuple[int, int]
) -> None:
    made = filled({f"w{number}": job for number, job in enumerate(listed)}, minimum)
    while newest := over(made, "q")[:1]:
        before = labels(made.capacity.real("q"))
        for uid in newest:
            made.apply(Release(uid))
            del before[uid]
        after = labels(made.capacity.real("q"))
        assert after.keys() <= before.keys()
        assert all(pods_ <= before[uid] for uid, pods_ in after.items()), "no workload goes over quota by it"


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_in_which_order_it_was_learnt_makes_no_difference(order: tuple[str, str]) -> None:
    made = quotas(gpus("q", 10))
    for name in order:
        one(made, name, 10, since=1)
    assert over(made, "q") == ["b"]

"""When the pods of elastic quotas come and go, what would be evicted first may be another workload."""

from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.commands import SetPods, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.quota.reordered import Reordered
from tests.engine.builders import engine, flavor, pods, queue
from tests.engine.elastic import gpus, quotas, running

QUOTAS = ("a", "b", "c")
WORKLOADS = ("a1", "a2", "b1", "b2", "c1")  # named after their quotas

Born = dict[str, float]
"""By workload, when its only pod was created."""

births = st.fixed_dictionaries({uid: st.integers(0, 12).map(float) for uid in WORKLOADS})


def over_quota(born: Born) -> Engine:
    """Workloads of quotas that have nothing of their own."""
    made = quotas(*(gpus(name, 0) for name in QUOTAS))
    for uid in born:
        running(made, uid, pods(gpu="1"), name=uid[0])
    give(made, born)
    return made


def give(made: Engine, born: Born) -> None:
    for uid, created in born.items():
        made.apply(SetPods(uid, ((created, f"{uid}-pod"),)))


def differing(before: Born, *steps: Born) -> list[list[str]]:
    """The quotas that are named each time that pods come and go."""
    made = over_quota(before)
    reordered = Reordered(made.tree, made.ledger, made.capacity)
    found = []
    for after in steps:
        for uid in after:
            if before[uid] != after[uid]:
                reordered.note(uid[0])
        assert bool(reordered) == (before != after)
        give(made, after)
        found.append(reordered.compare())
        assert not reordered, "the next comparison is with what is there now"
        before = after
    return found


def newest_first(born: Born) -> list[str]:
    excesses = [excess for name in QUOTAS for excess in over_quota(born).capacity.planned(name).excesses]
    return [each.reservation.holder for each in sorted(excesses, key=lambda each: each.newest, reverse=True)]


@given(births, st.lists(births, min_size=1, max_size=4))
def test_no_other_order_is_overlooked(before: Born, steps: list[Born]) -> None:
    for named, earlier, later in zip(differing(before, *steps), [before, *steps], steps, strict=False):
        if newest_first(earlier) != newest_first(later):
            assert named


@given(births, births)
def test_of_one_quota_its_own_order_counts(before: Born, after: Born) -> None:
    """Those of the others stay as they are, older than all of it or newer."""
    before = before | {"b1": 20.0, "b2": -1.0, "c1": 21.0}
    after = after | {"b1": 20.0, "b2": -1.0, "c1": 21.0}
    assert differing(before, after) == [["a"] if newest_first(before) != newest_first(after) else []]


def test_a_pod_that_stays_between_the_same_others_changes_nothing() -> None:
    before = {"a1": 2.0, "b1": 1.0, "c1": 5.0}
    later = before | {"a1": 4.0}
    assert differing(before, later) == [[]]
    assert differing(before, later, later | {"a1": 6.0}) == [[], ["a"]], "it is newer than that of `c` now"


def test_two_that_pass_each_other_are_found() -> None:
    """Each of them has only been where the other one is not any more."""
    assert differing({"a1": 4.0, "b1": 5.0}, {"a1": 9.0, "b1": 1.0}) != [[]]


def test_pods_of_a_queue_without_an_elastic_quota_have_no_order() -> None:
    made = engine(flavor("on-demand"), queue("q", {"cpu": {"on-demand": "9"}}))
    made.apply(Submit(Workload("w", "q", 0, 0, (pods(cpu="1"),))))
    assert made.cycle(0).admissions
    made.cycle(1)
    made.apply(SetPods("w", ((1.0, "w-pod"),)))
    assert made.ledger.pods("w").alive
    assert not made.changed

"""How often a head is tried, or glanced at: only if something may have changed for it, as that costs."""

from collections import Counter

import pytest

from admitter.engine.commands import Release, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.nominator import Nominator
from admitter.engine.policy import BorrowWithin, PreemptionPolicy, Queue, Reclaim
from admitter.engine.queue.equivalence import EquivalenceClass
from admitter.engine.queue.inadmissible import InadmissibleClasses, Look
from tests.engine.builders import admitted, engine, flavor, pods, queue, workload

TAKES_BACK = PreemptionPolicy(reclaim=Reclaim.ANY)
BORROWS = PreemptionPolicy(reclaim=Reclaim.ANY, borrow=BorrowWithin.GUARANTEED_SHARE)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each has been tried."""
    counts: Counter[str] = Counter()
    nominate = Nominator.nominate

    def counted(judge: Nominator, head: Workload, owner: Queue) -> object:
        counts[head.uid] += 1
        return nominate(judge, head, owner)

    monkeypatch.setattr(Nominator, "nominate", counted)
    return counts


@pytest.fixture
def glances(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the first of each class has been glanced at, by its queue."""
    counts: Counter[str] = Counter()
    look = InadmissibleClasses.look

    def counted(classes: InadmissibleClasses, members: EquivalenceClass) -> Look:
        counts[members.queue] += 1
        return look(classes, members)

    monkeypatch.setattr(InadmissibleClasses, "look", counted)
    return counts


def _full(preemption: PreemptionPolicy) -> Engine:
    """A queue with 4 of its own that uses all 8 of its cohort; something that needs 4 waits in it."""
    made = engine(
        flavor("default"),
        queue("q", {"cpu": {"default": "4"}}, cohort="c", preemption=preemption),
        queue("other", {"cpu": {"default": "4"}}, cohort="c"),
    )
    for number in range(8):
        made.apply(Submit(workload(f"runs-{number}", pods(cpu="1"), created=number)))
    assert len(admitted(made.cycle())) == 8
    made.apply(Submit(workload("waits", pods(cpu="4"), created=100)))
    assert admitted(made.cycle()) == []
    return made


@pytest.mark.parametrize("preemption", [TAKES_BACK, BORROWS])
def test_while_its_queue_uses_more_than_its_own_no_workload_that_would_reclaim_is_tried(
    preemption: PreemptionPolicy, tried: Counter[str]
) -> None:
    made = _full(preemption)
    tried.clear()
    for number in range(3):
        made.apply(Release(f"runs-{number}"))
        made.apply(Submit(workload(f"more-{number}", pods(cpu="1"), created=number)))
        assert admitted(made.cycle()) == [f"more-{number}"]
    assert not tried["waits"]


def test_a_workload_that_may_reclaim_is_tried_at_once(tried: Counter[str]) -> None:
    made = _full(TAKES_BACK)
    for number in range(8):
        made.apply(Submit(workload(f"lent-{number}", pods(cpu="1"), queue="other", created=-1)))
    for number in range(7):  # each makes room for one of the other queue, which borrows from the fifth on
        made.apply(Release(f"runs-{number}"))
        assert admitted(made.cycle()) == [f"lent-{number}"]
    assert tried["waits"] == 1
    made.apply(Release("runs-7"))  # now it uses nothing of its own, and all 4 of it are lent
    plan = made.cycle()
    assert list(plan.planned) == ["waits"]
    assert len(plan.evictions) == 4 - 1
    assert tried["waits"] == 1 + 1


def test_the_next_of_a_class_is_not_tried_where_the_first_took_all(tried: Counter[str]) -> None:
    made = _full(TAKES_BACK)
    for number in range(5):
        made.apply(Submit(workload(f"small-{number}", pods(cpu="1"), created=10 + number)))
    made.cycle()
    tried.clear()
    for number in range(5):
        made.apply(Release(f"runs-{number}"))
        assert admitted(made.cycle()) == [f"small-{number}"]
    assert tried == {"small-0": 1}, "the others get what the first one got"


def test_no_workload_is_glanced_at_again_before_anything_is_decided(glances: Counter[str]) -> None:
    made = engine(flavor("default"), queue("q", {"cpu": {"default": "4"}}))
    for number, name in enumerate(("runs", "next", "last")):
        made.apply(Submit(workload(name, pods(cpu="4"), created=number)))
    assert admitted(made.cycle()) == ["runs"]
    glances.clear()
    made.apply(Release("runs"))
    assert glances == {"q": 1}, "something may fit"
    assert admitted(made.cycle()) == ["next"]
    assert glances == {"q": 3}, "as it begins to compete, and then the one behind it"


def test_no_workload_is_requeued_that_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine(flavor("default"), queue("q", {"cpu": {"default": "4"}}, cohort="c", preemption=TAKES_BACK))
    for number, name in enumerate(("runs", "next")):
        made.apply(Submit(workload(name, pods(cpu="4"), created=number)))
    assert admitted(made.cycle()) == ["runs"]
    woken: list[str] = []
    retry = EquivalenceClass.retry_as_known

    def noted(members: EquivalenceClass) -> None:
        woken.append(members.queue)
        retry(members)

    monkeypatch.setattr(EquivalenceClass, "retry_as_known", noted)
    made.apply(Release("runs"))  # it fits, and is within what its queue may take back
    assert woken == ["q"]
    assert admitted(made.cycle()) == ["next"]


def test_what_can_do_with_fewer_pods_is_not_looked_at_before_so_much_is_free(
    tried: Counter[str], glances: Counter[str]
) -> None:
    made = engine(flavor("default"), queue("q", {"cpu": {"default": "8"}}))
    for number in range(8):
        made.apply(Submit(workload(f"runs-{number}", pods(cpu="1"), created=number)))
    made.cycle()
    made.apply(Submit(workload("waits", pods(8, cpu="1", min_count=3), created=100)))
    made.cycle()
    tried.clear()
    glances.clear()
    for number in range(3):
        assert tried["waits"] == glances["q"] == 0
        made.apply(Release(f"runs-{number}"))
        plan = made.cycle()
    assert [(w.uid, a.pod_sets[0].count) for w, a in plan.admissions] == [("waits", 3)]

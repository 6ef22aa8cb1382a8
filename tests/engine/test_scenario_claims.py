"""What is kept for an owner, by arithmetic: `team-a` has min 2, `team-b` min 4, in one cohort."""

import pytest

from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import Group, Queue, Quota, Strategy
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.claims import withheld
from tests.engine.scenarios.driver import Play
from tests.engine.scenarios.world import Running

CPU = ("a", "cpu")


def queue(name: str, minimum: int) -> Queue:
    groups = (Group(("cpu",), ("a",)),)
    return Queue(name, Strategy.BEST_EFFORT_FIFO, groups, {CPU: Quota(minimum)}, "c")


def asks(uid: str, name: str, cpu: int, created: float = 0.0) -> Workload:
    return Workload(uid, name, 0, created, (PodSet("main", 1, (("cpu", cpu),)),))


def world(uses: int, *waiting: Workload) -> Play:
    """`team-a` uses so many CPUs of the six, and some workloads wait."""
    queues = (queue("team-a", 2), queue("team-b", 4))
    play = Play(Scenario(0, "trees", (Flavor("a"),), (), queues, {}, (0,), 0, ()), [])
    admission = Admission("team-a", (Assignment("main", 1, (("cpu", "a"),), (("cpu", uses),)),))
    play.world.running["a-0"] = Running(asks("a-0", "team-a", uses), admission, 0.0, "")
    play.world.waiting.update({workload.uid: workload for workload in waiting})
    return play


@pytest.mark.parametrize(
    ("uses", "waiting", "kept"),
    [
        pytest.param(
            5, [asks("b", "team-b", 4)], True, id="the owner waits for four, and one of them is free"
        ),
        pytest.param(5, [], False, id="nothing waits for it"),
        pytest.param(5, [asks("b", "team-b", 5)], False, id="the owner asks for more than it owns"),
        pytest.param(1, [asks("b", "team-b", 4)], False, id="it does not borrow"),
        pytest.param(3, [asks("b", "team-b", 2)], False, id="three are free, and the owner asks for two"),
        pytest.param(4, [asks("b", "team-b", 2)], True, id="two are free, and the owner asks for both"),
        pytest.param(
            5,
            [asks("b-0", "team-b", 5), asks("b-1", "team-b", 4, 1)],
            True,
            id="the first that fits within its own is the next candidate",
        ),
    ],
)
def test_what_an_owner_waits_for_is_kept(uses: int, waiting: list[Workload], kept: bool) -> None:
    borrower = asks("a-1", "team-a", 1)
    play = world(uses, borrower, *waiting)

    assert withheld(play, borrower, {CPU: 1}, play.world.use(play.world.running)) is kept

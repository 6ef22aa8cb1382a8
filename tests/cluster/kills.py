"""Objects that all come to their end, each once, while the controller is killed again and again."""

from collections.abc import Callable, Sequence
from random import Random

from tests.cluster.auditor import Auditor
from tests.cluster.controller import Controller
from tests.cluster.waiting import eventually


def end_under_kills(
    controller: Controller,
    random: Random,
    submissions: Sequence[Callable[[], None]],
    ended: Callable[[], int],
    *,
    batch: int = 10,
) -> None:
    """Submit objects in batches, kill the controller as some of each batch have ended, and wait for all.

    Args:
        controller: what is killed; it is started again by itself.
        random: says at which moments.
        submissions: each makes one object.
        ended: how many have ended.
        batch: how many are submitted at a time.
    """

    def reach(number: int) -> None:
        eventually(lambda: ended() >= number, timeout=600, what=f"{number} of {len(submissions)} to end")

    for first in range(0, len(submissions), batch):
        for submit in submissions[first : first + batch]:
            submit()
        reach(random.randrange(first, min(first + batch, len(submissions))))
        controller.kill()
    reach(len(submissions))


def none_lost_none_twice(auditor: Auditor, objects: int, pods: Callable[[str], Sequence[int]]) -> None:
    """Check that each Workload was admitted once, and had its pods once, but for those that were preempted.

    Args:
        auditor: what has watched.
        objects: how many were submitted.
        pods: how many a Workload may have, by namespace and name.
    """
    assert auditor.excesses == []
    assert len(auditor.admissions) == objects
    assert auditor.started.keys() == auditor.admissions.keys(), (
        "each has had pods, and none is of no Workload"
    )
    for name, admissions in auditor.admissions.items():
        assert admissions == 1 or name in auditor.preempted, f"{name} was admitted {admissions} times"
        least, most = min(pods(name)), max(pods(name)) * admissions
        assert least <= auditor.started[name] <= most, f"{name}: {auditor.started[name]} pods"

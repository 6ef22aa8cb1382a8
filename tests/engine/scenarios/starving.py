"""An owner against others that never stop asking for what it owns: it starts, however many come.

The others use all they can get before the owner asks. Then their workloads end, one after the other, and with
each end two more come in every queue. When all have ended that ran or had a place when the owner asked,
nothing is left that holds what it owns, unless it was newly borrowed.
"""

from dataclasses import replace
from itertools import count
from typing import Final

from admitter.engine.model import PodSet, Toleration, Workload
from admitter.engine.policy import NO_TERMS, Cohort, Queue, Quota
from tests.engine.scenarios import cases
from tests.engine.scenarios.cases import Scenario
from tests.engine.scenarios.claims import owned
from tests.engine.scenarios.driver import BrokenRuleError, Play
from tests.engine.scenarios.generator import PODS, Draw, without_limits

RULE: Final = "starved"
BEFORE: Final = 16
"""How many workloads the others have before the owner asks."""

ANYWHERE: Final = (Toleration("spot", "Exists"),)


def starves(seed: int) -> tuple[bool, str, tuple[str, ...]]:
    """Play the scenario of a seed.

    Returns:
        Whether the owner had to wait, why it does so for ever (empty if it does not), and the story.
    """
    contest = Contest(seed)
    message = ""
    try:
        contest.run()
    except BrokenRuleError as broken:
        message = str(broken)
    return contest.met, message, (*contest.play.scenario.told(), *contest.play.log)


class Contest:
    """One owner and the others.

    Attributes:
        met: whether the owner had to wait at all.
        play: what is played.
    """

    def __init__(self, seed: int) -> None:
        self.play = Play(_open(without_limits(seed)), [])
        self.met = False
        self._draw = Draw(seed)
        self._numbers = count()

    def run(self) -> None:
        """Play it, if its definitions have an owner.

        Raises:
            BrokenRuleError: the owner waits though all have ended that were there before it.
        """
        found = self._owner()
        if found is None:
            return
        owner, others = found
        for _ in range(BEFORE):
            self._ask(self._draw.one(others))
        self._arrive(owner)
        before = sorted(
            self.play.world.running.keys() | self.play.engine.ledger.pending_reservations.keys() - {owner.uid}
        )
        self.met = owner.uid in self.play.world.waiting
        while owner.uid in self.play.world.waiting:
            for name in others * 2:
                self._ask(name)
            if owner.uid not in self.play.world.waiting:
                return
            if not before:
                raise BrokenRuleError(RULE, f"{owner.uid} owns what it asks for, and waits for ever")
            uid = before.pop(0)
            if uid in self.play.world.running:
                self.play.end(uid)
            else:
                self._withdraw(uid)
            self._pass()

    def _withdraw(self, uid: str) -> None:
        """What had a place, or was evicted since, goes without having run."""
        uids = sorted(self.play.world.waiting)
        if uid in uids:
            self.play.apply(cases.Withdraw(uids.index(uid)))

    def _owner(self) -> tuple[Workload, list[str]] | None:
        """A workload that a subtree owns all of, and the queues of its tree outside that subtree."""
        quotas = self.play.world.quotas()
        names = list(self.play.world.queues)
        self._draw.shuffle(names)
        for name in names:
            for top in quotas.path(("queue", name)):
                inside = [other for other in names if top in quotas.path(("queue", other))]
                others = sorted(
                    other
                    for other in names
                    if other not in inside and quotas.root(other) == quotas.root(name)
                )
                for size in (4, 2, 1) if others else ():
                    workload = self._workload(name, size, "owner")
                    if owned(self.play, workload, top, {}):
                        return workload, others
        return None

    def _workload(self, queue: str, size: int, uid: str, priority: int = 0) -> Workload:
        groups = self.play.world.queues[queue].groups
        resources = sorted({r for group in groups for r in group.resources if r != PODS})
        asked = {r: size if self._draw.chance(0.8) else 0 for r in resources}
        if resources and not any(asked.values()):
            asked[resources[0]] = size
        requests = tuple((r, amount) for r, amount in asked.items() if amount)
        pods = PodSet("main", 1 if resources else size, requests, (), (), ANYWHERE)
        return Workload(uid, queue, priority, self.play.now, (pods,), self._draw.one(("n0", "n1")))

    def _ask(self, queue: str) -> None:
        """One more of the others."""
        uid = f"other{next(self._numbers):03}"
        self._arrive(self._workload(queue, self._draw.one((1, 1, 2, 3)), uid, self._draw.randint(0, 2)))

    def _arrive(self, workload: Workload) -> None:
        self.play.apply(cases.Arrive(workload, None))
        self._pass()

    def _pass(self) -> None:
        self.play.settle()
        self.play.pass_to(self.play.now + 1)


def _open(case: Scenario) -> Scenario:
    """A scenario without steps, and without what may keep an owner from what it owns for other reasons."""
    queues = tuple(
        replace(q, admits=True, victim_terms=NO_TERMS, limits={}, quotas=_without_max(q)) for q in case.queues
    )
    cohorts = tuple(replace(each, quotas=_without_max(each)) for each in case.cohorts)
    return replace(case, queues=queues, cohorts=cohorts, departures=(0,), steps=())


def _without_max(definition: Queue | Cohort) -> dict[tuple[str, str], Quota]:
    return {key: replace(quota, maximum=None) for key, quota in definition.quotas.items()}

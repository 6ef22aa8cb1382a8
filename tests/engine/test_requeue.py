"""No workload that could be admitted now is left inadmissible, whatever has happened (`queue/requeue.py`).

In random scenarios, and among few queues with other processes that decide too, a new engine that knows the
same is asked about each refusal that stands.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from admitter.engine.commands import (
    CancelEviction,
    Release,
    Reserve,
    SetWeight,
    StartEviction,
    Submit,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.nominator import Nominator
from admitter.engine.policy import (
    BorrowWithin,
    Cohort,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    VictimTerms,
    WithinQueue,
)
from admitter.engine.queue.competing_heads import Nomination
from tests.engine.builders import engine, flavor, pods, queue, use, workload
from tests.engine.scenarios.driver import BrokenRuleError, Check, Play
from tests.engine.scenarios.generator import PARTS, scenario
from tests.engine.test_blocking_workloads_properties import copied
from tests.scale import examples

EXAMPLES: Final = examples(10)
STEPS: Final = 12


def inadmissible(made: Engine) -> Iterator[Workload]:
    """The first of each inadmissible class that could have its turn now."""
    for name, pending in made._state.pending.items():
        queue = made.tree.queues.get(name)
        strict = queue is not None and queue.strategy is Strategy.STRICT_FIFO
        if queue is None or not queue.admits or (strict and name in made.ledger.queues_with_pending):
            continue
        first = pending._blocking_head(queue)
        for members in pending._classes.values():
            head = members.head()
            if members.inadmissible is not None and head is not None and (first is None or head is first):
                yield head


def let_in(made: Engine, now: float) -> tuple[int, list[str]]:
    """How many classes are inadmissible, and the first of those that a new engine admits or nominates."""
    refused = list(inadmissible(made))
    if not refused:
        return 0, []
    other = copied(made)
    plan = other.cycle(now)
    admitted = {each.uid for each, _ in plan.admissions} | plan.planned.keys()
    nominator = Nominator(other._state)
    return len(refused), [
        head.uid
        for head in refused
        if head.uid in admitted
        or isinstance(nominator.nominate(head, other.tree.queues[head.queue]), Nomination)
    ]


class Refused(Check):
    """What is inadmissible is so for a new engine as well."""

    rule = "refused"

    def quiet(self, play: Play) -> None:
        count, wrong = let_in(play.engine, play.now)
        self.met += count
        if wrong:
            raise self.broken(f"{wrong} are inadmissible, and a new engine lets them in")


@pytest.mark.parametrize("part", range(len(PARTS)), ids=PARTS)
def test_what_could_be_admitted_is_not_left_inadmissible(part: int) -> None:
    check = Refused()
    for seed in range(part, part + EXAMPLES * len(PARTS), len(PARTS)):
        play = Play(scenario(seed), [check])
        try:
            play.run()
        except BrokenRuleError as broken:
            pytest.fail("\n".join((*play.scenario.told(), *play.log, str(broken))))
    assert check.met, "nothing was ever refused"


class Few:
    """Three queues of one cohort and flavor; other processes decide, too."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.fair = self.chance.random() < 0.4
        cohort = Cohort(
            "c", "", {("f", "cpu"): Quota(self.chance.choice((0, 0, 2000, 6000)))}, fair=self.fair
        )
        self.queues = [self.queue(name) for name in ("q0", "q1", "q2")]
        self.engine = engine(flavor("f"), cohort, *self.queues)
        self.running: dict[str, Workload] = {}
        self.made = 0
        self.now = 0.0
        self.log = [str(cohort), *map(str, self.queues)]

    def queue(self, name: str) -> Queue:
        chance = self.chance
        borrow = [BorrowWithin.NEVER, BorrowWithin.LOWER_PRIORITY]
        borrow += [] if self.fair else [BorrowWithin.GUARANTEED_SHARE]
        policy = PreemptionPolicy(
            chance.choice(list(WithinQueue)), chance.choice(list(Reclaim)), chance.choice(borrow)
        )
        made = queue(name, {"cpu": {"f": str(chance.randint(0, 4))}}, cohort="c", preemption=policy)
        terms = VictimTerms(chance.choice((0.0, 0.0, 5.0)), chance.choice((0.0, 0.0, 3.0)))
        strict = chance.random() < 0.15
        return replace(
            made,
            victim_terms=terms,
            by_namespace=chance.random() < 0.2,
            strategy=Strategy.STRICT_FIFO if strict else Strategy.BEST_EFFORT_FIFO,
        )

    def workload(self) -> Workload:
        self.made += 1
        chance = self.chance
        created = float(chance.randint(0, 3)) if chance.random() < 0.3 else self.now
        asked = workload(
            f"w{self.made}",
            pods(cpu=str(chance.randint(1, 4))),
            queue=chance.choice(self.queues).name,
            priority=chance.randint(0, 2),
            created=created,
        )
        return replace(asked, namespace=chance.choice(("n0", "n1")))

    def happen(self) -> None:
        """Something comes from outside."""
        made, chance = self.engine, self.chance
        waiting = [uid for each in self.queues for uid in made.line(each.name)]
        evicting = [uid for uid in self.running if made.ledger.evicting(uid)]
        match chance.choices(range(7), (6, 4, 3, 2, 2, 2, 1))[0]:
            case 0:
                asked = self.workload()
                self.log.append(f"submit {asked}")
                made.apply(Submit(asked))
            case 1 if self.running:
                uid = chance.choice(sorted(self.running))
                self.log.append(f"release {uid}")
                del self.running[uid]
                made.apply(Release(uid))
            case 2:
                other = self.workload()
                self.log.append(f"reserve {other}")
                cores = str(dict(other.pod_sets[0].requests)["cpu"] // 1000)
                made.apply(Reserve(other.uid, use(other.queue, "f", cpu=cores), other, self.now))
                self.running[other.uid] = other
            case 3 if evicting:
                uid = chance.choice(evicting)
                self.log.append(f"cancel {uid}")
                made.apply(CancelEviction(uid))
            case 4 if evicting:
                uid = chance.choice(evicting)
                self.log.append(f"gone {uid}")
                made.apply(StartEviction(uid))
                made.apply(Release(uid))
                made.apply(Submit(self.running.pop(uid)))
            case 5 if waiting:
                uid = chance.choice(waiting)
                self.log.append(f"withdraw {uid}")
                made.apply(Withdraw(uid))
            case 6:
                made.apply(SetWeight("n0", chance.randint(1, 3)))

    def play(self) -> str:
        """Play to the end, or until something could be let in; says what."""
        for _ in range(STEPS):
            for _ in range(self.chance.randint(1, 3)):
                self.happen()
            self.now += self.chance.randint(0, 2)
            for _ in range(20):
                plan = self.engine.cycle(self.now)
                self.running |= {each.uid: each for each, _ in plan.admissions}
                due = self.engine.due
                if not self.engine.changed and (due is None or due > self.now):
                    break
            _, wrong = let_in(self.engine, self.now)
            if wrong:
                return "\n".join((*self.log, f"{wrong} could be let in at {self.now:g} s"))
        return ""


@pytest.mark.parametrize("seed", range(EXAMPLES * 2))
def test_whatever_other_processes_decide(seed: int) -> None:
    wrong = Few(seed).play()
    assert not wrong, wrong

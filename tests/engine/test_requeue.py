"""No workload that could be admitted now is left inadmissible, whatever has happened (`queue/requeue.py`).

In random scenarios a new engine that knows the same is asked about each refusal that stands.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest

from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.nominator import Nominator
from admitter.engine.policy import Strategy
from admitter.engine.queue.competing_heads import Nomination
from tests.engine.scenarios.driver import BrokenRuleError, Check, Play
from tests.engine.scenarios.generator import PARTS, scenario
from tests.engine.test_blocking_workloads_properties import copied

EXAMPLES: Final = int(os.environ.get("ADMITTER_EXAMPLES", "40"))


def inadmissible(made: Engine) -> Iterator[Workload]:
    """The first of each inadmissible class that could have its turn now."""
    for name, pending in made._state.pending.items():
        queue = made.tree.queues.get(name)
        strict = queue is not None and queue.strategy is Strategy.STRICT_FIFO
        if queue is None or not queue.admits or (strict and name in made.ledger.queues_with_pending):
            continue
        first = pending._first(queue)
        for members in pending._classes.values():
            head = members.head()
            if members.inadmissible is not None and head is not None and (first is None or head is first):
                yield head


class Refused(Check):
    """A new engine admits nothing that is inadmissible, and nominates none of it."""

    rule = "refused"

    def quiet(self, play: Play) -> None:
        refused = list(inadmissible(play.engine))
        if not refused:
            return
        made = copied(play.engine)
        plan = made.cycle(play.now)
        admitted = {workload.uid for workload, _ in plan.admissions} | plan.planned.keys()
        nominator = Nominator(made._state)
        for head in refused:
            self.met += 1
            if head.uid in admitted or isinstance(
                nominator.nominate(head, made.tree.queues[head.queue]), Nomination
            ):
                raise self.broken(f"{head.uid} is inadmissible, and a new engine lets it in")


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

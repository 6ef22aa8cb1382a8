"""The end of all blocking workloads lets one in, whatever has happened; the end of all but one does not.

Each pending workload is explained, and the explanation taken at its word in copies of the engine in which no
other one waits. In each kind of tree there are at least a thousand of them.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from admitter.engine.commands import Release, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.journal.state import known
from tests.engine.builders import admitted, engine, pods
from tests.engine.test_elastic_properties import Quotas
from tests.engine.test_tree_properties import (
    FLAVORS,
    PARENTS,
    QUEUES,
    Asked,
    cohort_definitions,
    queue_definitions,
    requests,
)
from tests.scale import histories

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
AT_LEAST = 250
LATER = 10_000.0
"""Later than all that has happened: no workload is kept any more since it has not run for long enough."""


def copied(made: Engine) -> Engine:
    """A new engine that knows the same."""
    other = Engine()
    for command in known(made._state):
        other.apply(command)
    return other


def alone(made: Engine, uid: str) -> Engine:
    """The same engine, in which no other workload waits; places that are being made stay."""
    other = copied(made)
    for name in [*other.tree.queues]:
        for waiting in other.line(name):
            if waiting != uid and waiting not in other.ledger.pending_reservations:
                other.apply(Withdraw(waiting))
    return other


def rest(made: Engine) -> set[str]:
    """Cycles, until nothing is decided any more and all victims have gone; returns what got in."""
    found: set[str] = set()
    while True:
        plan = made.cycle(LATER)
        found |= {*admitted(plan)}
        gone = victims(made)
        for holder in gone:
            made.apply(Release(holder))
        if not gone and not plan.admissions:
            return found


def victims(made: Engine) -> list[str]:
    """What is being evicted."""
    holders = [r.holder for name in made.tree.queues for r in made.ledger.reservations(name)]
    return [holder for holder in holders if made.ledger.evicting(holder)]


def end(made: Engine, uids: set[str]) -> None:
    """Let some of those end that run, or are on the way in."""
    for uid in sorted(uids):
        made.apply(Release(uid))
        made.apply(Withdraw(uid))


def explain_all(made: Engine) -> int:
    """Explain every workload that waits, and see that it is true; returns of how many that could be seen."""
    waiting = [uid for name in [*made.tree.queues] for uid in made.line(name)]
    return sum(
        taken_at_the_word(alone(made, uid), uid)
        for uid in waiting
        if uid not in made.ledger.pending_reservations
    )


def taken_at_the_word(made: Engine, uid: str) -> bool:
    plan = made.cycle(LATER)
    goes_on = plan.admissions or victims(made)
    if uid in admitted(plan) or (goes_on and uid in rest(copied(made))):
        return False  # only other pending workloads are in its way
    found = made.explain(uid)
    if found is None or not found.blocking:
        return False
    enders = set(found.blocking)
    for spared in sorted(enders):
        without = copied(made)
        end(without, enders - {spared})
        assert uid not in rest(without), f"{uid} gets in though {spared} stays"
    end(made, enders)
    assert uid in rest(made), f"the end of {enders} does not let {uid} in"
    return True


def load(made: Engine, together: list[Asked], moment: int) -> None:
    """Let some come, and decide about them; a victim is gone at once."""
    for number, (name, count, priority, kind, two, least, memory, namespace) in enumerate(together):
        selector = {"kind": kind} if kind else None
        sets = [pods(count, cpu="1", memory=str(memory), selector=selector, min_count=least)]
        if two:
            sets.append(pods(1, name="second", cpu="1"))
        uid = f"w{moment}-{number}"
        made.apply(Submit(Workload(uid, name, priority, moment, tuple(sets), namespace)))
    for eviction in made.cycle(moment).evictions:
        made.apply(Release(eviction.victim.holder))


def test_with_cohorts_flavors_preemption_and_shares() -> None:
    explained = 0

    @settings(histories(200), suppress_health_check=[HealthCheck.data_too_large])
    @given(data=st.data(), asked=st.lists(st.lists(requests, min_size=1, max_size=5), min_size=1, max_size=5))
    def check(data: st.DataObject, asked: list[list[Asked]]) -> None:
        nonlocal explained
        queues = [data.draw(queue_definitions(name)) for name in QUEUES]
        cohorts = [data.draw(cohort_definitions(name)) for name in PARENTS]
        made = engine(*FLAVORS, *cohorts, *queues)
        for moment, together in enumerate(asked):
            load(made, together, moment)
        explained += explain_all(made)

    check()
    assert explained >= AT_LEAST


class Explained(Quotas):
    """Explains in the end, when all victims have gone: as long as they may stay, the outcome is unknown."""

    number = 0

    def teardown(self) -> None:
        made = copied(self.engine)
        rest(made)
        Explained.number += explain_all(made)


def test_with_elastic_quotas() -> None:
    run_state_machine_as_test(Explained, settings=histories(24, 20))
    assert Explained.number >= AT_LEAST

"""The phases of a workload and the steps between them (docs/design/lifecycle.md)."""

import re
from pathlib import Path

import pytest

from admitter.api.conditions import EvictedReason, FinishedReason
from admitter.cache.preemption_status import PreemptionStatus
from admitter.policy import status
from admitter.policy.lifecycle import TRANSITIONS, Phase, Step, after, due_step, phase_of, planned_eviction
from tests.policy.test_status import ADMISSION, applied, at, view

PAGE = Path(__file__).parents[2] / "docs" / "design" / "lifecycle.md"
BY = PreemptionStatus(("other", "urgent"), "uid-urgent", ADMISSION)
OTHER = PreemptionStatus(("other", "later"), "uid-later", ADMISSION)
GRACE = 120.0


def test_the_page_has_the_table() -> None:
    rows = re.findall(r"^\| `([A-Z]+)` \| ([^|]*) \| ([^|]*) \|", PAGE.read_text(), flags=re.MULTILINE)
    documented = {}
    for step, before, then in rows:
        phases = [Phase(name) for name in re.findall(r"`(\w+)`", before)]
        target = re.findall(r"`(\w+)`", then)
        documented[Step[step]] = {phase: Phase(target[0]) if target else phase for phase in phases}
    assert documented == TRANSITIONS


def test_what_is_finished_stays_so() -> None:
    assert not any(Phase.FINISHED in moves for moves in TRANSITIONS.values())
    with pytest.raises(KeyError):
        after(Phase.FINISHED, Step.ADMIT)


def test_a_pending_eviction_shows_as_admitted() -> None:
    shown = {phase: phase.state.value for phase in Phase}
    assert shown == {phase: phase.value for phase in Phase} | {Phase.EVICTION_PENDING: "Admitted"}
    assert {phase for phase in Phase if phase.runs} == {Phase.ADMITTED, Phase.EVICTION_PENDING}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("grace", [0.0, GRACE])
def test_a_plan_evicts_by_steps_of_the_table(phase: Phase, grace: float) -> None:
    step = planned_eviction(phase, grace)
    if step is None:
        assert phase in {Phase.PENDING, Phase.FINISHED}
    else:
        assert after(phase, step) in {Phase.EVICTION_PENDING, Phase.EVICTED}
        assert grace or after(phase, step) is Phase.EVICTED, "it goes at once"


def test_another_preemptor_grants_no_more_time_but_may_grant_none() -> None:
    assert planned_eviction(Phase.EVICTION_PENDING, GRACE) is Step.REASSIGN
    assert planned_eviction(Phase.EVICTION_PENDING, 0.0) is Step.EVICT


def test_what_is_due_for_a_pending_eviction() -> None:
    assert due_step(10.0, 9.0, needed=True) is None
    assert due_step(10.0, 10.0, needed=True) is Step.EVICT
    assert due_step(10.0, 9.0, needed=False) is Step.CANCEL
    assert due_step(10.0, 11.0, needed=False) is Step.CANCEL, "its time is up, but no preemptor needs it"


def test_a_status_has_the_phase_that_its_step_leads_to() -> None:
    """The example of the page: one life, by what is written."""
    workload, phase = view({}), Phase.PENDING
    for step, minute in (
        *((Step.ADMIT, 0), (Step.ANNOUNCE, 1), (Step.REASSIGN, 2), (Step.CANCEL, 3)),
        *((Step.ANNOUNCE, 4), (Step.EVICT, 6), (Step.REASSIGN, 7), (Step.RELEASE, 8), (Step.REASSIGN, 9)),
        *((Step.ADMIT, 10), (Step.EVICT, 11), (Step.RELEASE, 12), (Step.ADMIT, 13), (Step.FINISH, 14)),
    ):
        now = at(minute)
        match step:
            case Step.ADMIT:
                patch = status.admitted(workload, ADMISSION, (0, 1), now)
            case Step.REASSIGN:
                patch = status.eviction(workload, step, OTHER, GRACE, now)
            case Step.ANNOUNCE | Step.EVICT:
                patch = status.eviction(workload, step, BY, GRACE, now)
            case Step.CANCEL:
                patch = status.eviction_cancelled(workload, now)
            case Step.RELEASE:
                patch = status.released(workload, now)
            case Step.FINISH:
                patch = status.finished(workload, FinishedReason.JOB_SUCCEEDED, "done", now)
        if step is Step.REASSIGN:
            patch["status"]["preemption"].setdefault("evictAt", None)
        workload, phase = applied(workload, patch), after(phase, step)
        assert phase_of(workload) is phase
        assert workload.status["state"] == phase.state
        if phase is Phase.EVICTION_PENDING:
            assert workload.evict_at == at(1 if minute < 4 else 4).timestamp() + GRACE
    with pytest.raises(KeyError):
        status.evicted(workload, EvictedReason.DEACTIVATED, "paused", at(15))

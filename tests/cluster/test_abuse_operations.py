"""Some hundred operations of `make test-abuse`: no more is ever in use than there is, and all of it ends."""

from pathlib import Path

import pytest

from tests.abuse.harness import Outcome, play
from tests.abuse.report import markdown, summary
from tests.cluster.direct import DirectPlane
from tests.faults.loop import run
from tests.scale import scaled

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(600)]

SEED = 1
OPERATIONS = scaled(350, 700)
A_SECOND = 50.0
KILLS = 1


def test_operations_of_many_tenants_give_no_tenant_more_than_there_is(tmp_path: Path, owner: int) -> None:
    outcome = Outcome(SEED, OPERATIONS)
    with DirectPlane.start(tmp_path / "plane", owner=owner) as plane:
        run(play(plane, tmp_path, outcome, A_SECOND, KILLS))
    told = "\n\n".join((markdown(summary([outcome])), *outcome.trails))
    assert outcome.wrong == [], told
    assert outcome.kills == KILLS, told
    assert outcome.counts["pods bound"] > 50, told
    assert outcome.counts["pods of a described kind bound"] > 0, told
    assert outcome.counts["queued pods bound"] > 0, told
    assert outcome.highest["cohort abuse: on-demand cpu"] == 100, "the quota was used to the full"
    assert outcome.highest["cohort elastic quotas: cpu"] == 100, "the quota was used to the full"

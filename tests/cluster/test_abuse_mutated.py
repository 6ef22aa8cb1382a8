"""Some hundred changed objects of `make test-abuse-mutated`: others go on, and no quota is lost."""

from pathlib import Path

import pytest

from tests.abuse.mutated import Outcome, markdown, play, summary
from tests.abuse.samples import KINDS
from tests.cluster.direct import DirectPlane
from tests.faults.loop import run
from tests.scale import scaled

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(900)]

SEED = 1
OBJECTS = scaled(120, 160)
BOUND_SECONDS = 60.0
"""Alone on two cores a sound Job waits 0.1 s as a rule, and 1 s at the most. Here five workers share them,
and the proxy that changes objects has a part of one: with as much to do as there was, it waited 13 s."""


def test_changed_objects_of_every_kind_harm_no_other(tmp_path: Path, owner: int) -> None:
    outcome = Outcome(SEED, OBJECTS, BOUND_SECONDS)
    with DirectPlane.start(tmp_path / "plane", owner=owner) as plane:
        run(play(plane, tmp_path, outcome))
    told = markdown(summary(outcome))
    assert outcome.wrong == [], told
    assert outcome.told.kinds.keys() == KINDS.keys(), told
    assert outcome.unreadable > 0, told
    assert len(outcome.waits) > 5, told

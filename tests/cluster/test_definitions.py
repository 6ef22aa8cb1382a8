"""Definitions that are deleted and applied again: work goes on soon after they are back, and without them."""

import logging
import time
from pathlib import Path

import pytest

from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.abuse import Attacker
from tests.cluster.definitions import delete_definitions
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.faults.controlled import controlled
from tests.faults.rules import Call, Rule, cut_after

pytestmark = pytest.mark.cluster

CRDS = Path(__file__).parents[2] / "crds"
SOON_SECONDS = 15.0
"""It takes one or two, on a machine with nothing else to do."""
ATTEMPTS = 9
"""After so many the next one comes 25.6 s later, if nothing hurries it."""

log = logging.getLogger("definitions")


class Attempts:
    """Concerns no call, and counts how often a Workload was to be made."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, call: Call) -> bool:
        self.number += call.kind == "new workload"
        return False


def definitions(cluster: ControlPlane) -> list[str]:
    kinds = [each["metadata"]["name"] for each in cluster.read("crds")["items"]]
    return [kind for kind in kinds if kind.endswith(".admitter.dev")]


def test_jobs_are_admitted_soon_after_all_definitions_are_back(
    own: ControlPlane, own_team: Team, tmp_path: Path
) -> None:
    attempts = Attempts()
    with controlled(own, tmp_path / "controller", seed=1) as controller:
        own_team.offers({"cpu": {"on-demand": "4"}})
        own_team.apply(job(own_team.namespace, "before"))
        eventually(lambda: own_team.state("before") == "Finished", what="a Job from before")
        kinds = definitions(own)
        delete_definitions(own, *kinds)
        eventually(lambda: controller.log.count('"kind missing"') >= len(kinds), what="missing kinds")
        controller.proxy.rules = (Rule("counted", cut_after, attempts),)
        own_team.apply(job(own_team.namespace, "waits"))
        eventually(lambda: attempts.number >= ATTEMPTS, timeout=90, what="failures")
        own.run_kubectl("apply", f"--filename={CRDS}")
        own.await_definitions(*kinds)
        start = time.monotonic()
        own_team.offers({"cpu": {"on-demand": "4"}})
        offered = time.monotonic()
        eventually(lambda: own_team.state("waits") in {"Admitted", "Finished"}, what="an admitted Job")
        took, after = time.monotonic() - start, time.monotonic() - offered
        log.info("admitted %.1f s after the definitions, %.1f s after the queues", took, after)
        assert took < SOON_SECONDS


def test_an_unmanaged_namespace_works_without_admitter(own: ControlPlane) -> None:
    """No controller runs by now; then its definitions are gone too, and its policies are left."""
    administrator = Attacker(own, "default")

    def runs(name: str) -> None:
        administrator.create(job("default", name, queue=None, suspend=False))
        administrator.patch("job", name, {"spec": {"backoffLimit": 3}})
        eventually(
            lambda: administrator.job(name)["status"].get("succeeded") == 1, what=f"end of the Job {name}"
        )
        administrator.kubectl("delete", "job", name)

    runs("without-controller")
    administrator.create(job("default", "queued", suspend=False, seconds=None))
    assert administrator.job("queued")["spec"]["suspend"] is True
    administrator.kubectl("delete", "job", "queued")
    eventually(lambda: not own.read("jobs", "--namespace=default")["items"], what="deleted Jobs")
    delete_definitions(own, *definitions(own))
    runs("without-definitions")

"""Jobs where a quota comes to manage all of a namespace, and no controller runs: the policies alone act."""

import json

import pytest

from admitter.names import CONTROLLER_USER
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import Json, elastic_quota
from tests.cluster.people import JOBS, Person
from tests.cluster.team import Team
from tests.cluster.test_abuse_manage_all import KUEUE_QUEUE, QUEUE, UNSUSPENDED, eager, is_queued
from tests.cluster.test_elastic_policies import queued
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


@pytest.fixture
def bob(own_team: Team) -> Person:
    """A user where no controller runs, so that nothing but the API server's policies acts."""
    return Person(own_team.cluster, own_team.namespace, "bob").edits()


def test_a_job_that_came_before_the_policy_knew_the_quota_is_queued_with_its_next_change(
    own: ControlPlane, own_team: Team, bob: Person
) -> None:
    own_team.apply(elastic_quota(own_team.namespace, manageAllJobs=True))
    eventually(lambda: queued(own, own_team.namespace), what="policy that knows the quota")
    unseen = Person(own, own_team.namespace, CONTROLLER_USER).may(JOBS)
    for name, labels in (("plain", {}), ("kueues", {KUEUE_QUEUE: "nope"}), ("empty", {QUEUE: ""})):
        unseen.makes(eager(own_team.namespace, name, **labels) | {"spec": suspended(own_team)})
        assert is_queued(bob.patches("job", name, UNSUSPENDED))
        assert is_queued(bob.patches("job", name, UNSUSPENDED))


def test_jobs_from_before_the_quota_managed_all_are_left_alone(
    own: ControlPlane, own_team: Team, bob: Person
) -> None:
    bob.makes(eager(own_team.namespace, "old") | {"spec": suspended(own_team)})
    own_team.apply(elastic_quota(own_team.namespace, manageAllJobs=True))
    eventually(lambda: queued(own, own_team.namespace), what="policy that knows the quota")
    active: Json = {"type": "Active", "status": "True", "reason": "Ready", "message": "works"}
    written = active | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    later = {"conditions": [written], "managedSince": {own_team.namespace: "2999-01-01T00:00:00Z"}}
    status = ["--subresource=status", "--type=merge", f"--patch={json.dumps({'status': later})}"]
    own_team.kubectl("patch", "eq", "quota", *status)

    def left_alone() -> bool:
        changed = bob.kubectl("label", "job", "old", "seen=yes", "--dry-run=server", "--output=json")
        return QUEUE not in json.loads(changed)["metadata"]["labels"]

    eventually(left_alone, what="policy that knows since when")
    resumed = bob.patches("job", "old", UNSUSPENDED)
    assert QUEUE not in resumed["metadata"]["labels"]
    assert resumed["spec"]["suspend"] is False


def suspended(team: Team) -> Json:
    """The spec of such a Job that does not run yet."""
    spec: Json = eager(team.namespace, "any")["spec"]
    return spec | {"suspend": True}

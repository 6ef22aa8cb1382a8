"""Queued pods without MutatingAdmissionPolicy: nothing gates them, so what they say is checked."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest

from admitter.install.apply import manifests
from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json
from tests.cluster.pods import GATE, QUEUE, USER, USER_UID, gates, pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

GATED = {"name": GATE}


@pytest.fixture
def user(own: ControlPlane, own_team: Team) -> Iterator[Attacker]:
    """An administrator of a cluster of which the mutating policies are gone until the test ends."""
    user = Attacker(own, own_team.namespace)

    def gated() -> bool:
        with suppress(KubectlError):
            return bool(gates(tried(user, pod(user.namespace, "tried"))))
        return False

    deleted = []
    for manifest in manifests(deployment=False):
        if manifest["kind"] == "MutatingAdmissionPolicyBinding":
            with suppress(KubectlError):  # an old API server does not know the kind
                own.run_kubectl("delete", manifest["kind"], manifest["metadata"]["name"])
                deleted.append(manifest)
    eventually(lambda: not gated(), what="an API server without these policies")
    yield user
    own.run_kubectl("label", "namespace", user.namespace, "admitter.dev/managed-")
    for manifest in deleted:
        own.run_kubectl("create", "--filename=-", content=json.dumps(manifest))
    eventually(lambda: gated() == bool(deleted), what="an API server with them again")


def tried(user: Attacker, made: Json) -> Json:
    """What would become of a pod."""
    command = ("create", "--filename=-", "--dry-run=server", "--output=json")
    found: Json = json.loads(user.kubectl(*command, content=json.dumps(made)))
    return found


def refuses(user: Attacker, made: Json, words: str) -> bool:
    """Whether the API server would refuse a pod in these words: it hears of a label a moment later."""
    try:
        tried(user, made)
    except KubectlError as error:
        return re.search(words, str(error)) is not None
    return False


def test_it_brings_its_gate_along_or_is_refused(user: Attacker) -> None:
    """In any namespace: without it the pod would run at once, and nothing would count it."""
    with user.refused("write it into spec.schedulingGates"):
        user.create(pod(user.namespace, "eager"))
    user.create(pod(user.namespace, "work", schedulingGates=[GATED]))
    user.create(pod(user.namespace, "other", None))


def forged(user: Attacker, *, labels: Json | None = None, annotations: Json | None = None) -> Json:
    """A pod with its gate that says more of itself."""
    return pod(user.namespace, "forged", labels=labels, annotations=annotations, schedulingGates=[GATED])


def test_it_says_nothing_of_its_creator_or_admission_but_the_truth(user: Attacker) -> None:
    for annotations in ({USER: "ann"}, {USER_UID: "1"}):
        with user.refused("name the user that created it"):
            tried(user, forged(user, annotations=annotations))
    for name in ("workload-uid", "flavors", "counted", "injected", "returned", "beyond-group"):
        with user.refused("are the marks of an admission"):
            tried(user, forged(user, annotations={f"admitter.dev/{name}": "{}"}))
    with user.refused("are the marks of an admission"):
        tried(user, forged(user, labels={"admitter.dev/cluster-queue": "x"}))
    with user.refused("is put on pods of a LeaderWorkerSet by the API server alone"):
        tried(user, forged(user, annotations={"admitter.dev/pod-group-owner": "x"}))
    tried(user, forged(user, annotations={"mine": "yes"}))


def test_in_a_managed_namespace_it_brings_its_gate_along(user: Attacker) -> None:
    user.user.run_kubectl("label", "namespace", user.namespace, "admitter.dev/managed=true")
    words = "write it into spec.schedulingGates|pods are made there by Jobs"
    eventually(lambda: refuses(user, pod(user.namespace, "eager", None), words), what="a managed namespace")
    with user.refused("has no MutatingAdmissionPolicy that adds it: write it into spec.schedulingGates"):
        user.create(pod(user.namespace, "eager"))
    user.create(pod(user.namespace, "work", schedulingGates=[GATED]))
    with user.refused("is removed by Admitter's controller alone"):
        user.patch("pod", "work", {"spec": {"schedulingGates": None}})
    with user.refused("stays as it is"):
        user.patch("pod", "work", {"metadata": {"labels": {QUEUE: None}}})

"""Without MutatingAdmissionPolicy: what docs/install.md#kubernetes-versions says of such an API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import Json, job
from tests.cluster.pods import GATE, KUEUES_QUEUE, QUEUE, gates, maker
from tests.cluster.team import Team
from tests.cluster.test_run import answer, running_controller
from tests.cluster.test_warnings import applied
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

BINDINGS = "mutatingadmissionpolicybindings"


@pytest.fixture(scope="module")
def without_mutation(own: ControlPlane) -> ControlPlane:
    """The module's cluster without the policies that change objects; an old API server never had them."""
    group = ("api-resources", "--api-group=admissionregistration.k8s.io", "--output=name")
    if BINDINGS in own.run_kubectl(*group):
        names = own.run_kubectl("get", BINDINGS, "--output=name").split()
        # That of the policy by which the fixture knows that they are gone is the last.
        own.run_kubectl("delete", *sorted(names, key=lambda name: "suspend" in name))
    command = ("create", "--filename=-", "--dry-run=server", "--output=json")
    eager = json.dumps(job("default", "tried", suspend=False))
    eventually(
        lambda: not json.loads(own.run_kubectl(*command, content=eager))["spec"]["suspend"],
        what="an API server without these policies",
    )
    return own


@pytest.fixture
def team(without_mutation: ControlPlane, own_team: Team, tmp_path: Path) -> Iterator[Team]:
    """A team there with two CPUs, and a controller that decides."""
    with running_controller(without_mutation, tmp_path):
        eventually(lambda: answer(tmp_path, "/readyz").startswith("leader"), what="a controller that leads")
        own_team.offers({"cpu": {"on-demand": "2"}})
        yield own_team


def runs_unqueued(team: Team, made: Json) -> None:
    """Make a Job that runs at once, and that the controller leaves alone: it has dealt with a later one."""
    name = made["metadata"]["name"]
    team.apply(made)
    team.runs(name)
    team.apply(job(team.namespace, "later", seconds=None))
    eventually(lambda: team.state("later") == "Admitted", what="a controller that has seen both")
    assert team.workload(name) == {}
    found = team.read("job", name)
    assert not found["spec"]["suspend"]
    assert QUEUE not in found["metadata"]["labels"]


def test_a_job_without_a_queue_runs_without_quota_where_the_namespace_has_a_default_one(team: Team) -> None:
    team.kubectl("label", "namespace", team.namespace, "admitter.dev/default-queue=main")
    runs_unqueued(team, job(team.namespace, "plain", queue=None, suspend=False, seconds=None))
    team.kubectl("label", "namespace", team.namespace, "admitter.dev/managed=true")

    def refusal() -> str:
        try:
            team.kubectl("create", "job", "refused", "--image=work", "--dry-run=server")
        except KubectlError as error:
            return str(error)
        return ""

    eventually(lambda: "a Job there names its queue" in refusal(), what="a managed namespace")


def test_kueues_label_queues_no_job(team: Team) -> None:
    made = job(team.namespace, "kueues", queue=None, suspend=False, seconds=None)
    made["metadata"]["labels"] = {KUEUES_QUEUE: "main"}
    runs_unqueued(team, made)


def test_an_admitted_job_that_its_user_suspends_starts_again_at_once_with_new_pods(team: Team) -> None:
    made = job(team.namespace, "work", seconds=None)
    assert made["spec"]["suspend"] is True, "as applied again below"
    team.apply(made)
    team.runs("work")

    def uids() -> set[str]:
        return {each["metadata"]["uid"] for each in team.pods("work")}

    def starts_again(before: set[str]) -> None:
        eventually(lambda: uids() and not uids() & before, what="other pods")
        team.runs("work")
        assert team.state("work") == "Admitted"

    before = uids()
    team.patch("job", "work", {"spec": {"suspend": True}})
    starts_again(before)
    before = uids()
    team.apply(made)
    starts_again(before)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_makes_pods_does_not_carry_its_queue_into_them(team: Team, kind: str) -> None:
    made = maker(team.namespace, kind, "web", None)
    made["metadata"]["labels"] = {QUEUE: "main"}
    (told,) = applied(team.cluster, made)
    assert f"of a {kind} queues none of its pods: put it into spec.template.metadata.labels" in told
    eventually(lambda: phases(team, "web") == ["Running"], what="a pod that runs")
    (pod,) = pods(team, "web")
    assert (pod["metadata"]["labels"].get(QUEUE), gates(pod)) == (None, [])
    assert QUEUE not in team.read(kind, "web")["spec"]["template"]["metadata"]["labels"]
    assert team.workloads() == {}


def test_a_deployment_with_queue_and_gate_in_its_template_is_queued(team: Team) -> None:
    made = maker(team.namespace, "Deployment", "bare")
    team.apply(made)
    eventually(lambda: refusals(team), what="a pod that is refused")
    assert "write it into spec.schedulingGates" in refusals(team)[0]
    made["spec"]["template"]["spec"]["schedulingGates"] = [{"name": GATE}]
    team.apply(made)
    eventually(lambda: phases(team, "bare") == ["Running"], what="a pod that runs")
    (pod,) = pods(team, "bare")
    assert team.state(pod["metadata"]["name"]) == "Admitted"


def pods(team: Team, name: str) -> list[Json]:
    return list(team.read("pods", f"--selector=app={name}")["items"])


def phases(team: Team, name: str) -> list[str]:
    return [each["status"].get("phase", "") for each in pods(team, name)]


def refusals(team: Team) -> list[str]:
    """What the API server says of pods that it does not let a ReplicaSet make."""
    found = team.read("replicasets")["items"]
    conditions = [each for made in found for each in made["status"].get("conditions", ())]
    return [each["message"] for each in conditions if each["type"] == "ReplicaFailure"]

"""A cluster without a controller: commands and the page say so, until one leads."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.direct import DirectCluster
from tests.cluster.objects import Json, job, workload
from tests.cluster.pages import Web, served, token_of
from tests.cluster.replicas import Replica
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

ONCE = "nothing stands in its way: it is admitted"


def told(cluster: Cluster, *arguments: str) -> tuple[str, str]:
    """What a command prints, and what it prints as a warning."""
    answer = CliRunner().invoke(app, [*arguments, f"--kubeconfig={cluster.kubeconfig}"])
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    return answer.stdout, answer.stderr


@pytest.fixture
def web(own: ControlPlane, tmp_path: Path) -> Iterator[Web]:
    with served(own, tmp_path) as made:
        yield made


@pytest.fixture
def tenant(own_team: Team, tmp_path: Path) -> Cluster:
    """The cluster as a user sees it that may view the namespace of the team, and nothing else."""
    cluster, scope = own_team.cluster, f"--namespace={own_team.namespace}"
    cluster.run_kubectl("create", "serviceaccount", "user", scope)
    account = f"--serviceaccount={own_team.namespace}:user"
    cluster.run_kubectl("create", "rolebinding", "user", "--clusterrole=view", account, scope)
    kubeconfig = cluster.service_account_kubeconfig(own_team.namespace, "user", tmp_path / "user")
    return DirectCluster(kubectl=cluster.kubectl, kubeconfig=kubeconfig)


def test_all_answers_say_so_until_a_controller_leads(
    own: ControlPlane, own_team: Team, web: Web, tenant: Cluster, tmp_path: Path
) -> None:
    own.run_kubectl("delete", "lease", "--all", f"--namespace={NAMESPACE}")  # of controllers of other tests
    own_team.offers({"cpu": {"on-demand": "2"}})
    own_team.apply(job(own_team.namespace, "first", requests={"cpu": "1"}, seconds=None))
    own_team.apply(workload(own_team.namespace, "made"))
    token, scope = token_of(own, own_team.namespace, "user"), ("-n", own_team.namespace)

    def at_the_page() -> Json:
        status, answer = web.ask("/api/controller", token)
        return answer if status == 200 else {}

    def explained() -> Json:
        answer: Json = json.loads(told(own, "explain", "first", *scope, "-o", "json")[0])
        return answer

    lines = told(own, "explain", "first", *scope)[0].splitlines()
    assert lines[1] == f"  {ONCE} once a controller decides"
    assert lines[2].startswith("  No controller has run here yet: there is no Lease")
    assert explained()["controller"]["state"] == "Absent"
    listed, warned = told(own, "get", "workloads", *scope)
    assert "first" in listed
    assert warned.startswith("Warning: No controller has run here yet: ")
    assert (own_team.state("made"), own_team.reason("made")) == ("Pending", ""), "as it is made"
    eventually(lambda: at_the_page().get("state") == "Absent", what="the page to say so")

    account = own.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, tmp_path / "account")
    replica = Replica.start(account, tmp_path / "log")
    try:
        replica.becomes("leader")
        eventually(lambda: own_team.state("first") == "Admitted", what="the Job to be admitted")
        eventually(lambda: own_team.state("made") == "Admitted" or own_team.reason("made"), what="a decision")
        own_team.apply(job(own_team.namespace, "second", requests={"cpu": "2"}, seconds=None))
        eventually(lambda: at_the_page().get("state") == "Leading", what="the page to name the leader")
        controller = explained()["controller"]
        assert controller["state"] == "Leading"
        assert at_the_page()["holder"] == controller["holder"]
        assert controller["since"] <= controller["renewed"]
        assert told(own, "get", "workloads", *scope)[1] == ""
        assert told(tenant, "explain", "first", *scope)[1].startswith("This is what its status")
    finally:
        replica.end()

    eventually(lambda: at_the_page().get("state") == "Absent", what="the page to miss the controller")
    warned = told(tenant, "explain", "first", *scope)[1]
    assert warned.startswith("Warning: No controller decides: Lease admitter-system/admitter-controller was")
    assert controller["holder"] in warned

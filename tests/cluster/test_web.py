"""The page on a real cluster: its own account, real tokens, and the rights that they have there."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
import yaml

from admitter.names import NAMESPACE
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

DEPLOYED = Path(__file__).parents[2] / "deploy" / "web.yaml"
ADDRESS = re.compile(r"http://[\d.]+:\d+")
ACCOUNT = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


class Web:
    """A page that is served by a process under its own account."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, token: str, **query: str) -> tuple[int, Json]:
        """The status and the answer."""
        url, bearer = f"{self.address}{path}?{urlencode(query)}", {"Authorization": f"Bearer {token}"}
        asked = Request(url, headers=bearer)  # noqa: S310  # its own address
        try:
            with urlopen(asked, timeout=30) as answer:  # noqa: S310  # its own address
                return answer.status, json.loads(answer.read())
        except HTTPError as refused:
            return refused.code, json.loads(refused.read())


@pytest.fixture
def web(team: Team, tmp_path: Path) -> Iterator[Web]:
    """The page, under the account of its manifest."""
    documents = [each for each in yaml.safe_load_all(DEPLOYED.read_text()) if each["kind"] in ACCOUNT]
    cluster = team.cluster
    cluster.run_kubectl("apply", "--filename=-", content=yaml.safe_dump_all(documents))
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, "admitter-web", tmp_path / "web")
    log = tmp_path / "web.log"
    command = [
        sys.executable,
        "-m",
        "admitter",
        "web",
        "--bind",
        "127.0.0.1:0",
        "--kubeconfig",
        str(kubeconfig),
    ]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        eventually(lambda: ADDRESS.search(log.read_text()), what="an address")
        found = ADDRESS.search(log.read_text())
        assert found is not None
        yield Web(found.group())
        process.terminate()


def token_of(cluster: Cluster, namespace: str, name: str) -> str:
    return cluster.run_kubectl("create", "token", name, f"--namespace={namespace}").strip()


@pytest.mark.usefixtures("user")
def test_everybody_sees_what_he_may_list(team: Team, web: Web) -> None:
    """The tenant by the rights that `edit` gives; the operator by a role that lists ClusterQueues."""
    team.offers({"cpu": {"spot": "2"}})

    team.apply(job(team.namespace, "first", requests={"cpu": "2"}, seconds=None))
    eventually(lambda: team.state("first") == "Admitted", what="the first one to be admitted")
    team.apply(job(team.namespace, "second", requests={"cpu": "2"}, seconds=None))
    tenant = token_of(team.cluster, team.namespace, "user")

    def rows() -> dict[str, Json]:
        status, answer = web.ask("/api/namespace", tenant, name=team.namespace)
        return {row["name"]: row for row in answer["rows"]} if status == 200 else {}

    eventually(lambda: rows().get("first", {}).get("state") == "Admitted", what="the page's news")
    eventually(lambda: rows().get("second", {}).get("position") == 1, what="the other one's place in line")

    def explained(path: str) -> list[str]:
        status, answer = web.ask(path, tenant, namespace=team.namespace, name="second")
        return list(answer["lines"]) if status == 200 else []

    # On a busy machine what its status says comes first.
    eventually(lambda: "short" in str(explained("/api/workload")), what="the reason in full")
    assert "Start: " in str(explained("/api/outlook"))
    assert web.ask("/api/namespace", tenant, name="default")[0] == 403
    assert web.ask("/api/tree", tenant)[0] == 403
    assert web.ask("/api/tree", "nonsense")[0] == 401

    scope = f"--namespace={team.namespace}"
    team.cluster.run_kubectl("create", "serviceaccount", "operator", scope)
    binding = f"{team.namespace}-operator"
    account = f"--serviceaccount={team.namespace}:operator"
    team.cluster.run_kubectl("create", "clusterrolebinding", binding, "--clusterrole=admitter-admin", account)
    team.made.append(f"clusterrolebinding/{binding}")
    operator = token_of(team.cluster, team.namespace, "operator")
    eventually(lambda: web.ask("/api/tree", operator)[0] == 200, what="a role that is known")
    lines = web.ask("/api/tree", operator)[1]["lines"]
    line = next(each for each in lines if each["name"] == team.cluster_queue)
    assert (line["waiting"], line["admitted"]) == (1, 1)

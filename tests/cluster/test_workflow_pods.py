"""What workflow tools make, as in docs/examples/workflows: by the account of each tool, it waits and runs."""

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json, local_queue
from tests.cluster.people import Person
from tests.cluster.pods import GATE, QUEUE, USER, gates
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

DOCS = Path(__file__).parents[2] / "docs"
BINDING = re.compile(
    r"^kubectl create rolebinding (\S+) --clusterrole=admitter-submitter"
    r" --serviceaccount=(\S+) --namespace=research$",
    re.MULTILINE,
)
TOOLS = {
    "argo": "argo-submits",
    "airflow": "airflow-submits",
    "tekton": "tekton-submits",
    "dask": "dask-submits",
    "skypilot": "sky-submits",
    "jupyterhub": "hub-submits",
    "notebook": "notebooks-submit",
}
"""The tools, and the name of the RoleBinding that its page gives to the account of each."""
WORKLOADS = {
    "argo": {"pod": 1, "podgroup": 1},
    "dask": {"pod": 3},
    "skypilot": {"podgroup": 1},
}
"""What has a Workload of those that make more than one pod: pods by themselves, and groups."""
NONE, ENOUGH = "0", "16"
RULE: Json = {
    "apiGroups": ["", "apps"],
    "resources": ["pods", "serviceaccounts", "deployments", "statefulsets"],
    "verbs": ["create"],
}


def bindings() -> dict[str, str]:
    """The accounts to which pages let give the right to submit, by the name of the RoleBinding."""
    return {
        name: account
        for page in sorted((DOCS / "workflows").glob("*.md"))
        for name, account in BINDING.findall(page.read_text())
    }


def made_by(tool: str, namespace: str) -> list[Json]:
    """What a tool makes, in another namespace, with owners that have a UID."""
    text = (DOCS / "examples" / "workflows" / f"{tool}-creates.yaml").read_text()
    # Through JSON, so that each has its own of what the file writes once for several.
    items: list[Json] = json.loads(json.dumps(yaml.safe_load(text)["items"]))
    uids: dict[str, str] = {}
    for manifest in items:
        manifest["metadata"]["namespace"] = namespace
        for owner in manifest["metadata"].get("ownerReferences", ()):
            owner["uid"] = uids.setdefault(owner["name"], str(uuid4()))
    return items


class Tool:
    """A tool at work in a namespace, by its account."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self.binding, self.account = TOOLS[name], bindings()[TOOLS[name]]
        self.person = Person(cluster, namespace, f"system:serviceaccount:{self.account}").may(RULE)
        made = made_by(name, namespace)
        for each in made:
            if each["kind"] == "ServiceAccount":
                self.person.makes(each)
        self.manifests = [each for each in made if each["kind"] != "ServiceAccount"]

    def is_refused(self) -> bool:
        """Whether each of them is: policies with parameters are read late by the API server."""
        told = f"user {self.person.name} may not submit to queue main in namespace {self.person.namespace}"
        return all(told in self._refusal(each) for each in self.manifests)

    def _refusal(self, manifest: Json) -> str:
        try:
            self.person.makes(manifest, "--dry-run=server")
        except KubectlError as error:
            return str(error)
        return ""

    def may_submit(self) -> None:
        """Give the account the right, by the command of the page."""
        command = ["create", "rolebinding", self.binding, "--clusterrole=admitter-submitter"]
        account, scope = f"--serviceaccount={self.account}", f"--namespace={self.person.namespace}"
        self.person.cluster.run_kubectl(*command, account, scope)
        eventually(self.is_queued, what=f"an API server that lets {self.account} submit")

    def is_queued(self) -> bool:
        """Whether each pod that it would make has a gate, and each template a queue."""
        with suppress(KubectlError):
            return all(_is_queued(self.person.makes(each, "--dry-run=server")) for each in self.manifests)
        return False


def _is_queued(made: Json) -> bool:
    if made["kind"] == "Pod":
        return GATE in gates(made)
    return bool(made["spec"]["template"]["metadata"]["labels"][QUEUE] == "main")


@pytest.mark.parametrize("name", TOOLS)
def test_the_account_of_a_tool_needs_the_right_to_submit(
    installed: Cluster, namespace: str, name: str
) -> None:
    queue = local_queue(namespace, f"{namespace}-queue")
    installed.run_kubectl("create", "--filename=-", content=json.dumps(queue))
    tool = Tool(installed, namespace, name)
    eventually(tool.is_refused, what="all of it to be refused")
    tool.may_submit()


def pods(team: Team) -> list[Json]:
    return list(team.read("pods")["items"])


def gated(team: Team) -> list[bool]:
    """For each pod, whether Kubernetes says that it waits for a gate."""
    return [
        any(
            c["type"] == "PodScheduled" and c.get("reason") == "SchedulingGated"
            for c in p["status"].get("conditions", ())
        )
        for p in pods(team)
    ]


def kinds(team: Team) -> Counter[str]:
    """How many Workloads there are of each kind, with which their names begin."""
    items = team.read("workloads.admitter.dev")["items"]
    return Counter(each["metadata"]["name"].partition("-")[0] for each in items)


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_makes_waits_for_quota_and_runs(team: Team, name: str) -> None:
    team.offers({"cpu": {"on-demand": NONE}, "memory": {"on-demand": NONE}})
    tool = Tool(team.cluster, team.namespace, name)
    tool.may_submit()
    for manifest in tool.manifests:
        tool.person.makes(manifest)
    expected = WORKLOADS.get(name, {"pod": 1})
    eventually(lambda: kinds(team) == expected, what=f"the Workloads {expected}")
    eventually(lambda: set(team.states()) == {"Pending"}, what="Workloads that wait")
    eventually(lambda: gated(team) == [True] * len(tool.manifests), what="pods that are gated")

    team.offers({"cpu": {"on-demand": ENOUGH}, "memory": {"on-demand": "64Gi"}})
    eventually(lambda: {pod["status"]["phase"] for pod in pods(team)} == {"Running"}, what="running pods")
    assert set(team.states()) == {"Admitted"}
    for pod in pods(team):
        assert pod["spec"]["nodeSelector"] == {"instance-type": "on-demand"}
        if pod["metadata"]["name"] in {each["metadata"]["name"] for each in tool.manifests}:
            assert pod["metadata"]["annotations"][USER] == tool.person.name

    team.kubectl("delete", ",".join({each["kind"].lower() for each in tool.manifests}), "--all")
    eventually(lambda: not pods(team), what="no pod")
    eventually(lambda: not team.states()["Admitted"], what="quota that is free")

"""A kind of one's own, with a definition, an operator and a JobKind: its objects are queued as Jobs are."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from admitter.client.transport import HttpTransport
from admitter.insight.snapshot_file import facts, load
from admitter.install.apply import install_kinds
from admitter.policy.snapshot import Snapshot
from admitter.sandbox.cluster import Cluster, KubectlError
from admitter.sandbox.control_plane import ControlPlane
from admitter.top.scene import scene
from tests.apiserver.experiments import GROUP, definition, job_kind, templates
from tests.cluster.auditor import Auditor
from tests.cluster.controller import Controller
from tests.cluster.kills import end_under_kills, none_lost_none_twice
from tests.cluster.objects import TOLERATES_SPOT, Json, job
from tests.cluster.team import Team
from tests.cluster.test_insight import ask
from tests.cluster.waiting import eventually, have_ended

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SELECTOR = f"--field-selector=metadata.name=experiments.{GROUP}"
OBJECTS = int(os.environ.get("ADMITTER_TEST_OBJECTS", "20"))
"""How many there are while the controller is killed."""
OPERATOR = "system:serviceaccount:lab:operator"
ROLE: Json = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "lab", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
    "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}],
}


@pytest.fixture(scope="module")
def lab(own: ControlPlane, owner: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A cluster with Experiments, what describes them, their operator, and a controller."""
    define(own)
    own.run_kubectl("create", "-f-", content=json.dumps(ROLE))
    asyncio.run(_install(own))
    eventually(lambda: _accepts(own), what="Experiments to be accepted")
    own.run_kubectl("create", "namespace", "lab")
    own.run_kubectl("create", "serviceaccount", "operator", "--namespace=lab")
    role, account = "--clusterrole=edit", "--serviceaccount=lab:operator"
    own.run_kubectl("create", "clusterrolebinding", "lab-operator", role, account)
    folder = tmp_path_factory.mktemp("lab")
    kubeconfig = own.service_account_kubeconfig("lab", "operator", folder / "operator")
    command = [sys.executable, "-m", "tests.cluster.experiment_operator", str(kubeconfig)]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as operator:
        controller = Controller.start(folder / "controller", own, owner)
        yield controller
        controller.stop()
        operator.kill()


def define(cluster: Cluster) -> None:
    """Make the API server serve Experiments."""
    cluster.run_kubectl("create", "-f-", content=json.dumps(definition()))
    cluster.await_definitions(f"experiments.{GROUP}")
    eventually(lambda: _accepts(cluster), what="Experiments to be accepted")


def _accepts(cluster: Cluster) -> bool:
    """Whether an Experiment may be made: policies know its kind a moment after it is served."""
    metadata = {"name": "any", "namespace": "default", "labels": {"admitter.dev/queue-name": "main"}}
    raw = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "metadata": metadata, "spec": {}}
    try:
        cluster.run_kubectl("create", "--dry-run=server", "-f-", content=json.dumps(raw))
    except KubectlError:
        return False
    return True


async def _install(cluster: Cluster) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        kind = job_kind(operators=[OPERATOR])
        await install_kinds(transport, {"experiment": kind})


class Lab(Team):
    """A team with Experiments."""

    def submit(self, name: str, control: int = 1, probe: int = 1, copies: int = 1, **more: Any) -> None:
        """A user makes an Experiment."""
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": {"admitter.dev/queue-name": "main"},
        }
        probes = [{"name": "probe", "copies": copies, "template": _template(self, probe, **more)}]
        spec = {"state": "Running", "control": _template(self, control, **more), "probes": probes}
        self.apply({"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "metadata": metadata, "spec": spec})

    def experiment(self, name: str) -> dict[str, Any]:
        return self.read("experiment", name)

    def pods(self, job: str) -> list[dict[str, Any]]:
        uid = self.experiment(job)["metadata"]["uid"]
        pods = self.read("pods")["items"]
        own = [p for p in pods if p["metadata"]["ownerReferences"][0]["uid"] == uid]
        return sorted(own, key=lambda p: int(p["metadata"]["name"].rpartition("-")[2]))

    def two_flavors(self, **preemption: Json | str) -> dict[tuple[str, str], float]:
        """Two CPUs of spot nodes and four on demand; returns them as limits."""
        self.offers({"cpu": {"spot": "2", "on-demand": "4"}}, preemption=preemption)
        return {(self.flavor("spot"), "cpu"): 2.0, (self.flavor("on-demand"), "cpu"): 4.0}

    def left(self, name: str) -> list[str]:
        """What of an admission is left in an Experiment."""
        raw = self.experiment(name)
        found = [key for key in raw["metadata"].get("annotations", {}) if key == "admitter.dev/injected"]
        for template in templates(raw):
            found += template["spec"].get("nodeSelector") or {}
            marks = (template.get("metadata") or {}).values()
            found += [key for part in marks for key in part if key != "admitter.dev/simulated-runtime"]
        return found


def _template(lab: Lab, cpu: int, seconds: int | None = None, priority: str = "") -> Json:
    made: Json = job(lab.namespace, "any", requests={"cpu": str(cpu)}, seconds=seconds)["spec"]["template"]
    if priority:
        made["spec"]["priorityClassName"] = priority
    assert made["spec"]["tolerations"] == TOLERATES_SPOT
    return made


@pytest.fixture
def team(own: ControlPlane, lab: Controller) -> Iterator[Lab]:
    """A team in the lab; whatever it does, only its killing ends the controller."""
    name, crashes = f"lab-{uuid4().hex[:6]}", lab.crashes
    own.run_kubectl("create", "namespace", name)
    own.run_kubectl("label", "namespace", name, f"team={name}")
    made = Lab(own, name, lab)
    yield made
    made.close()
    own.run_kubectl("delete", "namespace", name, "--wait=false")
    assert lab.crashes == crashes, "the controller has ended by itself"
    assert "Traceback" not in lab.log


def test_two_pod_sets_run_on_two_flavors_and_the_next_waits_for_them(team: Lab) -> None:
    limits = team.two_flavors()
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("first", control=2, probe=2, copies=2)
        team.runs("first", pods=3)
        assert team.node_types("first") == ["spot", "on-demand", "on-demand"]
        workload = team.workload("first")
        assert workload["metadata"]["ownerReferences"][0]["apiVersion"] == f"{GROUP}/v1"
        assert [each["name"] for each in workload["spec"]["podSets"]] == ["control", "probe"]
        team.submit("second", seconds=1)
        eventually(lambda: team.reason("second") == "InsufficientQuota", what="the second one to wait")
        assert team.pods("second") == []
        assert team.experiment("second")["spec"]["state"] == "Stopped"
        team.kubectl("delete", "experiment", "first")
        eventually(lambda: team.state("second") == "Finished", what="the second one to end")
        assert team.condition("second", "Finished")["message"] == "all probes have come back"
    assert auditor.excesses == []


def test_a_victim_runs_again_elsewhere_with_nothing_of_the_first_flavors(team: Lab) -> None:
    limits = team.two_flavors(withinClusterQueue="LowerPriority")
    high = team.priority_class("high", 10)
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("victim", control=2, probe=1)
        team.runs("victim", pods=2)
        assert team.node_types("victim") == ["spot", "on-demand"]
        team.submit("preemptor", control=2, probe=4, priority=high)
        team.runs("preemptor", pods=2)
        assert team.condition("victim", "Preempted")["status"] == "True"
        eventually(lambda: team.reason("victim") == "InsufficientQuota", what="the victim to wait")
        assert team.left("victim") == []
        team.submit("small", control=2, probe=1, priority=high)
        eventually(lambda: team.reason("small") == "InsufficientQuota", what="the small one to wait")
        team.controller.restart()
        team.kubectl("delete", "experiment", "preemptor")
        team.runs("small", pods=2)
        # The pods on demand may have gone first: then there is room for all of it.
        assert team.node_types("small") in (["spot", "on-demand"], ["on-demand", "on-demand"])
        team.kubectl("delete", "experiment", "small")
        team.runs("victim", pods=2)
    assert auditor.excesses == []


def test_it_is_stopped_at_its_maximum_run_time_and_the_next_one_runs(team: Lab) -> None:
    team.offers({"cpu": {"spot": "2"}}, lifecycle={"maxRuntime": "20s"})
    limits = {(team.flavor("spot"), "cpu"): 2.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("long")
        team.runs("long", pods=2)
        team.submit("next", seconds=1)
        eventually(lambda: team.state("long") == "Finished", what="the end of its time")
        assert team.reason("long") == "MaxRuntimeExceeded"
        assert team.experiment("long")["spec"]["state"] == "Stopped"
        have_ended(lambda: team.pods("long"))
        assert team.left("long") == []
        eventually(lambda: team.state("next") == "Finished", what="the next one to end")
        assert team.condition("next", "Finished")["reason"] == "JobSucceeded"
    assert auditor.excesses == []


def test_it_is_deleted_while_it_waits_runs_or_is_evicted(team: Lab) -> None:
    limits = team.two_flavors(withinClusterQueue="LowerPriority")
    high = team.priority_class("high", 10)
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("runs", control=2, probe=4)
        team.runs("runs", pods=2)
        team.submit("waits")
        eventually(lambda: team.reason("waits") == "InsufficientQuota", what="one to wait")
        team.kubectl("delete", "experiment", "waits")
        team.kubectl("delete", "experiment", "runs")
        eventually(lambda: not team.workloads() and not team.read("pods")["items"], what="nothing left")
        team.submit("evicted", control=2, probe=4)
        team.runs("evicted", pods=2)
        team.submit("last", control=2, probe=4, priority=high)
        eventually(
            lambda: team.experiment("evicted")["spec"]["state"] == "Stopped", what="the victim to be stopped"
        )
        team.kubectl("delete", "experiment", "evicted")
        team.runs("last", pods=2)
    assert auditor.excesses == []


def test_what_runs_is_counted_while_its_kind_is_not_described(team: Lab) -> None:
    limits = team.two_flavors()
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("runs", control=2, probe=4)
        team.runs("runs", pods=2)
        team.submit("waits", seconds=1)
        eventually(lambda: team.reason("waits") == "InsufficientQuota", what="one to wait")
        team.cluster.run_kubectl("delete", "jobkind", "experiment")
        eventually(lambda: team.reason("waits") == "KindInactive", what="its kind to be known no more")
        assert team.state("runs") == "Admitted"
        asyncio.run(_install(team.cluster))
        eventually(lambda: team.reason("waits") == "InsufficientQuota", what="its kind to be known again")
        team.kubectl("delete", "experiment", "runs")
        eventually(lambda: team.state("waits") == "Finished", what="the other one to end")
    assert auditor.excesses == []


def test_each_of_many_runs_once_though_the_controller_is_killed(team: Lab) -> None:
    random = Random(7)
    team.offers({"cpu": {"spot": "6", "on-demand": "6"}}, preemption={"withinClusterQueue": "LowerPriority"})
    limits = {(team.flavor("spot"), "cpu"): 6.0, (team.flavor("on-demand"), "cpu"): 6.0}
    high = team.priority_class("high", 10)
    submissions = [
        partial(
            team.submit,
            f"e-{number}",
            copies=random.randint(1, 2),
            seconds=1,
            priority=random.choice(["", high]),
        )
        for number in range(OBJECTS)
    ]
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        end_under_kills(team.controller, random, submissions, lambda: len(auditor.finished))
    none_lost_none_twice(auditor, OBJECTS, lambda _: [2, 3])
    assert auditor.most_on["spot"] <= 6
    assert auditor.most_on["on-demand"] <= 6
    ended = [e["status"]["phase"] for e in team.read("experiments")["items"]]
    assert ended == ["Done"] * OBJECTS


def test_workloads_go_with_the_definition_and_the_kind_works_again_with_it(team: Lab) -> None:
    limits = team.two_flavors()
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.submit("runs", control=2, probe=4)
        team.runs("runs", pods=2)
        team.submit("waits")
        eventually(lambda: team.reason("waits") == "InsufficientQuota", what="one to wait")
        team.cluster.run_kubectl("delete", "crd", f"experiments.{GROUP}", "--wait=false")
        eventually(lambda: not team.workloads() and not team.read("pods")["items"], what="nothing left")
        eventually(lambda: not team.read("crd", SELECTOR)["items"], what="the definition to be gone")
        define(team.cluster)
        team.submit("new", seconds=1)
        eventually(lambda: team.state("new") == "Finished", what="a new one to end")
    assert auditor.excesses == []


def test_readers_call_it_by_its_kind_and_name(team: Lab, tmp_path: Path) -> None:
    team.two_flavors()
    team.submit("first", control=2, probe=4)
    team.runs("first", pods=2)
    team.submit("second", control=2)
    eventually(lambda: team.reason("second") == "InsufficientQuota", what="the second one to wait")
    heading, *rows = team.kubectl("get", "workloads").splitlines()
    assert heading.split()[:3] == ["NAME", "KIND", "OBJECT"]
    assert sorted(row.split()[1:3] for row in rows) == [["Experiment", "first"], ["Experiment", "second"]]
    listed = ask(team, "get", "workloads", "-n", team.namespace)
    titles = ["experiment/first", "experiment/second"]
    assert [line.split()[1] for line in listed.splitlines()[1:]] == titles
    assert "experiment/second: Pending" in ask(team, "explain", "experiment/second", "-n", team.namespace)
    happened = ask(team, "history", "experiments/first", "-n", team.namespace)
    assert "experiment/first" in happened
    path = tmp_path / "state.json"
    path.write_text(ask(team, "snapshot"))
    known = facts(load(path))
    assert known.read == frozenset({f"experiments.{GROUP}"})
    seen = scene(known, Snapshot(known))
    assert [row.job for row in seen.rows[team.cluster_queue]] == titles
    assert "it is evicted" in ask(team, "pause", "experiment/first", "-n", team.namespace).lower()
    eventually(lambda: team.pods("first") == [], what="the first one to be paused")

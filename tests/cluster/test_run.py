"""The controller as a process; then on a cluster from which an administrator has removed the policies."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.controller import Controller
from tests.cluster.objects import ADMITTER, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


@contextmanager
def running_controller(cluster: Cluster, folder: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`admitter run` under its own account, by default on a free port; its log is in the folder."""
    cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder / "kubeconfig")
    command = [sys.executable, "-m", "admitter", "run", *(options or ("--bind", "127.0.0.1:0"))]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--kubeconfig={folder / 'kubeconfig'}"], stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def answer(folder: Path, path: str) -> str:
    found = re.search(r'"probes":\s*"([0-9.:]+)"', (folder / "log").read_text())
    if not found:
        return ""
    try:
        with urlopen(f"http://{found[1]}{path}") as response:
            return str(response.read().decode())
    except OSError:
        return ""


def run_as(kubeconfig: Path | None, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0", f"--kubeconfig={kubeconfig}"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)


def test_an_administrator_runs_the_controller_as_its_account(
    own: ControlPlane, own_team: Team, tmp_path: Path
) -> None:
    controller = run_as(own.kubeconfig, tmp_path)
    try:
        eventually(lambda: answer(tmp_path, "/readyz") == "leader\n", what="the controller to be ready")
        assert "impersonating the controller's account" in (tmp_path / "log").read_text()
        own_team.offers({"cpu": {"on-demand": "2"}})
        own_team.apply(job(own_team.namespace, "first", seconds=None))
        own_team.runs("first")
    finally:
        controller.kill()
        controller.wait()


def test_a_user_that_may_not_be_the_controller_is_told_so(own: ControlPlane, tmp_path: Path) -> None:
    viewer = own.service_account_kubeconfig("default", "default", tmp_path / "viewer")
    controller = run_as(viewer, tmp_path)
    assert controller.wait(timeout=180) == 1
    said = (tmp_path / "log").read_text()
    assert "system:serviceaccount:default:default is not the controller's account" in said
    assert "kubectl create token admitter-controller --namespace admitter-system" in said


@pytest.fixture(scope="module")
def without_policies(own: ControlPlane) -> ControlPlane:
    """The module's cluster with Admitter's definitions and permissions alone, for the tests from here on."""
    group = ("api-resources", "--api-group=admissionregistration.k8s.io", "--output=name")
    policies = [name for name in own.run_kubectl(*group).split() if "admissionpolic" in name]
    for kind in sorted(policies, key=lambda name: "bindings" not in name):
        own.run_kubectl("delete", kind, "--all")
    return own


@pytest.fixture
def team(without_policies: ControlPlane, own_team: Team, tmp_path: Path) -> Team:
    """A team there; the test starts its controller."""
    return Team(without_policies, own_team.namespace, Controller(tmp_path), own_team.made)


def test_without_policies_the_controller_alone_guards_and_says_so(
    without_policies: ControlPlane, team: Team, tmp_path: Path
) -> None:
    with running_controller(without_policies, tmp_path) as controller:
        eventually(
            lambda: answer(tmp_path, "/readyz").startswith("leader"), what="the controller to be ready"
        )
        assert answer(tmp_path, "/healthz") == "ok\n"
        assert "process_cpu_seconds_total" in answer(tmp_path, "/metrics")
        assert "the controller alone" in (tmp_path / "log").read_text()
        team.apply(job(team.namespace, "early", suspend=False, seconds=None, completions=5))
        eventually(lambda: team.read("job", "early")["spec"]["suspend"], what="the Job to be suspended")
        eventually(lambda: team.events("early").get("Suspended"), what="an event that says so")
        eventually(lambda: not team.pods("early"), what="its pods to go")

        team.offers({"cpu": {"on-demand": "2"}})
        team.runs("early")
        team.patch("job", "early", {"spec": {"parallelism": 3}})
        eventually(lambda: team.read("job", "early")["spec"]["suspend"], what="the larger Job to be stopped")
        eventually(lambda: team.state("early") == "Pending", what="its quota to be free")
        assert team.condition("early", "Evicted")["reason"] == "JobChanged"

        controller.send_signal(signal.SIGTERM)
        assert controller.wait(timeout=180) == 0
        assert '"event":"stopped"' in (tmp_path / "log").read_text()


def test_without_policies_a_user_may_not_claim_that_the_api_server_let_its_job_pass(
    without_policies: ControlPlane, team: Team, tmp_path: Path
) -> None:
    rules = {"namespaceSelector": {}, "rules": [{"from": "Namespace", "create": True}]}
    policy = {"apiVersion": ADMITTER, "kind": "PlacementPolicy", "metadata": {"name": "all"}, "spec": rules}
    said = {"boss": "[]", "root": '["system:masters"]'}
    forged = [job(team.namespace, f"of-{user}", queue=None, suspend=False, seconds=None) for user in said]
    for made, (user, groups) in zip(forged, said.items(), strict=True):
        made["metadata"]["annotations"] = {"admitter.dev/user": user, "admitter.dev/groups": groups}
    with running_controller(without_policies, tmp_path):
        team.apply(policy)
        eventually(lambda: team.read("placementpolicy", "all").get("status"), what="the policy to be seen")
        long_ago = '{"status": {"since": "2020-01-01T00:00:00Z"}}'
        team.kubectl(
            "patch", "placementpolicy", "all", "--subresource=status", "--type=merge", f"-p={long_ago}"
        )
        team.apply(*forged)
        eventually(lambda: team.events("of-boss").get("SubmitDenied"), what="a Job that is held")
        eventually(lambda: team.read("job", "of-boss")["spec"]["suspend"], what="a Job that does not run")
        eventually(lambda: team.workload("of-root"), what="a Job that is queued")
        assert team.read("job", "of-root")["metadata"]["labels"]["admitter.dev/queue-name"] == team.namespace
        log = (tmp_path / "log").read_text()
        assert "what Jobs say of their user is believed" in log
        assert "suspends Jobs until a rule has placed them" in log

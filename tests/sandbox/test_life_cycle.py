"""The control plane comes up whole and leaves nothing behind, however it ends."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from rich.console import Console

from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.component_commands import CONTROLLER
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.errors import StartError
from admitter.sandbox.state import Phase, SandboxState
from tests.cluster.objects import job
from tests.sandbox.helpers import eventually, processes_in, sandbox_command, started, write_program

pytestmark = pytest.mark.cluster

COMPONENTS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
OWNER = """
import os, sys
from pathlib import Path
from admitter.sandbox.control_plane import ControlPlane
ControlPlane.start(Path(sys.argv[1]), nodes=None, owner=os.getpid())
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where `admitter sandbox` has its default sandbox if the state of programs is in `tmp_path`."""
    place = tmp_path / "admitter" / "sandbox" / "default"
    yield place
    ControlPlane.stop_in(place)


def state_of(folder: Path) -> SandboxState:
    state = SandboxState.load(folder)
    assert state
    return state


def test_commands_start_show_and_stop_it(tmp_path: Path, folder: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}

    def run(*arguments: str) -> tuple[int, str]:
        with started(*sandbox_command(*arguments), environment=environment) as process:
            output, errors = process.communicate()
        return process.returncode, output + errors

    assert run("status") == (1, "Error: sandbox default is not running\n")
    code, said = run("up", "--no-nodes")
    assert (code, "Sandbox default is up" in said) == (0, True)
    assert set(COMPONENTS) < set(processes_in(folder))
    assert run("up")[1].startswith("Sandbox default is running already")
    code, said = run("status")
    assert code == 0
    assert all(name in said for name in COMPONENTS)

    shell = f"{run('env')[1]} kubectl auth whoami --output=jsonpath={{.status.userInfo.username}}"
    answer = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, check=True)
    assert answer.stdout == "admitter-sandbox-admin"

    assert run("down") == (0, "Sandbox default is stopped.\n")
    assert processes_in(folder) == []
    kept = {"logs", "supervisor.log", ".lock", ".lock.holder", ".operators.lock"}
    assert {path.name for path in folder.iterdir()} <= kept
    assert run("down") == (0, "Sandbox default is not running.\n")


def admit_what_init_writes(plane: ControlPlane) -> None:
    """A DaemonSet holds 1 CPU of each node; a Job runs in the queue that is written for the rest."""
    containers = [{"name": "agent", "image": "agent", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"containers": containers, "tolerations": [{"operator": "Exists"}]}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": spec}
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
    }
    agent |= {"spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}}
    plane.run_kubectl("apply", "--filename=-", content=json.dumps(agent))

    def agents() -> int:
        return sum("nodeName" in pod["spec"] for pod in plane.read("pods", "--selector=app=agent")["items"])

    eventually(lambda: agents() == 6, "each node has an agent")
    command = [sys.executable, "-m", "admitter", "init", f"--kubeconfig={plane.kubeconfig}", "--team=all=1"]
    written = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "#   on-demand: 2 nodes: 30 cpu, 128Gi memory\n" in written
    plane.run_kubectl("apply", "--filename=-", content=written)
    states = ("--namespace=all", "--output=jsonpath={.items[*].status.state}")
    plane.run_kubectl("apply", "--filename=-", content=json.dumps(job("all", "one", requests={"cpu": "15"})))
    eventually(lambda: "Finished" in plane.run_kubectl("get", "workloads", *states), "the Job has run")


@pytest.mark.long
def test_a_controller_runs_beside_it_and_ends_alone_or_with_it(tmp_path: Path, folder: Path) -> None:
    def run(*arguments: str) -> str:
        with started(*sandbox_command(*arguments), environment={"XDG_STATE_HOME": str(tmp_path)}) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, output + errors
        return output

    log = folder / "logs" / f"{CONTROLLER}.log"
    said = f"Admitter is installed, and its controller decides. Its log: {log}"
    assert run("up", "--with-controller").splitlines()[0] == said
    plane = ControlPlane.find(folder)
    assert plane
    admit_what_init_writes(plane)

    os.kill(state_of(folder).components[CONTROLLER].pid, signal.SIGKILL)
    eventually(lambda: CONTROLLER not in state_of(folder).components, "it is known to be gone")
    assert plane.read("nodes")["items"], "the rest goes on"
    for _ in range(2):  # the second one finds it running
        assert run("up", "--with-controller").splitlines()[0] == said
    assert CONTROLLER in run("status")
    assert run("down") == "Sandbox default is stopped.\n"
    assert processes_in(folder) == []


@pytest.mark.long
def test_an_operator_runs_under_its_own_account_and_again_after_its_end(folder: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        with started(*sandbox_command(*arguments), environment={"XDG_STATE_HOME": str(tmp_path)}) as process:
            output, errors = process.communicate()
        assert process.returncode == 0, output + errors
        return output

    told = "Operator jobset runs as system:serviceaccount:jobset-system:jobset-controller-manager."
    assert run("up", "--no-nodes", "--with", "jobset").splitlines()[0] == told
    operator = state_of(folder).components["jobset"]
    assert {each.laddr.ip for each in psutil.Process(operator.pid).net_connections("tcp")} == {"127.0.0.1"}
    os.kill(operator.pid, signal.SIGKILL)
    eventually(lambda: "jobset" not in state_of(folder).components, "it is known to be gone")
    for _ in range(2):  # the second one finds it running
        assert run("up", "--with", "jobset").splitlines()[0] == told
    plane = ControlPlane.find(folder)
    assert plane
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}
    job = {"name": "work", "template": {"spec": {"template": {"spec": pod}}}}
    manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"replicatedJobs": [job]},
    }
    plane.run_kubectl("create", "--filename=-", content=json.dumps(manifest))
    eventually(lambda: plane.read("jobs")["items"], "its Job is made")
    assert "jobset" in run("status")
    assert run("down") == "Sandbox default is stopped.\n"
    assert processes_in(folder) == []


@pytest.mark.long
def test_a_controller_that_ends_at_once_is_said_with_its_log(folder: Path) -> None:
    with ControlPlane.start(folder, nodes=None) as plane:
        with pytest.raises(StartError, match=r"admitter-controller ended; .*(?s:.)*admitter install"):
            plane.run_controller()
        assert plane.read("namespace", "default"), "the rest goes on"


@pytest.mark.long
def test_two_that_start_at_once_get_the_same_one(folder: Path) -> None:
    with ThreadPoolExecutor() as pool:
        starts = [pool.submit(ControlPlane.start, folder, nodes=None) for _ in range(2)]
        planes = [start.result() for start in starts]
    assert sorted(plane.started for plane in planes) == [False, True]
    assert planes[0].kubeconfig == planes[1].kubeconfig
    planes[0].stop()
    assert processes_in(folder) == []


def test_it_ends_with_its_owner_even_a_killed_one(folder: Path) -> None:
    with started(sys.executable, "-c", OWNER, str(folder)) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == "up\n"
        assert len(processes_in(folder)) == len(COMPONENTS) + 1
        owner.kill()
    eventually(lambda: processes_in(folder) == [], "all of it is gone")
    assert SandboxState.load(folder) is None


@pytest.mark.long
def test_its_components_end_with_a_killed_supervisor(folder: Path) -> None:
    plane = ControlPlane.start(folder, nodes=None)
    os.kill(state_of(folder).supervisor.pid, signal.SIGKILL)
    eventually(lambda: processes_in(folder) == [], "all of it is gone")
    assert ControlPlane.find(folder) is None
    plane.stop()


@pytest.mark.long
def test_when_a_component_dies_the_rest_goes_and_the_reason_stays(folder: Path) -> None:
    plane = ControlPlane.start(folder, nodes=None)
    os.kill(state_of(folder).components["etcd"].pid, signal.SIGKILL)
    eventually(lambda: processes_in(folder) == [], "all of it is gone")
    state = state_of(folder)
    assert state.phase is Phase.FAILED
    assert state.message.startswith("etcd was killed by signal 9; ")
    assert str(folder / "logs" / "etcd.log") in state.message
    plane.stop()


@pytest.mark.long
@pytest.mark.parametrize("component", ["kube-apiserver", "kwok"])
def test_ctrl_c_leaves_nothing_however_far_the_start_is(tmp_path: Path, folder: Path, component: str) -> None:
    def component_runs() -> bool:
        state = SandboxState.load(folder)
        return state is not None and component in state.components

    environment = {"XDG_STATE_HOME": str(tmp_path)}
    with started(*sandbox_command("up"), environment=environment) as process:
        eventually(component_runs, f"{component} has been started")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode != 0
    assert processes_in(folder) == []
    assert SandboxState.load(folder) is None


@pytest.mark.long
def test_a_port_that_another_process_takes_first_is_no_failure(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd = ensure_programs(Console(stderr=True))["etcd"]
    marker = tmp_path / "tried"
    taken = f"test -e {marker} || {{ touch {marker}; echo 'bind: address already in use'; exit 1; }}"
    write_program(tmp_path / "assets" / "etcd", f'{taken}\nexec {etcd} "$@"')
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    with ControlPlane.start(folder, nodes=None) as plane:
        assert marker.exists()
        assert plane.read("namespace", "default")
    assert processes_in(folder) == []


def test_a_node_that_the_server_refuses_is_named(tmp_path: Path, folder: Path) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text('{apiVersion: v1, kind: Node, metadata: {name: wrong, labels: {zone: "a b"}}}')
    with pytest.raises(StartError, match=r"Node wrong: .*metadata.labels: Invalid value"):
        ControlPlane.start(folder, nodes=nodes)
    assert processes_in(folder) == []


def test_no_client_gets_in_without_an_identity(sandbox: ControlPlane) -> None:
    server = state_of(sandbox.folder).server
    trusting = ssl.create_default_context(cafile=sandbox.folder / "pki" / "ca.crt")
    with closing(HTTPSConnection(urlsplit(server).netloc, context=trusting)) as connection:
        connection.request("GET", "/version")
        assert connection.getresponse().status == 401


def test_a_service_account_acts_under_its_own_name_and_with_its_own_rights(
    sandbox: ControlPlane, tmp_path: Path
) -> None:
    path = sandbox.service_account_kubeconfig("default", "default", tmp_path / "kubeconfig")
    assert path.stat().st_mode & 0o077 == 0
    account = ControlPlane(kubectl=sandbox.kubectl, kubeconfig=path, folder=sandbox.folder, started=False)
    user = json.loads(account.run_kubectl("auth", "whoami", "--output=json"))["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    with pytest.raises(KubectlError, match="cannot list resource"):
        account.read("nodes")
    with pytest.raises(KubectlError, match='"absent" not found'):
        sandbox.service_account_kubeconfig("default", "absent", tmp_path / "other")


def test_the_default_nodes_are_there_with_labels_taints_and_gpus(sandbox: ControlPlane) -> None:
    selector = "--selector=instance-type,!example.com/only"  # not the nodes that tests make for themselves
    nodes = {n["metadata"]["name"]: n for n in sandbox.read("nodes", selector)["items"]}
    kinds = {name: node["metadata"]["labels"]["instance-type"] for name, node in nodes.items()}
    assert kinds == {
        "spot-0": "spot",
        "spot-1": "spot",
        "on-demand-0": "on-demand",
        "on-demand-1": "on-demand",
        "gpu-vendor1-0": "spot",
        "gpu-vendor2-0": "on-demand",
    }
    for name, node in nodes.items():
        spot = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
        assert node["spec"].get("taints", []) == (spot if kinds[name] == "spot" else [])
        assert node["status"]["allocatable"].get("nvidia.com/gpu") == ("8" if "gpu" in name else None)
    assert sandbox.simulated

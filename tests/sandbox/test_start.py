"""A start that fails or is given up, with stubs for the programs."""

import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from admitter.sandbox.component_commands import CONTROLLER, WANTED
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.errors import StartError
from admitter.sandbox.folders import exclusive
from admitter.sandbox.processes import ProcessIdentity
from admitter.sandbox.state import Phase, SandboxState
from admitter.sandbox.toolchain import PACKAGES
from tests.sandbox.helpers import eventually, processes_in, sandbox_command, started, write_program

HANGS = "exec sleep 600"
START = """
import sys
from pathlib import Path
from admitter.sandbox.control_plane import ControlPlane
ControlPlane.start(Path(sys.argv[1]), nodes=None, owner=int(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that run and never get ready."""
    folder = tmp_path / "assets"
    for name in PACKAGES:
        write_program(folder / name, HANGS)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "admitter" / "sandbox" / "default"
    yield place
    ControlPlane.stop_in(place)


def await_api_server(folder: Path) -> None:
    def runs() -> bool:
        state = SandboxState.load(folder)
        return state is not None and "kube-apiserver" in state.components

    eventually(runs, "the API server has been started")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_up_while_it_starts_ends_everything(folder: Path, number: signal.Signals) -> None:
    with started(*sandbox_command("up")) as process:
        await_api_server(folder)
        assert len(processes_in(folder)) == 3
        process.send_signal(number)
        process.communicate()
        assert process.returncode != 0
    eventually(lambda: processes_in(folder) == [], "all of it is gone")
    assert SandboxState.load(folder) is None


@pytest.mark.parametrize("milestone", [".lock", "supervisor.log", "state.json", "pki", "logs/etcd.log"])
def test_ctrl_c_at_any_moment_leaves_nothing(folder: Path, milestone: str) -> None:
    with started(*sandbox_command("up")) as process:
        eventually((folder / milestone).exists, f"{milestone} is there")
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert process.returncode != 0
    eventually(lambda: processes_in(folder) == [], "all of it is gone")
    assert SandboxState.load(folder) is None


def test_down_ends_a_start_of_another_process(folder: Path) -> None:
    with started(*sandbox_command("up")) as starting:
        await_api_server(folder)
        with started(*sandbox_command("down")) as stopping:
            assert stopping.communicate()[0] == "Sandbox default is stopped.\n"
        assert processes_in(folder) == []
        _, errors = starting.communicate()
        assert starting.returncode == 1
    assert "the control plane was stopped while it started" in errors


def test_an_owner_that_ends_during_the_start_ends_it(folder: Path) -> None:
    with (
        started("/bin/sleep", "600") as owner,
        started(sys.executable, "-c", START, str(folder), str(owner.pid)) as starting,
    ):
        await_api_server(folder)
        owner.kill()
        _, errors = starting.communicate()
    assert "the control plane was stopped while it started" in errors
    assert processes_in(folder) == []


def test_a_component_that_fails_is_named_with_its_log_and_last_words(assets: Path, folder: Path) -> None:
    write_program(assets / "etcd", "echo first; echo the disk is full >&2; exit 3")
    with pytest.raises(StartError) as failed:
        ControlPlane.start(folder)
    log = folder / "logs" / "etcd.log"
    assert str(failed.value) == f"etcd exited with 3; {log} ends with:\nfirst\nthe disk is full"
    assert processes_in(folder) == []

    with started(*sandbox_command("status")) as process:
        _, errors = process.communicate()
        assert process.returncode == 1
    assert errors.startswith("Error: sandbox default is not running: etcd exited with 3; ")


def test_ports_that_stay_taken_are_tried_three_times(assets: Path, folder: Path) -> None:
    write_program(assets / "etcd", f"echo again >> {assets}/tries; echo bind: address already in use; exit 1")
    with pytest.raises(StartError, match="address already in use"):
        ControlPlane.start(folder)
    assert (assets / "tries").read_text() == "again\n" * 3


def test_a_supervisor_that_can_not_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StartError, match="was stopped while it started"):
        ControlPlane.start(folder)


@pytest.mark.parametrize(
    ("given", "of_etcd", "of_the_api_server"),
    [({}, " 300", " 300"), ({"GOMAXPROCS": "1", "GOGC": "900"}, "1 900", " 900")],
)
def test_programs_use_as_many_processors_and_as_much_memory_as_is_said(
    assets: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    of_etcd: str,
    of_the_api_server: str,
) -> None:
    """But for the API server: that uses all processors."""
    for name in ("GOMAXPROCS", "GOGC"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for name in ("etcd", "kube-apiserver"):
        write_program(assets / name, f'echo "$GOMAXPROCS $GOGC"; {HANGS}')
    with started(*sandbox_command("up")) as process:
        logs = {name: folder / "logs" / f"{name}.log" for name in ("etcd", "kube-apiserver")}
        eventually(
            lambda: all(log.exists() and log.read_text() for log in logs.values()), "both have said it"
        )
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert logs["etcd"].read_text() == f"{of_etcd}\n"
        assert logs["kube-apiserver"].read_text() == f"{of_the_api_server}\n"


@contextmanager
def ready(folder: Path) -> Iterator[ControlPlane]:
    """A control plane with a supervisor that does nothing."""
    with started("/bin/sleep", "600") as supervisor:
        (folder / "logs").mkdir(parents=True)
        SandboxState(Phase.READY, ProcessIdentity.of(supervisor.pid)).save(folder)
        plane = ControlPlane.find(folder)
        assert plane
        yield plane


def test_a_start_of_the_controller_ends_with_its_control_plane(folder: Path) -> None:
    with ready(folder) as plane, ThreadPoolExecutor() as pool:
        running = pool.submit(plane.run_controller)
        eventually((folder / WANTED / f"{CONTROLLER}.json").exists, "the controller is wanted")
        assert ControlPlane.stop_in(folder)
        with pytest.raises(StartError, match="the control plane ended while admitter-controller started"):
            running.result(timeout=30)


def test_one_process_at_a_time_starts_the_controller(folder: Path) -> None:
    wanted, said = folder / WANTED / f"{CONTROLLER}.json", StringIO()
    log = folder / "logs" / f"{CONTROLLER}.log"
    with ready(folder) as plane, ThreadPoolExecutor() as pool:
        with exclusive(folder / ".lock", "", Console(file=StringIO())):
            running = pool.submit(plane.run_controller, Console(file=said))
            eventually(lambda: "or a program beside it: waiting for it" in said.getvalue(), "it waits")
            assert not wanted.exists()
        eventually(wanted.exists, "the controller is wanted")
        log.write_text('{"event":"deciding"}')
        wanted.unlink()
        assert running.result(timeout=30) == log

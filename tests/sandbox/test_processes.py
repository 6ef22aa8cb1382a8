import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.processes import ProcessIdentity, end
from admitter.sandbox.state import Phase, SandboxState
from tests.sandbox.helpers import eventually, started

PARENT = """
import signal, subprocess, sys
from admitter.sandbox.processes import dies_with_parent
child = subprocess.Popen(["/bin/sleep", "600"], preexec_fn=dies_with_parent(signal.SIGKILL))
print(child.pid, flush=True)
sys.stdin.read()
"""


INTERRUPTED = """
import os, signal
from admitter.sandbox.processes import start_child
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    start_child(["/bin/grep", "SigBlk", "/proc/self/status"], signal.SIGKILL).wait()
    print("lost")
except KeyboardInterrupt:
    print("interrupted")
"""
"""Ctrl-C comes in the hooks of a fork."""


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[str]"]:
    with started("/bin/sleep", "600") as process:
        yield process


def test_a_recycled_number_is_another_process(sleeper: "subprocess.Popen[str]", tmp_path: Path) -> None:
    running = ProcessIdentity.of(sleeper.pid)
    assert running.find() == psutil.Process(sleeper.pid)
    earlier = ProcessIdentity(sleeper.pid, running.created - 60)
    assert earlier.find() is None

    SandboxState(Phase.READY, earlier, {"etcd": earlier}).save(tmp_path)
    assert ControlPlane.find(tmp_path) is None
    assert ControlPlane.stop_in(tmp_path) is False
    assert sleeper.poll() is None


def test_a_process_that_was_not_collected_has_ended(sleeper: "subprocess.Popen[str]") -> None:
    identity = ProcessIdentity.of(sleeper.pid)
    sleeper.kill()
    eventually(lambda: identity.find() is None, "it counts as ended")


def test_a_process_that_does_not_end_when_asked_is_killed(sleeper: "subprocess.Popen[str]") -> None:
    # What a shell ignores, the program it becomes ignores too.
    with started("/bin/sh", "-c", "trap '' TERM; echo ready; exec sleep 600") as stubborn:
        assert stubborn.stdout
        assert stubborn.stdout.readline() == "ready\n"
        identity = ProcessIdentity.of(stubborn.pid)
        another = ProcessIdentity(sleeper.pid, 0)
        end([identity, another], grace=0.1)
        assert identity.find() is None
    assert sleeper.poll() is None


def test_a_child_ends_with_its_killed_parent() -> None:
    with started(sys.executable, "-c", PARENT) as parent:
        assert parent.stdout
        child = ProcessIdentity.of(int(parent.stdout.readline()))
        parent.kill()
    eventually(lambda: child.find() is None, "the child is gone")


def test_ctrl_c_while_a_child_is_started_is_not_lost() -> None:
    with started(sys.executable, "-u", "-c", INTERRUPTED) as parent:
        said, errors = parent.communicate()
    assert "interrupted\n" in said, said + errors
    assert errors == "", "no hook has ignored it"


def test_a_child_heeds_signals() -> None:
    waits = INTERRUPTED.replace("os.kill(os.getpid(), signal.SIGINT)", "None")
    with started(sys.executable, "-u", "-c", waits) as parent:
        said, errors = parent.communicate()
    assert said.split() == ["SigBlk:", "0" * 16, "lost"], errors


def test_a_state_survives_the_way_through_its_file(tmp_path: Path) -> None:
    state = SandboxState(
        Phase.FAILED,
        ProcessIdentity(1, 2.5),
        {"etcd": ProcessIdentity(3, 4.5)},
        server="https://127.0.0.1:6443",
        kubectl="/bin/kubectl",
        message="why",
    )
    state.save(tmp_path)
    assert SandboxState.load(tmp_path) == state
    SandboxState.remove(tmp_path)
    assert SandboxState.load(tmp_path) is None

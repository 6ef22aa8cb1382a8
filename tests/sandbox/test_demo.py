"""`admitter demo` shows what it says, and leaves nothing behind."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from admitter.sandbox.control_plane import ControlPlane
from tests.sandbox.helpers import eventually, processes_in, started

pytestmark = [pytest.mark.cluster, pytest.mark.long]

CONTROLLER = ["-m", "admitter", "run"]


def controllers(kubeconfig: Path) -> list[int]:
    """The processes that run a controller with a kubeconfig."""
    found = [(process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, words in found if str(kubeconfig) in words and words[1:4] == CONTROLLER]


def test_what_is_kept_ends_with_the_demo_also_if_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "admitter" / "sandbox" / "demo"
    command = (sys.executable, "-m", "admitter", "demo", "--keep")
    try:
        with started(*command, environment={"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"}) as process:
            assert process.stdout is not None
            said = ""
            while "kubectl get workloads -A" not in said:
                line = process.stdout.readline()
                assert line, f"{said}{process.communicate()[1]}"
                said += line
            assert "All 36 pods ran on nodes with the labels of the flavors" in said
            assert "Kept running until you press Ctrl-C." in said
            assert len(controllers(folder / "controller.kubeconfig")) == 1
            process.kill()
            process.wait()
        eventually(lambda: not controllers(folder / "controller.kubeconfig"), "the controller has ended")
        eventually(lambda: processes_in(folder) == [], "the control plane has ended")
    finally:
        for each in controllers(folder / "controller.kubeconfig"):
            os.kill(each, signal.SIGKILL)
        ControlPlane.stop_in(folder)

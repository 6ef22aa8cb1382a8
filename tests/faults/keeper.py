"""A control plane that starts its API server again when it ends, on the same port and data.

The sandbox takes its control plane down with any component. So what it starts as API server here is a
keeper that stays, and runs the real one: it is what a kubelet does for a cluster's own API server.
"""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console

from admitter.sandbox.build import ensure_programs
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.processes import dies_with_parent
from admitter.sandbox.state import SandboxState

ROOT: Final = Path(__file__).parents[2]
SERVER: Final = "kube-apiserver"
PAUSE_SECONDS: Final = 0.2


@contextmanager
def kept_control_plane(folder: Path, owner: int) -> Iterator[ControlPlane]:
    """A control plane of the test's own, until the end of the block.

    Args:
        folder: of the control plane and of the keeper's program.
        owner: number of the process with which it ends.
    """
    programs = folder / "programs"
    programs.mkdir(parents=True)
    real = ensure_programs(Console(stderr=True), [SERVER])[SERVER]
    program = programs / SERVER
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.faults.keeper import keep\nkeep([{str(real)!r}, *sys.argv[1:]])\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    given = os.environ.get("KUBEBUILDER_ASSETS")
    os.environ["KUBEBUILDER_ASSETS"] = str(programs)
    try:
        started = ControlPlane.start(folder / "plane", owner=owner)
    finally:
        if given is None:
            del os.environ["KUBEBUILDER_ASSETS"]
        else:
            os.environ["KUBEBUILDER_ASSETS"] = given
    with started:
        yield started


def keep(command: list[str]) -> None:
    """Run a program again and again, for as long as this process lives."""
    ends_too = dies_with_parent(signal.SIGKILL)
    while True:
        with subprocess.Popen(command, preexec_fn=ends_too) as process:  # noqa: PLW1509 (no threads)
            process.wait()
        time.sleep(PAUSE_SECONDS)


def component(plane: ControlPlane, name: str) -> psutil.Process:
    """A component's process; of the API server, the real one."""
    state = SandboxState.load(plane.folder)
    assert state is not None
    process = psutil.Process(state.components[name].pid)
    return process.children()[0] if name == SERVER else process

"""Starts, finds and stops local control planes.

Before: `build` makes the programs. Next: `supervisor` owns the components.
"""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from rich.console import Console

from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import CONTEXT, Cluster
from admitter.sandbox.component_commands import audit_log
from admitter.sandbox.errors import StartError
from admitter.sandbox.folders import exclusive
from admitter.sandbox.nodes import DEFAULT_NODES, read_nodes
from admitter.sandbox.processes import ProcessIdentity, end
from admitter.sandbox.state import Phase, SandboxState
from admitter.sandbox.supervisor import StartOrder

_STOP_GRACE = 15
_LOG_TAIL = 10

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Supervisors started by this process, which must collect them when they end."""


@dataclass(frozen=True, kw_only=True)
class ControlPlane(Cluster):
    """A local control plane that is ready; as a context manager it is stopped at the end.

    It is `started` if this call has started it, and was not running before.
    """

    folder: Path
    started: bool

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        nodes: Path | None = DEFAULT_NODES,
        owner: int | None = None,
        console: Console | None = None,
        audit: bool = False,
    ) -> Self:
        """Start a control plane, or find the one that runs in the folder already.

        What an earlier one left in the folder is replaced. The control plane ends with the process with the
        number `owner`, if there is one. With `audit` the API server writes down every request, which makes it
        slower. The console, standard error by default, shows progress.

        Raises:
            SandboxError: a program can't be built, `nodes` is wrong, or a component does not start.
        """
        console = console or Console(stderr=True)
        manifests = read_nodes(nodes) if nodes else []
        programs = ensure_programs(console)
        identity = None if owner is None else ProcessIdentity.of(owner)
        with exclusive(folder / ".lock", "is starting this control plane", console):
            running = cls.find(folder)
            if running:
                return running
            cls.stop_in(folder)  # what a killed supervisor may have left where the kernel does not clean up
            _start_supervisor(StartOrder(folder.absolute(), programs, manifests, identity, audit), console)
        return cls._in(folder, programs["kubectl"], started=True)

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """The control plane that is ready in a folder, or None."""
        state = SandboxState.load(folder)
        if state is None or state.phase is not Phase.READY or not state.running:
            return None
        return cls._in(folder, Path(state.kubectl), started=False)

    @classmethod
    def _in(cls, folder: Path, kubectl: Path, *, started: bool) -> Self:
        return cls(
            kubectl=kubectl,
            kubeconfig=folder.absolute() / "kubeconfig",
            context=CONTEXT,
            folder=folder.absolute(),
            started=started,
        )

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON object a line; there is one if it was asked for."""
        return audit_log(self.folder)

    def stop(self) -> None:
        """Stop it; when this returns, none of its processes is left."""
        self.stop_in(self.folder)

    @staticmethod
    def stop_in(folder: Path) -> bool:
        """Stop what is left of a control plane in a folder, also one that starts; whether anything was."""
        state = SandboxState.load(folder)
        if state is None:
            return False
        everything = [state.supervisor, *state.components.values()]
        found = any(identity.find() for identity in everything)
        end([state.supervisor], _STOP_GRACE)
        end(state.components.values(), 0)
        child = _children.pop(state.supervisor.pid, None)
        if child:
            child.wait()
        SandboxState.remove(folder)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _start_supervisor(order: StartOrder, console: Console) -> None:
    log = order.folder / "supervisor.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "admitter.sandbox.supervisor"],
            bufsize=0,  # nothing is left to be flushed into a pipe that has no reader any more
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C is for the starter, which then lets go of the pipe
            cwd=order.folder,
        )
    assert process.stdin
    assert process.stdout
    with process.stdout as reports, process.stdin as orders:
        try:
            with suppress(BrokenPipeError):  # it has ended, and the log says why
                orders.write(order.dump().encode())
            _await_ready(reports, console, log)
            with suppress(BrokenPipeError):
                orders.write(b"stay\n")
        except BaseException:
            orders.close()
            process.wait()
            raise
    _children[process.pid] = process


def _await_ready(reports: IO[bytes], console: Console, log: Path) -> None:
    with console.status("starting the control plane") as status:
        for line in reports:
            report = json.loads(line)
            match Phase(report["phase"]):
                case Phase.STARTING:
                    status.update(report["message"])
                case Phase.FAILED:
                    raise StartError(report["message"])
                case Phase.READY:
                    return
    ending = log.read_text(errors="replace").splitlines()[-_LOG_TAIL:]
    said = "\n".join([f"; {log} ends with:", *ending]) if ending else ""
    raise StartError(f"the control plane was stopped while it started{said}")

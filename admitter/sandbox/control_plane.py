"""Starts, finds and stops local control planes.

Before: `build` makes the programs. Next: `supervisor` owns the components.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from rich.console import Console

from admitter.sandbox import component_commands
from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import CONTEXT, Cluster
from admitter.sandbox.component_commands import CONTROLLER, WANTED, audit_log
from admitter.sandbox.errors import StartError
from admitter.sandbox.folders import exclusive
from admitter.sandbox.nodes import DEFAULT_NODES, read_nodes
from admitter.sandbox.processes import ProcessIdentity, end
from admitter.sandbox.state import Phase, SandboxState
from admitter.sandbox.supervisor import StartOrder

_STOP_GRACE = 15
_LOG_TAIL = 10
_BESIDE_SECONDS = 120
_TICK = 0.1
_DECIDES = ("deciding", "following")
"""Lines in the controller's log once it is up: it decides, or another one does."""

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
        kubernetes: str | None = None,
    ) -> Self:
        """Start a control plane, or find the one that runs in the folder already.

        What an earlier one left in the folder is replaced. The control plane ends with the process with the
        number `owner`, if there is one. With `audit` the API server writes down every request, which makes it
        slower. The console, standard error by default, shows progress. `kubernetes` is the release, such as
        1.33; the newest by default.

        Raises:
            SandboxError: a program can't be built, `nodes` is wrong, a component does not start, or what runs
                is of another release than the one asked for.
        """
        console = console or Console(stderr=True)
        manifests = read_nodes(nodes) if nodes else []
        programs = ensure_programs(console, kubernetes=kubernetes)
        identity = None if owner is None else ProcessIdentity.of(owner)
        with _alone(folder, console):
            running = cls.find(folder)
            if running and kubernetes and running.kubectl != programs["kubectl"]:
                raise StartError(f"what runs in {folder} is of another release of Kubernetes: stop it first")
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

    def run_controller(self, console: Console | None = None) -> Path:
        """Run the controller, which is installed, as `run_beside`; returns its log once it decides."""
        command = component_commands.controller(self.folder)
        decides = [f'"event":"{word}"' for word in _DECIDES]
        return self.run_beside(CONTROLLER, command, lambda log: any(word in log for word in decides), console)

    def run_beside(
        self, name: str, command: list[str], works: Callable[[str], bool], console: Console | None = None
    ) -> Path:
        """Run a program beside the control plane; returns its log once that tells that it works.

        One of that name that runs already stays. It ends with the control plane, or alone. The console is as
        of `start`.

        Raises:
            StartError: it or the control plane ended, or it does not work after two minutes.
        """
        wanted, log = self.folder / WANTED / f"{name}.json", self.folder / "logs" / f"{name}.log"
        with _alone(self.folder, console or Console(stderr=True)):
            if not self.runs(name):
                log.unlink(missing_ok=True)
            wanted.parent.mkdir(exist_ok=True)
            partial = wanted.with_suffix(".partial")
            partial.write_text(json.dumps(command))
            partial.replace(wanted)
            deadline = time.monotonic() + _BESIDE_SECONDS
            while True:
                told = wanted.exists()
                text = log.read_text(errors="replace") if log.exists() else ""
                if not told and works(text):
                    return log
                if self.find(self.folder) is None:
                    raise StartError(f"the control plane ended while {name} started")
                ended = not told and not self.runs(name)
                if ended or time.monotonic() > deadline:
                    tail = "\n".join(text.splitlines()[-_LOG_TAIL:])
                    how = "ended" if ended else f"does not work after {_BESIDE_SECONDS} s"
                    raise StartError(f"{name} {how}; {log} ends with:\n{tail}")
                time.sleep(_TICK)

    def runs(self, name: str) -> bool:
        """Whether a component of that name runs."""
        state = SandboxState.load(self.folder)
        identity = state.components.get(name) if state is not None else None
        return identity is not None and identity.find() is not None

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


def _alone(folder: Path, console: Console) -> AbstractContextManager[None]:
    """No other process starts what is in the folder meanwhile."""
    return exclusive(folder / ".lock", "is starting this control plane, or a program beside it", console)


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

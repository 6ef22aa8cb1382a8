"""The one process that owns the components of a control plane: `python -m admitter.sandbox.supervisor`.

It reads a `StartOrder` from its standard input and reports on its standard output. Until the
starter writes a second line, the end of standard input means that the starter has gone, and
the control plane goes too; afterwards it lives as long as its owner, if it has one. The
components go with the supervisor, however it ends: by its own hand, or by the kernel's.
"""

import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from admitter.sandbox import component_commands
from admitter.sandbox.api import Api
from admitter.sandbox.component_commands import CONTROLLER, WANTED, Layout
from admitter.sandbox.errors import SandboxError, StartError
from admitter.sandbox.nodes import Manifest
from admitter.sandbox.processes import ProcessIdentity, start_child
from admitter.sandbox.state import Phase, SandboxState

_ATTEMPTS = 3
"""How often a start is tried when another process takes a port first."""
_PATIENCE = 120
"""Seconds in which a component must become ready."""
_TICK = 0.05
_GARBAGE_COLLECTION = "GOGC"
_LESS_OFTEN = "300"  # at 100 it is a fifth of what the API server does
_PROCESSORS = "GOMAXPROCS"
_GUARD_TICK = 0.2
_PORT_TAKEN = "address already in use"


class OwnerGoneError(Exception):
    """The process that wanted the control plane is gone."""


class PortTakenError(StartError):
    """A component found its port in use."""


@dataclass(frozen=True, slots=True)
class StartOrder:
    """What to start, and with which process the control plane ends; None: it stays until it is stopped."""

    folder: Path
    programs: Mapping[str, Path]
    nodes: list[Manifest]
    owner: ProcessIdentity | None
    audit: bool = False

    def dump(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=str) + "\n"

    @classmethod
    def parse(cls, line: str) -> Self:
        raw = json.loads(line)
        programs = {name: Path(path) for name, path in raw["programs"].items()}
        owner = ProcessIdentity(**raw["owner"]) if raw["owner"] else None
        return cls(Path(raw["folder"]), programs, raw["nodes"], owner, raw["audit"])


class Starter:
    """The process at the other end of standard input and output."""

    _attached = True

    def report(self, phase: Phase, message: str = "") -> None:
        try:
            print(json.dumps({"phase": phase, "message": message}), flush=True)
        except BrokenPipeError:
            raise OwnerGoneError from None

    def check(self) -> None:
        """Raise OwnerGoneError if the starter ended without letting go."""
        if self._attached and select.select([0], [], [], 0)[0]:
            if not os.read(0, 1024):
                raise OwnerGoneError
            self._attached = False


class Supervisor:
    """Starts the components, and keeps them until one of them, or their owner, ends."""

    def __init__(self, order: StartOrder, starter: Starter) -> None:
        self._order = order
        self._starter = starter
        self._logs = order.folder / "logs"
        self._components: dict[str, subprocess.Popen[bytes]] = {}
        self._beside: set[str] = set()  # those that may end alone
        self._state = SandboxState(
            Phase.STARTING, ProcessIdentity.of(os.getpid()), kubectl=str(order.programs["kubectl"])
        )

    def run(self) -> None:
        """Start, report, guard; whatever ends it, the components are gone when it returns."""
        try:
            self._start()
            self._save(phase=Phase.READY)
            self._starter.report(Phase.READY)
            while True:
                self._check()
                self._run_wanted()
                time.sleep(_GUARD_TICK)
        except OwnerGoneError:
            pass
        except SandboxError as error:
            self._save(phase=Phase.FAILED, message=str(error))
            self._starter.report(Phase.FAILED, str(error))
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._kill_components()
            self._clear("data", "pki", "bin", "kubeconfig", "operators")
            if self._state.phase is not Phase.FAILED:
                SandboxState.remove(self._order.folder)

    def _start(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start_once()
                break
            except PortTakenError:
                self._kill_components()
                if attempt == _ATTEMPTS:
                    raise

    def _start_once(self) -> None:
        self._clear("data", "pki", "bin", "logs", "kubeconfig", "operators", WANTED)
        self._logs.mkdir()
        layout = component_commands.prepare(self._order.folder)
        self._save(server=layout.server)
        order = self._order
        self._spawn(component_commands.storage_and_server(layout, order.programs, audit=order.audit))
        api = Api(layout)
        self._wait_until("the API server is ready", api.is_ready)
        self._spawn(component_commands.clients(layout, self._order.programs))
        for node in self._order.nodes:
            api.create_node(node)
        self._wait_until("the controllers work", api.has_service_accounts)
        self._wait_until("the nodes are ready", lambda: not api.unready_nodes())
        self._link_kubectl(layout)

    def _link_kubectl(self, layout: Layout) -> None:
        # A folder with nothing else in it can go on a user's PATH without hiding other programs.
        folder = layout.folder / "bin"
        folder.mkdir()
        (folder / "kubectl").symlink_to(self._order.programs["kubectl"])

    def _spawn(self, commands: Mapping[str, list[str]]) -> None:
        for name, command in commands.items():
            with self._log(name).open("wb") as log:
                process = start_child(
                    command,
                    signal.SIGKILL,
                    cwd=self._order.folder,
                    env={**_environment(name), "HOME": str(self._order.folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            self._components[name] = process
            self._save(components={**self._state.components, name: ProcessIdentity.of(process.pid)})

    def _wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        self._starter.report(Phase.STARTING, f"waiting until {what}")
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            self._check()
            if time.monotonic() > deadline:
                raise StartError(
                    f"the control plane did not start: after {_PATIENCE} s it is not yet so that {what}; "
                    f"logs are in {self._logs}"
                )
            time.sleep(_TICK)

    def _run_wanted(self) -> None:
        """Start what is wanted beside the control plane and does not run."""
        for wanted in (self._order.folder / WANTED).glob("*.json"):
            if wanted.stem not in self._components:
                self._spawn({wanted.stem: json.loads(wanted.read_text())})
                self._beside.add(wanted.stem)
            wanted.unlink()

    def _check(self) -> None:
        self._starter.check()
        if self._order.owner and not self._order.owner.find():
            raise OwnerGoneError
        for name, process in list(self._components.items()):
            code = process.poll()
            if code is not None and name not in self._beside:
                raise self._component_ended(name, code)
            if code is not None:
                del self._components[name]
                left = {each: known for each, known in self._state.components.items() if each != name}
                self._save(components=left)

    def _component_ended(self, name: str, code: int) -> StartError:
        how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
        lines = self._log(name).read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-10:])
        kind = PortTakenError if _PORT_TAKEN in tail else StartError
        return kind(f"{name} {how}; {self._log(name)} ends with:\n{tail}")

    def _kill_components(self) -> None:
        # Nothing outlives a control plane that would be worth an orderly end: its data goes too.
        for process in reversed(self._components.values()):
            process.kill()
        for process in self._components.values():
            process.wait()
        self._components.clear()
        self._save(components={})

    def _clear(self, *names: str) -> None:
        for name in names:
            path = self._order.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _save(self, **changes: object) -> None:
        self._state = dataclasses.replace(self._state, **changes)  # type: ignore[arg-type]  # fields of State
        self._state.save(self._order.folder)

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def _environment(name: str) -> dict[str, str]:
    """The environment of a component; the controller finds its modules as this process does.

    GOMAXPROCS holds for all programs in Go but the API server, for which the others wait: with one processor
    each they take less of the machine, which matters where many control planes run. GOGC holds for all of
    them: the larger it is, the more memory they use, and the less time.
    """
    if name == CONTROLLER:
        return dict(os.environ)
    made = {"PATH": os.defpath, _GARBAGE_COLLECTION: os.environ.get(_GARBAGE_COLLECTION, _LESS_OFTEN)}
    if name != "kube-apiserver" and _PROCESSORS in os.environ:
        made[_PROCESSORS] = os.environ[_PROCESSORS]
    return made


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    Supervisor(StartOrder.parse(sys.stdin.readline()), Starter()).run()

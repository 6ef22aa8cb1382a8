"""The controller of a test run: `admitter run` under its own account, started again whenever it ends.

That is what a Deployment does, so a test may kill it at any moment while other tests go on.
`python -m tests.cluster.controller FOLDER OWNER` keeps it running for as long as the process OWNER lives.
With ADMITTER_TEST_LATE=0.5 in the environment each of its watches is late by up to half a second, by chance:
it sees objects of different kinds in another order than they were made, as on a busy machine.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import Cluster
from tests.cluster.waiting import eventually
from tests.faults.proxy import FaultProxy

SOON_SECONDS = 10
"""It answers a change in less than one, on a machine with nothing else to do."""
AWAY_SECONDS = 20
"""The successor of a killed process starts, waits for four seconds, and may be killed too."""
_keepers: dict[Path, "subprocess.Popen[bytes]"] = {}
"""What starts a controller again, by its folder: it outlives the process that started it, not the run."""


@dataclass(frozen=True)
class Controller:
    """The controller that the tests of this run share.

    Attributes:
        folder: of its log, its kubeconfig, and files with the numbers of its process, of those that ended
            and of those that tests have killed, and with the length of the log when its process began.
    """

    folder: Path

    @property
    def log(self) -> str:
        """All that it has logged."""
        return (self.folder / "log").read_text()

    @property
    def crashes(self) -> set[str]:
        """Numbers of its processes that ended although no test killed them."""
        return numbers(self.folder / "ended") - numbers(self.folder / "killed")

    def soon(self, kills: int) -> float:
        """Within how many seconds it answers.

        Args:
            kills: how many of its processes had been killed before it last did what was asked of it.
        """
        return SOON_SECONDS if kills == self.kills else SOON_SECONDS + AWAY_SECONDS

    @property
    def kills(self) -> int:
        """How many of its processes tests have killed."""
        return len(numbers(self.folder / "killed"))

    def kill(self) -> str:
        """End it at once; it is started again. Another test may have done that just now.

        Returns:
            the number of its process.
        """
        number = (self.folder / "pid").read_text()
        note(self.folder / "killed", number)
        with suppress(ProcessLookupError):
            os.kill(int(number), signal.SIGKILL)
        return number

    def stop(self) -> None:
        """End it and what starts it again; only for the process that called `start`."""
        keeper = _keepers.pop(self.folder)
        keeper.kill()
        keeper.wait()
        self.kill()

    def restart(self) -> None:
        """Kill it, and wait until another one knows what there is."""
        killed = self.kill()
        eventually(lambda: self._is_back(killed), what="the controller to be back")

    def _is_back(self, killed: str) -> bool:
        """Whether a later process is ready, by its own part of the log."""
        number = (self.folder / "pid").read_text()
        began = int((self.folder / "began").read_text())
        return number != killed and b'"event":"ready"' in (self.folder / "log").read_bytes()[began:]

    @classmethod
    def start(cls, folder: Path, cluster: Cluster, owner: int) -> "Controller":
        """Keep a controller running for as long as the owner lives."""
        folder.mkdir()
        cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder / "kubeconfig")
        command = [sys.executable, "-m", "tests.cluster.controller", str(folder), str(owner)]
        with (folder / "log").open("ab") as log:
            _keepers[folder] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        # A test may kill it at once, and on a busy machine its process takes a while to come.
        eventually((folder / "pid").exists, what="the process of the controller")
        return cls(folder)


def note(file: Path, number: str) -> None:
    """Add a line; tests of several processes do."""
    with file.open("a") as lines:
        lines.write(f"{number}\n")


def numbers(file: Path) -> set[str]:
    """All that was noted."""
    return set(file.read_text().split()) if file.exists() else set()


def keep_running(folder: Path, owner: int) -> None:
    """Run controllers one after the other until the owner is gone."""
    owning = psutil.Process(owner)
    late = float(os.environ.get("ADMITTER_TEST_LATE", "0"))
    with _late(folder, late) if late else nullcontext(folder / "kubeconfig") as kubeconfig:
        _keep_running(folder, owning, kubeconfig)


@contextmanager
def _late(folder: Path, seconds: float) -> Iterator[Path]:
    """A way to the API server on which watches are late by up to so many seconds."""
    kubectl = ensure_programs(Console(stderr=True), ["kubectl"])["kubectl"]
    account = folder / "kubeconfig"
    with FaultProxy(Cluster(kubectl=kubectl, kubeconfig=account), folder / "certificates", 1) as proxy:
        proxy.streams.late = seconds
        yield proxy.kubeconfig(account, folder / "late")


def _keep_running(folder: Path, owning: psutil.Process, kubeconfig: Path) -> None:
    command = [sys.executable, "-m", "admitter", "run", "--kubeconfig", str(kubeconfig)]
    command += ["--bind", "127.0.0.1:0"]
    while owning.is_running():
        _write_at_once(folder / "began", str((folder / "log").stat().st_size))
        with subprocess.Popen(command) as process:
            _write_at_once(folder / "pid", str(process.pid))
            while process.poll() is None:
                time.sleep(0.1)
                if not owning.is_running() or owning.status() == psutil.STATUS_ZOMBIE:
                    process.kill()
                    return
        note(folder / "ended", str(process.pid))


def _write_at_once(file: Path, text: str) -> None:
    """Write a file that no reader ever finds empty."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


if __name__ == "__main__":
    keep_running(Path(sys.argv[1]), int(sys.argv[2]))

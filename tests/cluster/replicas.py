"""Controllers of a cluster of a test's own: started, paused, killed and asked what they are."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.cluster.waiting import eventually


@dataclass
class Replica:
    """One `admitter run`.

    Attributes:
        process: its process.
        log_file: where it logs.
    """

    process: "subprocess.Popen[bytes]"
    log_file: Path

    @classmethod
    def start(cls, kubeconfig: Path, log_file: Path, *options: str) -> "Replica":
        """Start one under the account of a kubeconfig."""
        command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0", *options, "--kubeconfig"]
        with log_file.open("wb") as log:
            return cls(subprocess.Popen([*command, str(kubeconfig)], stderr=log), log_file)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log with this event, so far."""
        lines = [json.loads(line) for line in self.log_file.read_bytes().splitlines() if line.endswith(b"}")]
        return [line for line in lines if line["event"] == event]

    @property
    def role(self) -> str:
        """What it says that it is, in its first line; empty if it does not answer."""
        found = re.search(r'"probes":"([0-9.:]+)"', self.log_file.read_text())
        if not found:
            return ""
        try:
            with urlopen(f"http://{found[1]}/readyz", timeout=5) as response:
                return str(response.read().decode().partition("\n")[0])
        except HTTPError as error:
            return str(error.read().decode().partition("\n")[0])
        except OSError:
            return ""

    def becomes(self, role: str) -> None:
        """Wait until it says that it is."""
        eventually(lambda: self.role == role, what=f"{self.log_file.name} to be {role}")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()

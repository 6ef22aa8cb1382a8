"""The API server under a benchmark: what it was asked, what each process used, and when it is at rest."""

import asyncio
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

from admitter.client.transport import Transport
from admitter.names import API_VERSION, NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.state import SandboxState

QUIET_SECONDS: Final = 3.0
SAMPLES: Final = 400
WRITING: Final = frozenset({"POST", "PATCH", "PUT", "APPLY", "DELETE"})


@dataclass
class Spent:
    """What a process has used up to now, or between two moments.

    Attributes:
        cpu_s: CPU seconds of user and system.
        peak_mb: the most memory that it had resident at a time, in 10^6 bytes.
    """

    cpu_s: float
    peak_mb: float


def spent(pid: int) -> Spent:
    """What a process and those that it waited for have used."""
    times = psutil.Process(pid).cpu_times()
    status = Path(f"/proc/{pid}/status").read_text()
    (kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return Spent(times.user + times.system, int(kib) * 1024 / 1e6)


@dataclass
class Server:
    """A control plane, asked from outside.

    Attributes:
        cluster: the control plane.
        folder: for logs and kubeconfigs.
    """

    cluster: ControlPlane
    folder: Path
    _before: dict[str, Spent] = field(default_factory=dict)

    def components(self) -> dict[str, Spent]:
        """What each component has used."""
        state = SandboxState.load(self.cluster.folder)
        assert state is not None
        return {name: spent(identity.pid) for name, identity in state.components.items()}

    async def quiet(self) -> None:
        """Wait until the API server has next to nothing to do: for half a minute it digests new kinds."""
        before = self.components()["kube-apiserver"].cpu_s
        while True:
            await asyncio.sleep(QUIET_SECONDS)
            now = self.components()["kube-apiserver"].cpu_s
            if now - before < QUIET_SECONDS / 10:
                return
            before = now

    async def writes(self) -> Counter[str]:
        """How many writes the API server has answered, by verb, resource and, if it failed, status."""
        found: Counter[str] = Counter()
        text = await asyncio.to_thread(self.cluster.run_kubectl, "get", "--raw", "/metrics")
        for labels, value in re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", text, re.MULTILINE):
            named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            if named["verb"] in WRITING and named["resource"] != "leases":
                subresource = f"/{named['subresource']}" if named["subresource"] else ""
                failed = f" {named['code']}" if int(named["code"]) >= 300 else ""
                found[f"{named['verb']} {named['resource']}{subresource}{failed}"] += int(float(value))
        return found

    async def people(self) -> Path:
        """A kubeconfig of a user that may do everything, by a token: certificates cost more."""
        kubectl, path = self.cluster.run_kubectl, self.folder / "people.kubeconfig"
        binding = ("create", "clusterrolebinding", "people", "--clusterrole=cluster-admin")
        await asyncio.to_thread(kubectl, "create", "serviceaccount", "people", "--namespace=default")
        await asyncio.to_thread(kubectl, *binding, "--serviceaccount=default:people")
        return await asyncio.to_thread(self.cluster.service_account_kubeconfig, "default", "people", path)

    async def speed(self, transport: Transport) -> dict[str, float]:
        """How fast this API server is just now: machines differ, and are shared.

        Small custom objects are created, and then their status is patched, 8 at a time.
        """
        path, found = f"/apis/{API_VERSION}/resourceflavors", {}
        names = [f"speed-{number}" for number in range(SAMPLES)]
        slots = asyncio.Semaphore(8)

        async def each(call: Callable[[str], Awaitable[object]]) -> float:
            async def one(name: str) -> None:
                async with slots:
                    await call(name)

            began = time.monotonic()
            await asyncio.gather(*(one(name) for name in names))
            return round(SAMPLES / (time.monotonic() - began))

        condition = {"type": "Active", "status": "True", "reason": "Ready", "message": "it works"}
        status = {"conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        found["creates_per_s"] = await each(
            lambda name: transport.create(
                path,
                {
                    "apiVersion": API_VERSION,
                    "kind": "ResourceFlavor",
                    "metadata": {"name": name},
                    "spec": {},
                },
            )
        )
        found["status_patches_per_s"] = await each(
            lambda name: transport.patch(f"{path}/{name}/status", {"status": status})
        )
        await each(lambda name: transport.delete(f"{path}/{name}"))
        return found

    def profile(self, seconds: int, path: Path) -> None:
        """Write a profile of the API server's CPU over so many seconds from now, for `go tool pprof`."""
        command = [str(self.cluster.kubectl), f"--kubeconfig={self.cluster.kubeconfig}"]
        with path.open("wb") as file:
            where = f"/debug/pprof/profile?seconds={seconds}"
            subprocess.run([*command, "get", "--raw", where], stdout=file, check=True)

    @contextmanager
    def controller(self, options: tuple[str, ...] = ()) -> Iterator[int]:
        """The number of the controller's process, until the end of the block; `options` are its own."""
        kubeconfig = self.cluster.service_account_kubeconfig(
            NAMESPACE, SERVICE_ACCOUNT, self.folder / "kubeconfig"
        )
        command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0", *options]
        with (self.folder / "controller.log").open("ab") as log:
            process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait()


def commit() -> str:
    """The commit that is measured; `+` if files differ from it."""
    root = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],  # noqa: S607  # whichever git there is
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()

    changed = git("status", "--porcelain", "--", "../admitter", "../crds", "../manifests")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def setting(command: str) -> dict[str, Any]:
    """What a result says first: its command, when it was measured, of what commit, and on what."""
    return {
        "command": command,
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def machine() -> str:
    """The machine: its processors and memory."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} × {names[0] if names else 'unknown'}, {memory:.0f} GiB"

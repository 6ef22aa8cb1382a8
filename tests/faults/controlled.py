"""A cluster of a test's own, with a controller that reaches it through a proxy."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.cluster import Cluster
from tests.cluster.auditor import Auditor, Use, whole
from tests.faults.proxy import FaultProxy
from tests.faults.streams import Change, unchanged


@dataclass(frozen=True)
class Controlled:
    """A controller and the proxy before it.

    Attributes:
        proxy: through which all its calls go.
        process: the controller's.
        folder: of its log.
    """

    proxy: FaultProxy
    process: psutil.Process
    folder: Path

    @property
    def log(self) -> str:
        """All that it has logged."""
        return (self.folder / "log").read_text()

    @property
    def memory(self) -> int:
        """What it has in memory now, in bytes."""
        return int(self.process.memory_info().rss)

    @property
    def cpu(self) -> float:
        """The seconds of CPU that it has used."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def controlled(cluster: Cluster, folder: Path, seed: int, change: Change = unchanged) -> Iterator[Controlled]:
    """Run a controller behind a proxy for as long as a block lasts.

    Args:
        cluster: one with Admitter installed, and without another controller.
        folder: for the log, certificates and kubeconfigs; must not exist yet.
        seed: of chance.
        change: what becomes of answers and events on their way.
    """
    folder.mkdir()
    account = cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder / "direct")
    with (
        FaultProxy(cluster, folder / "certificates", seed, change=change) as proxy,
        (folder / "log").open("wb") as log,
    ):
        kubeconfig = proxy.kubeconfig(account, folder / "kubeconfig")
        command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0"]
        with subprocess.Popen([*command, f"--kubeconfig={kubeconfig}"], stderr=log) as process:
            try:
                yield Controlled(proxy, psutil.Process(process.pid), folder)
            finally:
                process.kill()


def for_seconds(seconds: float, act: Callable[[], object]) -> int:
    """Do something five times a second, at the most, for a while; how often it was done."""
    end, times = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        act()
        times += 1
        time.sleep(0.2)
    return times


class OrderAuditor(Auditor):
    """Also watches that no Workload of a queue takes what an earlier one of it waits for.

    Attributes:
        overtaken: every admission by which it was so, in words.
        heard: the Workloads of the queue, by name.
    """

    def __init__(self, cluster: Cluster, namespace: str, limit: tuple[Use, float], queue: str) -> None:
        """Prepare.

        Args:
            cluster: what to watch.
            namespace: the one to watch.
            limit: the only flavor and resource that is used, and how much there is of it.
            queue: the LocalQueue with the strict order.
        """
        super().__init__(cluster, namespace, dict([limit]))
        self.overtaken: list[str] = []
        self.heard: set[str] = set()
        self._use, self._limit = limit
        self._queue = queue
        self._earlier: dict[str, float] = {}
        self._order: list[str] = []

    def expect(self, order: list[tuple[str, float]]) -> None:
        """From now on: the names of waiting Workloads in their order, and how much each asks for."""
        self._order = [name for name, _ in order]
        self._earlier = dict(order)

    def take(self, kind: str, workload: dict[str, Any]) -> None:
        """Enter an event of the watch."""
        name = workload["metadata"]["name"]
        super().take(kind, workload)
        if workload["spec"]["queueName"] == self._queue:
            self.heard.add(name)
        if name in self._earlier and workload.get("status", {}).get("admission"):
            del self._earlier[name]
            self._compare(name)

    def _compare(self, name: str) -> None:
        needed = self.total[self._use]
        for earlier in self._order[: self._order.index(name)]:
            if earlier in self._earlier:
                needed += self._earlier[earlier]  # type: ignore[assignment]  # halves count
                if needed > self._limit:
                    self.overtaken.append(f"{name} was admitted before {earlier}, which then has no place")
                    return


def asks(workload: dict[str, Any]) -> float:
    """How many CPUs a Workload asks for."""
    sets = workload["spec"]["podSets"]
    return sum((s["count"] * whole(s["requests"]["cpu"]) for s in sets), start=0.0)

"""Namespaces that bring their own quota, at scale: `make bench-namespaces`.

5,000 annotated namespaces below 50 Cohorts of one tree, on a real API server. From the controller's start to
the last queue that works; how soon a changed annotation is in its queue's spec; what a restart writes. Prints
the figures and writes `benchmarks/results/namespaces.json`; `python -m benchmarks.namespaces --quick` does a
tenth of it and writes nothing.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from admitter.cache.views import ObjectView, parse_object
from admitter.client.informer import Informer
from admitter.client.source import Source
from admitter.client.store import Store
from admitter.client.transport import HttpTransport, Transport
from admitter.install.apply import install
from admitter.names import (
    API_VERSION,
    NAMESPACE,
    NAMESPACE_QUOTA_ANNOTATIONS,
    PARENT_QUEUE_ANNOTATIONS,
    SERVICE_ACCOUNT,
)
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.elastic import peak_mb, spread

RESULTS = Path(__file__).parent / "results" / "namespaces.json"
OWN = f"/apis/{API_VERSION}"
QUOTA, PARENT = NAMESPACE_QUOTA_ANNOTATIONS[0], PARENT_QUEUE_ANNOTATIONS[0]
AT_A_TIME = 16
COHORTS = 50
QUIET_SECONDS = 3.0

Json = dict[str, Any]


def annotations(number: int, cpu: int = 64) -> Json:
    """What a namespace says."""
    quota = {"cpu": str(cpu), "memory": "100G", "nvidia.com/gpu": "1"}
    return {QUOTA: json.dumps(quota), PARENT: f"root.department-{number % COHORTS}"}


class Bench:
    """An API server, and what is seen of it without any of the controller's code."""

    def __init__(self, cluster: ControlPlane, transport: Transport, count: int, folder: Path) -> None:
        self._cluster = cluster
        self._transport = transport
        self._count = count
        self._folder = folder
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self._sources = {
            plural: Source(f"{OWN}/{plural}", parse_object) for plural in ("clusterqueues", "localqueues")
        }
        self._working: set[tuple[str, str, str]] = set()
        self._all_work = asyncio.Event()

    @property
    def queues(self) -> Store[ObjectView]:
        """The ClusterQueues."""
        return self._sources["clusterqueues"].store

    async def define(self) -> None:
        """A tree of Cohorts, one flavor, and the namespaces."""
        flavor = {"kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}
        await self._create(f"{OWN}/resourceflavors", {"apiVersion": API_VERSION, **flavor})
        resources = [
            {"name": name, "flavors": [{"name": "default", "quota": {"min": amount}}]}
            for name, amount in (("cpu", 10_000), ("memory", "40T"), ("nvidia.com/gpu", 100))
        ]
        await self._cohort("root", {"resources": resources})
        for number in range(COHORTS):
            await self._cohort(f"department-{number}", {"parent": "root"})
        bodies = (
            {"metadata": {"name": f"ns{number}", "annotations": annotations(number)}}
            for number in range(self._count)
        )
        await asyncio.gather(*(self._create("/api/v1/namespaces", body) for body in bodies))

    async def quiet(self) -> None:
        """Wait until the API server has next to nothing to do: it also digests new kinds."""
        before = await self._cpu_seconds()
        while True:
            await asyncio.sleep(QUIET_SECONDS)
            now = await self._cpu_seconds()
            if now - before < QUIET_SECONDS / 10:
                return
            before = now

    async def unchanged(self) -> Json:
        """Wait until nothing has been written to queues for a while; returns what was in all."""
        before: Json = {}
        while (now := await self.writes()) != before:
            before = now
            await asyncio.sleep(QUIET_SECONDS)
        return now

    async def writes(self) -> Json:
        """How many writes to queues the API server has counted, by kind."""
        found: Json = {}
        for labels, value in await self._metric("apiserver_request_total"):
            if 'resource="clusterqueues"' in labels or 'resource="localqueues"' in labels:
                named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                if named["verb"] in {"POST", "PATCH", "PUT", "APPLY", "DELETE"}:
                    subresource = f" {named['subresource']}" if named["subresource"] else ""
                    name = f"{named['verb']} {named['resource']}{subresource} {named['code']}"
                    found[name] = found.get(name, 0) + int(value)
        return found

    async def annotate(self, number: int, cpu: int) -> float:
        """Change an annotation; returns after how many seconds the queue's spec has it."""
        name, done = f"ns{number}", asyncio.Event()

        def look(_old: ObjectView | None, new: ObjectView | None) -> None:
            if new is not None and new.name == name and new.spec["limits"]["cpu"] == str(cpu):
                done.set()

        self.queues.listen(look)
        began = time.monotonic()
        body = {"metadata": {"annotations": annotations(number, cpu)}}
        await self._transport.patch(f"/api/v1/namespaces/{name}", body)
        await asyncio.wait_for(done.wait(), 60)
        return time.monotonic() - began

    async def all_work(self) -> None:
        """Wait until each namespace has a ClusterQueue and a LocalQueue that say that they work."""
        await self._all_work.wait()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See the queues, until the end of the block."""
        async with asyncio.TaskGroup() as group:
            tasks = []
            for plural, source in self._sources.items():
                source.store.listen(self._listener(plural))
                informer = Informer(self._transport, source, Random(1))  # noqa: S311  # spreads watches
                tasks.append(group.create_task(informer.run()))
                await informer.synced.wait()
            yield
            for task in tasks:
                task.cancel()

    @contextmanager
    def controller(self) -> Iterator[int]:
        """The controller's process number, until the end of the block."""
        kubeconfig = self._cluster.service_account_kubeconfig(
            NAMESPACE, SERVICE_ACCOUNT, self._folder / "kubeconfig"
        )
        command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0"]
        with (self._folder / "controller.log").open("ab") as log:
            process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=log, stderr=log)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait()

    def _listener(self, plural: str) -> Callable[[ObjectView | None, ObjectView | None], None]:
        def look(_old: ObjectView | None, new: ObjectView | None) -> None:
            conditions = new.status.get("conditions") or () if new is not None else ()
            if new is not None and any(each["status"] == "True" for each in conditions):
                self._working.add((plural, *new.key))
                if len(self._working) == 2 * self._count:
                    self._all_work.set()

        return look

    async def _cohort(self, name: str, spec: Json) -> None:
        body = {"apiVersion": API_VERSION, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}
        await self._create(f"{OWN}/cohorts", body)

    async def _create(self, path: str, body: Json) -> None:
        async with self._slots:
            await self._transport.create(path, body)

    async def _cpu_seconds(self) -> float:
        (found,) = await self._metric("process_cpu_seconds_total")
        return float(found[1])

    async def _metric(self, name: str) -> list[tuple[str, str]]:
        text = await asyncio.to_thread(self._cluster.run_kubectl, "get", "--raw", "/metrics")
        return re.findall(rf"^{name}(?:\{{([^}}]*)\}})? (\S+)$", text, re.MULTILINE)


async def measure(cluster: ControlPlane, count: int, rounds: int, folder: Path) -> Json:
    """All figures."""
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        bench = Bench(cluster, transport, count, folder)
        await bench.quiet()
        await bench.define()
        await bench.quiet()
        result: Json = {
            "namespaces": count,
            "cohorts": COHORTS + 1,
            "load_before": round(os.getloadavg()[0], 1),
        }
        async with bench.watching():
            began = time.monotonic()
            with bench.controller() as pid:
                await bench.all_work()
                result["all_queues_ready_s"] = round(time.monotonic() - began, 1)
                result["writes"] = await bench.unchanged()
                changes = [await bench.annotate(number, 65) for number in range(rounds)]
                result["changed_annotation_in_effect_s"] = spread(changes)
                before = await bench.unchanged()
                result["peak_mb"] = peak_mb(pid)
            began = time.monotonic()
            with bench.controller() as pid:
                await bench.annotate(0, 66)
                result["restart_until_a_change_is_in_effect_s"] = round(time.monotonic() - began, 1)
                after = await bench.unchanged()
                written = sum(after.values()) - sum(before.values())
                result["writes_of_a_restart_and_one_change"] = written
                result["peak_mb_after_a_restart"] = peak_mb(pid)
    result["load_after"] = round(os.getloadavg()[0], 1)
    return result


def main() -> None:
    """Run all, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, and nothing is saved")
    quick = parser.parse_args().quick
    count, rounds = (500, 10) if quick else (5000, 40)
    result: Json = {"command": "python -m benchmarks.namespaces", "python": platform.python_version()}
    result["cpus"] = os.cpu_count()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            result |= asyncio.run(measure(cluster, count, rounds, folder))
    print(json.dumps(result, indent=2))
    if not quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Elastic quotas at scale: `make bench-elastic`, or `python -m benchmarks.elastic [--quick]`.

1,000 namespaces with a quota each, 20,000 pods. First the engine alone: CPU time of a decision. Then the
controller on a real API server: how long a new pod waits for its label, and how many labels are written for
what. Prints the figures and writes `benchmarks/results/elastic.json`.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from admitter.api.elastic_quota import ElasticQuotaSpec
from admitter.client.transport import HttpTransport, Transport
from admitter.engine.commands import Define, Release, Reserve, SetFlavor, SetPods, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, Gpus, PodSet, Workload
from admitter.engine.tree_cycle import Plan
from admitter.install.apply import install
from admitter.names import ANY_NODE, API_VERSION, GPU_MEMORY, NAMESPACE, SERVICE_ACCOUNT
from admitter.quotas.elastic import POOL, Declared, queue
from admitter.sandbox.control_plane import ControlPlane

RESULTS = Path(__file__).parent / "results" / "elastic.json"
SLICE = "nvidia.com/gpu-10gb"
GUARANTEED = 200
AT_A_TIME = 32

Json = dict[str, Any]


def spread(values: list[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum."""
    ordered = sorted(values)
    at_95 = ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]
    return {"median": round(median(ordered), 2), "p95": round(at_95, 2), "max": round(ordered[-1], 2)}


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds that some work takes."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def pods_in(number: int) -> int:
    """How many pods a namespace has: half of them use one and a half of what is theirs, half use half."""
    return 30 if number % 2 else 10


@dataclass
class Quotas:
    """The engine with quotas, each full of pods of 10 GB, and one more that waits in each that is over."""

    engine: Engine
    count: int

    @classmethod
    def make(cls, count: int) -> "Quotas":
        """So many quotas."""
        made = cls(Engine(), count)
        made.engine.apply(SetFlavor(Flavor(ANY_NODE)))
        made.engine.apply(
            Define(
                tuple(
                    queue(made.quota(number), ElasticQuotaSpec(min={GPU_MEMORY: GUARANTEED}))
                    for number in range(count)
                )
            )
        )
        serial = 0
        for number in range(count):
            for pod in range(pods_in(number)):
                serial += 1
                made.run(number, f"w-{number}-{pod}", serial)
        for number in range(1, count, 2):
            made.ask(number, f"waits-{number}", serial + number)
        made.engine.cycle(serial)
        gc.collect()
        gc.freeze()  # as the controller does once it has read all
        return made

    @staticmethod
    def quota(number: int) -> Declared:
        """A quota."""
        return Declared("ElasticQuota", f"ns{number}", "quota", 0.0, (f"ns{number}",))

    def workload(self, number: int, uid: str, created: float) -> Workload:
        """A workload of one pod of 10 GB."""
        gpus = Gpus(sliced=10, resources=frozenset({SLICE}))
        return Workload(
            uid, self.quota(number).queue, 0, created, (PodSet("main", 1, ((SLICE, 1),), gpus=gpus),)
        )

    def run(self, number: int, uid: str, since: float) -> None:
        """One that runs."""
        workload = self.workload(number, uid, since)
        used = Assignment("main", 1, ((GPU_MEMORY, ANY_NODE),), ((GPU_MEMORY, 10),))
        self.engine.apply(Reserve(uid, Admission(workload.queue, (used,), POOL), workload, since))
        self.engine.apply(SetPods(uid, ((since, f"pod-{uid}"),)))

    def ask(self, number: int, uid: str, created: float) -> None:
        """One that asks."""
        self.engine.apply(Submit(self.workload(number, uid, created)))


def decisions(count: int, rounds: int) -> Json:
    """What a decision costs among so many quotas.

    A quota that returns a place to its owner may have a guaranteed part left and take one in the same cycle.
    """
    quotas = Quotas.make(count)
    engine = quotas.engine
    takes, ends, relabels = [], [], []
    for number in range(0, 2 * rounds, 2):
        quotas.ask(number, f"owner-{number}", 10**6 + number)
        plan = engine.cycle(10**7)  # the first one works out which Workloads are over quota everywhere
        for eviction in plan.evictions:
            engine.apply(Release(eviction.victim.holder))
        engine.cycle(10**7)
    for number in range(2 * rounds, 4 * rounds, 2):
        quotas.ask(number, f"owner-{number}", 10**6 + number)
        plans: list[Plan] = []
        spent = cpu_ms(lambda: plans.append(engine.cycle(10**7)))  # noqa: B023  # called at once
        evictions = plans[0].evictions
        assert evictions, "an owner takes back what is its own"
        takes.append(spent / len({eviction.preemptor.uid for eviction in evictions}))
        for eviction in evictions:
            engine.apply(Release(eviction.victim.holder))
        engine.cycle(10**7)
    for number in range(1, 2 * rounds, 2):
        engine.apply(Release(f"w-{number}-0"))
        ends.append(cpu_ms(lambda: engine.cycle(10**7)))
        name = quotas.quota(number).queue
        engine.apply(SetPods(f"w-{number}-1", ((10**7, "younger"),)))
        relabels.append(cpu_ms(lambda: engine.capacity.real(name)))  # noqa: B023  # called at once
    return {
        "quotas": count,
        "pods": sum(pods_in(number) for number in range(count)),
        "waiting": count // 2,
        "preempting_ms": spread(takes),
        "one_ends_and_the_next_starts_ms": spread(ends),
        "who_is_over_quota_ms": spread(relabels),
    }


class Bench:
    """The controller on a real API server, with quotas, and pods that are there by their labels alone."""

    def __init__(self, cluster: ControlPlane, transport: Transport, count: int, folder: Path) -> None:
        self._cluster = cluster
        self._transport = transport
        self._count = count
        self._folder = folder
        self._slots = asyncio.Semaphore(AT_A_TIME)

    async def define(self) -> None:
        """Namespaces, quotas, and two Workloads in each namespace."""
        await self._all("/api/v1/namespaces", [{"metadata": {"name": f"ns{n}"}} for n in range(self._count)])
        own = f"/apis/{API_VERSION}/namespaces/ns"
        spec = {"min": {GPU_MEMORY: GUARANTEED}}
        quota = {
            "apiVersion": API_VERSION,
            "kind": "ElasticQuota",
            "metadata": {"name": "quota"},
            "spec": spec,
        }
        jobs = [self._create(f"{own}{n}/elasticquotas", quota) for n in range(self._count)]
        await asyncio.gather(*jobs)
        await asyncio.gather(
            *(
                self._create(f"{own}{n}/workloads", self._workload(name, pods_in(n) // 2))
                for n in range(self._count)
                for name in ("old", "young")
            )
        )

    async def admitted(self) -> None:
        """Wait until all Workloads are, and labelled."""
        while True:
            listed = await self._transport.get(f"/apis/{API_VERSION}/workloads")
            labelled = [
                w for w in listed["items"] if "admitter.dev/capacity" in (w["metadata"].get("labels") or {})
            ]
            if len(labelled) == 2 * self._count:
                return
            await asyncio.sleep(1)

    async def populate(self) -> int:
        """All pods, without capacity labels; returns how many."""
        pods = [
            (n, name, number)
            for name in ("old", "young")
            for n in range(self._count)
            for number in range(pods_in(n) // 2)
        ]
        await asyncio.gather(*(self.pod(n, name, f"{name}-{number:02}") for n, name, number in pods))
        return len(pods)

    async def pod(self, namespace: int, workload: str, name: str) -> None:
        """One pod, which no scheduler looks at."""
        container = {"name": "main", "image": "work", "resources": {"limits": {SLICE: "1"}}}
        body = {
            "metadata": {
                "name": name,
                "labels": {
                    "admitter.dev/workload": workload,
                    "admitter.dev/cluster-queue": Quotas.quota(namespace).queue,
                },
                "annotations": {
                    "admitter.dev/flavors": json.dumps({GPU_MEMORY: ANY_NODE}),
                    "admitter.dev/counted": json.dumps({"pool": POOL, GPU_MEMORY: "10"}),
                },
            },
            "spec": {"schedulerName": "none", "containers": [container]},
        }
        path = f"/api/v1/namespaces/ns{namespace}/pods"
        await self._create(path, body)
        async with self._slots:
            await self._transport.patch(f"{path}/{name}/status", {"status": {"phase": "Running"}})

    async def label_of(self, namespace: int, name: str) -> str:
        """What a pod's label says; empty if it has none."""
        found = await self._transport.get(f"/api/v1/namespaces/ns{namespace}/pods/{name}")
        return str(found["metadata"]["labels"].get("admitter.dev/capacity", ""))

    async def over_quota(self) -> int:
        """How many pods are labelled so."""
        query = {"labelSelector": "admitter.dev/capacity=over-quota"}
        return len((await self._transport.get("/api/v1/pods", query))["items"])

    async def set_minimum(self, namespace: int, gigabytes: int) -> None:
        """Change a quota."""
        path = f"/apis/{API_VERSION}/namespaces/ns{namespace}/elasticquotas/quota"
        await self._transport.patch(path, {"spec": {"min": {GPU_MEMORY: gigabytes}}})

    def label_writes(self) -> int:
        """How many patches of pods, not of their status, the API server has counted."""
        metrics = self._cluster.run_kubectl("get", "--raw", "/metrics")
        lines = re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", metrics, re.MULTILINE)
        wanted = ('resource="pods"', 'verb="PATCH"', 'subresource=""')
        return sum(int(float(value)) for labels, value in lines if all(w in labels for w in wanted))

    async def quiet(self) -> int:
        """Wait until no label has been written for two seconds; returns how many were written in all."""
        before = -1
        while (now := self.label_writes()) != before:
            before = now
            await asyncio.sleep(2)
        return now

    @contextmanager
    def controller(self) -> Iterator["subprocess.Popen[bytes]"]:
        """The controller, until the end of the block."""
        kubeconfig = self._cluster.service_account_kubeconfig(
            NAMESPACE, SERVICE_ACCOUNT, self._folder / "kubeconfig"
        )
        command = [sys.executable, "-m", "admitter", "run", "--bind", "127.0.0.1:0"]
        with (self._folder / "controller.log").open("ab") as log:
            process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig)], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def _workload(self, name: str, pods: int) -> Json:
        pod_set = {"name": "main", "count": pods, "requests": {SLICE: "1"}}
        spec = {"queueName": "elastic-quota", "podSets": [pod_set]}
        return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": {"name": name}, "spec": spec}

    async def _all(self, path: str, bodies: list[Json]) -> None:
        await asyncio.gather(*(self._create(path, body) for body in bodies))

    async def _create(self, path: str, body: Json) -> None:
        async with self._slots:
            await self._transport.create(path, body)


async def labels(cluster: ControlPlane, count: int, rounds: int, folder: Path) -> Json:
    """How labels are kept among so many quotas."""
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        # The pods here are made by no Job, which this policy forbids.
        await transport.delete(
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/admitter-pods", {}
        )
        bench = Bench(cluster, transport, count, folder)
        result: Json = {"quotas": count}
        with bench.controller():
            await bench.define()
            await bench.admitted()
            result["pods"] = await bench.populate()
            result["labels_written_for_them"] = await bench.quiet()
        result["over_quota"] = await bench.over_quota()
        with bench.controller() as process:
            await asyncio.sleep(20)
            before = await bench.quiet()
            result["labels_written_by_a_restart"] = before - result["labels_written_for_them"]
            result["new_pod_labelled_s"] = spread([await _new_pod(bench, number) for number in range(rounds)])
            after = await bench.quiet()
            result["labels_written_for_a_new_pod"] = (after - before) / rounds
            for number in range(1, 2 * rounds, 2):
                await bench.set_minimum(number, GUARANTEED - 50)
            await asyncio.sleep(10)
            result["labels_written_for_a_minimum_less_by_five_pods"] = (await bench.quiet() - after) / rounds
            result["peak_mb"] = peak_mb(process.pid)
    return result


async def _new_pod(bench: Bench, number: int) -> float:
    """For how long a new pod of a quota has no label, in seconds."""
    began = time.monotonic()
    await bench.pod(number, "young", "new")
    while not await bench.label_of(number, "new"):  # noqa: ASYNC110  # nothing here tells when
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def peak_mb(pid: int) -> int:
    """The most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None, "Linux tells the peak of every process"
    return int(match[1]) // 1024


def main() -> None:
    """Run all, print and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of it, and nothing is saved")
    quick = parser.parse_args().quick
    count, rounds = (100, 10) if quick else (1000, 40)
    result: Json = {"command": "python -m benchmarks.elastic", "python": platform.python_version()}
    result["engine"] = decisions(count, rounds)
    print(json.dumps(result, indent=2), flush=True)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            result["api_server"] = asyncio.run(labels(cluster, count, rounds, folder))
    print(json.dumps(result["api_server"], indent=2))
    if not quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""How soon quota is used again: `make bench-turnaround`, ROUNDS=10.

A queue with room for one Job, on a real API server with Job controller, scheduler and simulated nodes. The
first Job ends in one of several ways (`WAYS`), and the next waits. What is measured is the time from the end
of the last pod that holds quota (it has succeeded, failed or is gone, whichever a watch sees first) to
the admission of the next, as a watch of Workloads sees it. All ways are played at once, each in a queue of
its own, round after round. Prints the figures and writes `benchmarks/results/turnaround.json`.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from admitter.client.transport import HttpTransport, Transport
from admitter.install.apply import install
from admitter.names import API_VERSION, MAX_RUNTIME_ANNOTATION, QUEUE_LABEL, READY_TIMEOUT_ANNOTATION
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.server import Server, setting
from benchmarks.watch import events, newest

RESULTS: Final = Path(__file__).parent / "results"
OWN: Final = f"/apis/{API_VERSION}"
PODS: Final = "/api/v1/pods"
NODES: Final = {"nodeLabels": {"instance-type": "on-demand"}}
LIMIT: Final = "4s"
NEVER_READY: Final = {READY_TIMEOUT_ANNOTATION: LIMIT}

Json = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """How the first Job comes to its end: its annotations, and what its pods have."""

    annotations: Json = field(default_factory=dict)
    pod_annotations: Json = field(default_factory=dict)
    pod: Json = field(default_factory=dict)
    pods: int = 1
    ends: int = 0  # so many of its pods are said to have succeeded while the others run


WAYS: Final = {
    "finished": Way(pod_annotations={"admitter.dev/simulated-runtime": "1s"}),
    "run time over": Way(annotations={MAX_RUNTIME_ANNOTATION: LIMIT}),
    "image missing": Way(NEVER_READY, {"admitter.dev/simulated-trouble": "image"}),
    "crash": Way(NEVER_READY, {"admitter.dev/simulated-trouble": "crash"}),
    "unschedulable": Way(NEVER_READY, pod={"nodeSelector": {"example.com/none": "there"}}),
    "one of two pods": Way(pods=2, ends=1),
}


def job(name: str, way: Way) -> Json:
    """A suspended Job with pods of one CPU."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "containers": [container], **way.pod}
    metadata = {"name": name, "labels": {QUEUE_LABEL: "main"}, "annotations": way.annotations}
    template = {"metadata": {"annotations": way.pod_annotations}, "spec": pod}
    spec = {"suspend": True, "parallelism": way.pods, "completions": way.pods, "template": template}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec | {"backoffLimit": 99},
    }


@dataclass
class Watched:
    """What watches have seen, at which moment of `time.monotonic`.

    Attributes:
        ended: when each pod was first seen to be over, by namespace and the name of its Job.
        running: the names of the pods of a Job that run, by the same.
        admitted: when the Workload of a Job was admitted.
    """

    ended: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    running: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    admitted: dict[tuple[str, str], float] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def pods(self, transport: Transport, version: str) -> None:
        """Follow the pods of Jobs."""
        async for kind, pod in events(transport, PODS, version):
            metadata, phase = pod["metadata"], pod["status"].get("phase")
            job_name = (metadata.get("labels") or {}).get("batch.kubernetes.io/job-name")
            if job_name is None:
                continue
            key, name = (metadata["namespace"], job_name), metadata["name"]
            over = kind == "DELETED" or phase in ("Succeeded", "Failed")
            if over:
                self.ended.setdefault(key, {}).setdefault(name, time.monotonic())
            running = self.running.setdefault(key, set())
            (running.add if phase == "Running" and not over else running.discard)(name)
            await self._tell()

    async def workloads(self, transport: Transport, version: str) -> None:
        """Follow the Workloads of Jobs."""
        async for _, workload in events(transport, f"{OWN}/workloads", version):
            owners = workload["metadata"].get("ownerReferences")
            if owners and workload.get("status", {}).get("admission"):
                key = (workload["metadata"]["namespace"], owners[0]["name"])
                self.admitted.setdefault(key, time.monotonic())
                await self._tell()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with self.changed:
            await self.changed.wait_for(seen)


@dataclass(frozen=True)
class Play:
    """A way, in a namespace and a queue of its own."""

    transport: Transport
    watched: Watched
    namespace: str
    way: Way

    async def define(self) -> None:
        """The namespace and its queue, in which one Job has room."""
        create, name = self.transport.create, self.namespace
        await create("/api/v1/namespaces", {"metadata": {"name": name}})
        quota = {"name": "cpu", "flavors": [{"name": "nodes", "quota": {"min": str(self.way.pods)}}]}
        lifecycle = {"readyTimeout": "1h", "backoff": {"base": "1h", "max": "1h"}}
        spec = {"namespaceSelector": {}, "resources": [quota], "lifecycle": lifecycle}
        await create(f"{OWN}/clusterqueues", own("ClusterQueue", name, spec))
        await create(
            f"{OWN}/namespaces/{name}/localqueues", own("LocalQueue", "main", {"clusterQueue": name})
        )

    async def round(self, number: int) -> float:
        """Let a Job come to its end while the next waits; returns the seconds between the two."""
        jobs = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        first, following = f"first-{number}", f"next-{number}"
        one, other = (self.namespace, first), (self.namespace, following)
        await self.transport.create(jobs, job(first, self.way))
        await self.watched.until(lambda: one in self.watched.admitted)
        await self.transport.create(jobs, job(following, WAYS["finished"]))
        if self.way.ends:
            await self.watched.until(lambda: len(self.watched.running.get(one, ())) == self.way.pods)
            for name in sorted(self.watched.running[one])[: self.way.ends]:
                status = {"status": {"phase": "Succeeded"}}
                path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
                await self.transport.patch(path, status)
        await self.watched.until(lambda: other in self.watched.admitted)
        ended = max(self.watched.ended[one].values())
        await self.watched.until(lambda: other in self.watched.ended)
        for name in (first, following):
            await self.transport.delete(f"{jobs}/{name}", {"propagationPolicy": "Background"})
        return self.watched.admitted[other] - ended


def own(kind: str, name: str, spec: Json) -> Json:
    """An object of Admitter."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def measure(cluster: ControlPlane, folder: Path, rounds: int) -> Json:
    """All ways at once, round after round."""
    server = Server(cluster, folder)
    async with await HttpTransport.connect(await server.people()) as transport:
        await install(transport, deployment=False)
        await transport.create(f"{OWN}/resourceflavors", own("ResourceFlavor", "nodes", NODES))
        watched = Watched()
        plays = {name: Play(transport, watched, name.replace(" ", "-"), way) for name, way in WAYS.items()}
        for play in plays.values():
            await play.define()
        with server.controller():
            await server.quiet()
            async with asyncio.TaskGroup() as group:
                watches = [
                    group.create_task(watched.pods(transport, await newest(transport, PODS))),
                    group.create_task(
                        watched.workloads(transport, await newest(transport, f"{OWN}/workloads"))
                    ),
                ]
                found = await asyncio.gather(*(played(play, rounds) for play in plays.values()))
                for watch in watches:
                    watch.cancel()
    return {name: figures(seconds) for name, seconds in zip(plays, found, strict=True)}


async def played(play: Play, rounds: int) -> list[float]:
    """A way, so many times."""
    return [await play.round(number) for number in range(rounds)]


def figures(seconds: list[float]) -> Json:
    """Milliseconds from the end to the next admission."""
    each = [round(1000 * value) for value in seconds]
    return {"median_ms": round(median(each)), "most_ms": max(each), "each_ms": each}


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="how often each way is played")
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = setting(f"make bench-turnaround ROUNDS={options.rounds}")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", owner=os.getpid()) as cluster:
            result["from_the_last_pods_end_to_the_next_admission"] = asyncio.run(
                measure(cluster, folder, options.rounds)
            )
    print(json.dumps(result, indent=2))
    if not options.dry:
        (RESULTS / "turnaround.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

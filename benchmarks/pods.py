"""Queued pods, and all others: `make bench-pods`, or `python -m benchmarks.pods --part PART`.

Part `queued`: pods by themselves and in groups through the whole of it (`benchmarks.queued_pods`).

Part `unlabelled`: what the API server spends on the creation of pods that name no queue, with our policies
and without. Both are measured on the same server, in turns: in each round the bindings of the policies that
look at pods are there or not, whichever comes first in every second round. Then the same for pods that name a
queue, for which policies do their work.

Prints the figures and writes `benchmarks/results/pods.json`, or `pods-unlabelled.json`.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any, Final

from admitter.client.errors import ApiError, NotFoundError
from admitter.client.transport import HttpTransport, Transport
from admitter.install.apply import install, manifests, object_path
from admitter.names import QUEUE_LABEL
from admitter.sandbox.control_plane import ControlPlane
from benchmarks import queued_pods
from benchmarks.server import Server

RESULTS: Final = Path(__file__).parent / "results"
FILES: Final = {"queued": "pods.json", "unlabelled": "pods-unlabelled.json"}
NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
AT_A_TIME: Final = 8
BINDING: Final = "PolicyBinding"

Json = dict[str, Any]


def pod(name: str, labels: Json) -> Json:
    """A pod of which no scheduler knows."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "labels": labels}
    return {"metadata": metadata, "spec": {"schedulerName": "none", "containers": [container]}}


def bindings_for_pods() -> list[Json]:
    """The bindings of all policies that match pods or what is below them."""
    all_ = list(manifests(deployment=False))
    looking = {
        manifest["metadata"]["name"]
        for manifest in all_
        if manifest["kind"].endswith("AdmissionPolicy")
        for rule in manifest["spec"]["matchConstraints"]["resourceRules"]
        if any(resource.partition("/")[0] == "pods" for resource in rule["resources"])
    }
    return [m for m in all_ if m["kind"].endswith(BINDING) and m["spec"]["policyName"] in looking]


@dataclass
class Bench:
    """A server on which policies come and go.

    Attributes:
        server: with its processes.
        transport: to it.
        count: how many pods are created in a round.
    """

    server: Server
    transport: Transport
    count: int

    async def bind(self, *, there: bool) -> None:
        """Have the bindings there or not, and wait until the API server acts by that."""
        for binding in bindings_for_pods():
            path = object_path(binding)
            if there:
                await self.transport.apply(path, binding)
            else:
                with suppress(NotFoundError):  # they may be gone from the round before
                    await self.transport.delete(path, {})
        while await self._gates() != there or await self._refuses() != there:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.5)

    async def _gates(self) -> bool:
        body = pod("tried", {QUEUE_LABEL: "main"})
        made = await self.transport.create(PODS, body, {"dryRun": "All"})
        return bool(made["spec"].get("schedulingGates"))

    async def _refuses(self) -> bool:
        try:
            await self.transport.create(PODS, pod("tried", {"admitter.dev/workload": "x"}), {"dryRun": "All"})
        except ApiError:
            return True
        return False

    async def cost(self, labels: Json) -> float:
        """CPU milliseconds of the API server for one pod that is created."""
        slots = asyncio.Semaphore(AT_A_TIME)

        async def one(number: int) -> None:
            async with slots:
                await self.transport.create(PODS, pod(f"pod-{number}", labels))

        before = self.server.components()["kube-apiserver"].cpu_s
        await asyncio.gather(*(one(number) for number in range(self.count)))
        spent = self.server.components()["kube-apiserver"].cpu_s - before
        await self.transport.delete(PODS, {"gracePeriodSeconds": 0})
        return spent * 1000 / self.count

    async def pairs(self, labels: Json, rounds: int) -> Json:
        """The same pods with and without policies, in turns."""
        found: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds):
            for there in (True, False) if number % 2 else (False, True):
                await self.bind(there=there)
                found[there].append(await self.cost(labels))
        differences = [with_ - without for with_, without in zip(found[True], found[False], strict=True)]
        error = stdev(differences) / len(differences) ** 0.5
        return {
            "with_policies_ms": rounded(found[True]),
            "without_policies_ms": rounded(found[False]),
            "difference_ms": round(mean(differences), 3),
            "standard_error_ms": round(error, 3),
        }


def rounded(values: list[float]) -> Json:
    """The median, and each value."""
    return {"median": round(median(values), 3), "each": [round(value, 3) for value in values]}


async def unlabelled(cluster: ControlPlane, folder: Path, count: int, rounds: int) -> Json:
    """What pods without a queue cost, and those with one."""
    server = Server(cluster, folder)
    user = await server.people()
    async with await HttpTransport.connect(user) as transport:
        await install(transport, deployment=False)
        await server.quiet()
        bench = Bench(server, transport, count)
        await bench.bind(there=True)
        await bench.cost({})  # the first pods of a server cost more
        return {
            "pods_in_a_round": count,
            "rounds": rounds,
            "unlabelled": await bench.pairs({}, rounds),
            "queued": await bench.pairs({QUEUE_LABEL: "main"}, rounds),
        }


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=sorted(FILES), required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="how many of the pods that are asked for")
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = {
        "command": f"python -m benchmarks.pods --part {options.part} --scale {options.scale:g}",
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "python": platform.python_version(),
    }
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            if options.part == "queued":
                result |= queued_pods.run(cluster, options.scale, folder)
            else:
                count, rounds = round(500 * options.scale), max(2, round(16 * options.scale))
                result |= asyncio.run(unlabelled(cluster, folder, count, rounds))
    print(json.dumps(result, indent=2))
    if not options.dry:
        (RESULTS / FILES[options.part]).write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

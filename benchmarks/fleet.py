"""Many queues in cohorts, and how a benchmark defines them on an API server."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from admitter.client.transport import Transport
from admitter.names import API_VERSION
from benchmarks.engine import KINDS
from tests.cluster.auditor import Use

OWN: Final = f"/apis/{API_VERSION}"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
LOCAL_QUEUE: Final = "main"
RESOURCE: Final = "cpu"
FLAVOR: Final = "default"
MAX: Final = 120
AT_A_TIME: Final = 32

Json = dict[str, Any]


@dataclass(frozen=True)
class Fleet:
    """Cohorts of ClusterQueues that lend to each other; each is used by a namespace of its name.

    Attributes:
        cohorts: how many.
        queues: how many in each.
    """

    cohorts: int
    queues: int

    @property
    def count(self) -> int:
        """How many queues there are."""
        return self.cohorts * self.queues

    def names(self) -> Iterator[str]:
        """The name of each queue and its namespace; all are of one length."""
        return (f"team-{number:04}" for number in range(self.count))

    def cohort_of(self, number: int) -> str:
        """The cohort of a queue."""
        return f"cohort-{number // self.queues}"

    def limits(self, quota: int) -> Mapping[str, Mapping[Use, float]]:
        """What may be in use in each cohort, if each of its queues brings so much."""
        most = {(FLAVOR, RESOURCE): float(self.queues * quota)}
        return {f"cohort-{cohort}": most for cohort in range(self.cohorts)}

    async def define(self, transport: Transport, quota: int) -> None:
        """Create flavor, priorities, cohorts, queues and namespaces.

        Args:
            transport: to the API server, as a user that may.
            quota: the `min` of each queue.
        """
        flavor = {"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": FLAVOR}}
        await transport.create(f"{OWN}/resourceflavors", flavor)
        for kind in KINDS:
            await transport.create(CLASSES, {"metadata": {"name": kind.name}, "value": kind.priority})
        for name in self.limits(quota):
            cohort = {"apiVersion": API_VERSION, "kind": "Cohort", "metadata": {"name": name}}
            await transport.create(f"{OWN}/cohorts", cohort)
        slots = asyncio.Semaphore(AT_A_TIME)
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(self.names()):
                group.create_task(self._queue(transport, slots, name, self.cohort_of(number), quota))

    async def _queue(
        self, transport: Transport, slots: asyncio.Semaphore, name: str, cohort: str, quota: int
    ) -> None:
        spec = {
            "cohort": cohort,
            "namespaceSelector": {},
            "resources": _quota(quota),
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        }
        cluster_queue = {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
        local_queue = {
            "kind": "LocalQueue",
            "metadata": {"name": LOCAL_QUEUE},
            "spec": {"clusterQueue": name},
        }
        version = {"apiVersion": API_VERSION}
        async with slots:
            await transport.create("/api/v1/namespaces", {"metadata": {"name": name}})
            await transport.create(f"{OWN}/clusterqueues", version | cluster_queue)
            await transport.create(f"{OWN}/namespaces/{name}/localqueues", version | local_queue)


def _quota(quota: int) -> list[Json]:
    limits = {"min": str(quota), "max": str(MAX)}
    return [{"name": RESOURCE, "flavors": [{"name": FLAVOR, "quota": limits}]}]

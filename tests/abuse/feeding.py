"""Feeds changed objects of every kind that is read: at the API server itself, and on their way from it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.abuse.in_flight import InFlight
from tests.abuse.mutator import mutated
from tests.abuse.samples import KINDS, MARK, QUEUE, QUEUED
from tests.abuse.waiting import until
from tests.apiserver.experiments import GROUP
from tests.cluster.objects import ON_DEMAND, cluster_queue, local_queue, resource_flavor
from tests.faults.api import BATCH, CORE, OWN, Api, RefusedError

Json = dict[str, Any]

NAMESPACE: Final = "hostile"
DIRECT: Final = "raw-"
"""How names of objects begin that are changed before the API server gets them."""
CPUS: Final = "6"
"""What the queue for the Jobs among them may use."""
BATCH_SIZE: Final = 50
AT_A_TIME: Final = 8
SEEN_SECONDS: Final = 60.0
_NAMESPACED: Final = {
    "jobs": BATCH,
    "experiments": f"/apis/{GROUP}/v1",
    "workloads": OWN,
    "pods": CORE,
    QUEUED: CORE,
    "localqueues": OWN,
    "elasticquotas": OWN,
    "compositeelasticquotas": OWN,
    "resourcequotas": CORE,
    "limitranges": CORE,
    "statefulsets": "/apis/apps/v1",
}
_WIDE: Final = {
    "namespaces": CORE,
    "nodes": CORE,
    "clusterqueues": OWN,
    "cohorts": OWN,
    "resourceflavors": OWN,
    "placementpolicies": OWN,
    "jobkinds": OWN,
    "workloadpriorityclasses": OWN,
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "runtimeclasses": "/apis/node.k8s.io/v1",
}
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/admitter-system/leases"
_OFTEN: Final = {"jobs": 6, "experiments": 4, "workloads": 6, "pods": 2, QUEUED: 4, "clusterqueues": 2}
"""How often these come for each one of another kind."""


@dataclass(frozen=True)
class Fed:
    """One object to be fed.

    Attributes:
        plural: of its kind.
        name: its name.
        direct: whether it is changed before the API server gets it, and not on its way from there.
    """

    plural: str
    name: str
    direct: bool

    @property
    def collection(self) -> str:
        """The path of its collection."""
        if self.plural == "leases":
            return LEASES
        if self.plural in _WIDE:
            return f"{_WIDE[self.plural]}/{self.plural}"
        plural = "pods" if self.plural == QUEUED else self.plural
        return f"{_NAMESPACED[self.plural]}/namespaces/{NAMESPACE}/{plural}"


@dataclass
class Told:
    """What became of what was fed.

    Attributes:
        kinds: how many objects of each kind there were.
        taken: how many of those that were changed before the API server took.
        refused: how many it refused, by status.
        unseen: the names of objects that nothing read in time.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    taken: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    unseen: list[str] = field(default_factory=list)


def planned(seed: int, number: int) -> Iterator[Fed]:
    """So many objects: of each kind one changed on its way and one before, then by chance as many of both."""
    random = Random(seed)
    kinds = [kind for kind in KINDS for _ in range(_OFTEN.get(kind, 1))]
    first = [(kind, direct) for direct in (False, True) for kind in KINDS]
    for each in range(number):
        kind, direct = first[each] if each < len(first) else (random.choice(kinds), random.random() < 0.5)
        yield Fed(kind, f"{DIRECT if direct else MARK}{each:05}", direct)


async def build(api: Api) -> None:
    """Make the namespace of the changed objects, and a queue and a class that are in order for them."""
    await api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
    await api.create(f"{OWN}/resourceflavors", resource_flavor(QUEUE, ON_DEMAND))
    await api.create(f"{OWN}/clusterqueues", cluster_queue(QUEUE, {"cpu": {QUEUE: CPUS}}))
    await api.create(f"{OWN}/workloadpriorityclasses", KINDS["workloadpriorityclasses"]("", QUEUE))
    for name in ("main", "whole"):
        made = local_queue(NAMESPACE, QUEUE, name)
        await api.create(f"{OWN}/namespaces/{NAMESPACE}/localqueues", made)


async def feed(api: Api, flight: InFlight, seed: int, number: int, rate: float) -> Told:
    """Feed objects in batches, each of which is deleted before the next one.

    Args:
        api: where.
        flight: changes those that are not changed before.
        seed: of all chance.
        number: how many.
        rate: how many a second at the most.
    """
    loop = asyncio.get_running_loop()
    began, told, left = loop.time(), Told(), list(planned(seed, number))
    while left:
        batch, left = left[:BATCH_SIZE], left[BATCH_SIZE:]
        told.kinds.update(each.plural for each in batch)
        slots = asyncio.Semaphore(AT_A_TIME)
        made = await asyncio.gather(*(_create(api, each, seed, told, slots) for each in batch))
        await _read(flight, [each for each, there in zip(batch, made, strict=True) if there], told)
        await clear(api, batch)
        await asyncio.sleep(told.kinds.total() / rate - (loop.time() - began))
    return told


async def _create(api: Api, each: Fed, seed: int, told: Told, slots: asyncio.Semaphore) -> bool:
    """Create an object; returns whether it is there and changed on its way."""
    valid = KINDS[each.plural](NAMESPACE, each.name)
    async with slots:
        if each.direct:
            status = await api.post(each.collection, mutated(valid, f"{seed}-{each.name}").text)
            told.refused.update([status] if status >= 400 else ())
            told.taken += status < 400
            return False
        try:
            await api.create(each.collection, valid)
        except RefusedError as error:
            told.refused[error.status] += 1
            return False
        return True


async def _read(flight: InFlight, batch: list[Fed], told: Told) -> None:
    """Wait until the controller has been sent all objects of a batch."""
    wanted = {each.name for each in batch if each.plural not in {"leases", "pods"}}

    async def read() -> bool:
        return wanted <= flight.names

    await until(read, SEEN_SECONDS)
    told.unseen += sorted(wanted - flight.names)


async def clear(api: Api, batch: list[Fed]) -> None:
    """Delete a batch: in the namespace all of each kind, elsewhere one by one."""
    slots = asyncio.Semaphore(AT_A_TIME)

    async def one(path: str) -> None:
        async with slots:
            await api.delete(path, gracePeriodSeconds="0")

    collections = {each.collection for each in batch if each.plural in _NAMESPACED}
    kept = f"{OWN}/namespaces/{NAMESPACE}/localqueues"
    paths = sorted(collections - {kept})
    paths += [
        f"{each.collection}/{each.name}"
        for each in batch
        if each.collection == kept or each.plural not in _NAMESPACED
    ]
    await asyncio.gather(*map(one, paths))

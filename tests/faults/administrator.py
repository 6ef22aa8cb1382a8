"""An administrator that edits, deletes and makes anew, with a hand that is not always steady."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from random import Random
from typing import Any, Final

from tests.cluster.objects import job, local_queue, resource_flavor
from tests.faults.api import BATCH, CORE, OWN, Api, RefusedError
from tests.faults.ledger import Ledger
from tests.faults.scene import MANAGER, PLACES, SPARE, Place, queue

Json = dict[str, Any]

JOBS_OF_PASSING: Final = 6
LOOKS: Final = 100
LOOK_SECONDS: Final = 0.2
_PLACES: Final = {place.name: place for place in PLACES}
_SHARED: Final = ("alpha", "beta", "gamma")
_STEADY: Final = ("strict", "burst")
"""These are left alone: what is checked there takes order for granted."""


class Administrator:
    """Acts on the API server directly; `ACTS` has what can be asked of it."""

    def __init__(self, api: Api, hand: Api, ledger: Ledger) -> None:
        """Prepare.

        Args:
            api: as an administrator.
            hand: with the controller's own account: no other client may write what it writes.
            ledger: is told what is deleted on purpose.
        """
        self._api = api
        self._hand = hand
        self._ledger = ledger
        self._locks = {name: asyncio.Lock() for name in (*_PLACES, SPARE)}

    async def edit_queue(self, seconds: float, random: Random) -> None:
        """Change the quota of a queue that is in use, for a while."""
        place = _PLACES[random.choice(_SHARED)]
        less = random.random() < 0.7
        changed = Place(
            place.name,
            place.least // 2 if less else place.least + 10,
            place.most // 2 if less else place.most + 20,
            place.cohort,
            place.flavor,
            place.share,
        )
        async with self._locks[place.name]:
            path = f"{OWN}/clusterqueues/{place.name}"
            await self._api.patch(path, {"spec": queue(changed)["spec"]})
            await asyncio.sleep(seconds)
            await self._api.patch(path, {"spec": queue(place)["spec"]})

    async def recreate_queue(self, seconds: float, random: Random) -> None:
        """Delete a queue that is in use, and make it anew."""
        await self._replace(random.choice(_SHARED), seconds)

    async def recreate_bystander(self, seconds: float, _random: Random) -> None:
        """The same of one that shares with no other."""
        await self._replace("bystander", seconds)

    async def _replace(self, name: str, seconds: float) -> None:
        async with self._locks[name]:
            await self._api.delete(f"{OWN}/clusterqueues/{name}")
            await asyncio.sleep(seconds)
            await self._api.create(f"{OWN}/clusterqueues", queue(_PLACES[name]))

    async def overwrite_bystander(self, seconds: float, _random: Random) -> None:
        """Delete a queue, make it anew at once with a flavor that does not exist, and right it later."""
        place = _PLACES["bystander"]
        wrong = Place(place.name, place.least, place.most, "", "missing", place.share)
        async with self._locks[place.name]:
            path = f"{OWN}/clusterqueues"
            await self._api.delete(f"{path}/{place.name}")
            await self._api.create(path, queue(wrong))
            await asyncio.sleep(seconds)
            await self._api.patch(f"{path}/{place.name}", {"spec": queue(place)["spec"]})

    async def recreate_local_queue(self, seconds: float, random: Random) -> None:
        """Delete a LocalQueue, and make it anew."""
        name = random.choice(("bystander", "gamma"))
        path = f"{OWN}/namespaces/{name}/localqueues"
        async with self._locks[name]:
            await self._api.delete(f"{path}/main")
            await asyncio.sleep(seconds)
            await self._api.create(path, local_queue(name, name))

    async def recreate_flavor(self, seconds: float, _random: Random) -> None:
        """Delete a flavor that is in use, and make it anew."""
        async with self._locks[SPARE]:
            await self._api.delete(f"{OWN}/resourceflavors/{SPARE}")
            await asyncio.sleep(seconds)
            await self._api.create(f"{OWN}/resourceflavors", resource_flavor(SPARE, {}))

    async def delete_namespace(self, seconds: float, random: Random) -> None:
        """Delete a namespace with Jobs that wait and Jobs that run."""
        name = f"passing-{random.randrange(10**6):06}"
        self._ledger.expected_gone.add(name)
        await self._api.create(f"{CORE}/namespaces", {"metadata": {"name": name}})
        await self._api.create(f"{OWN}/namespaces/{name}/localqueues", local_queue(name, "bystander"))
        for number in range(JOBS_OF_PASSING):
            made = job(name, f"{name}-{number}", requests={"cpu": "2"}, managedBy=MANAGER)
            made["metadata"]["annotations"] = {"runs": "600"}
            await self._api.create(f"{BATCH}/namespaces/{name}/jobs", made)
        await asyncio.sleep(seconds)
        await self._api.delete(f"{CORE}/namespaces/{name}")

    async def delete_workload(self, _seconds: float, random: Random) -> bool:
        """Delete a user's Workload, whether or not it is admitted."""

        async def delete(workload: Json) -> None:
            await self._api.delete(_path(workload))

        return await self._lay_hands_on(random, lambda _: True, delete)

    async def overwrite_status(self, _seconds: float, random: Random) -> bool:
        """Write nonsense into what a Workload's status says, but for what it holds."""
        nonsense = {
            "type": random.choice(("QuotaReserved", "Nonsense", "EvictionPending")),
            "status": random.choice(("True", "False", "Unknown")),
            "reason": "Nonsense",
            "message": "written by hand",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"conditions": [nonsense], "reason": "Nonsense", "message": "written by hand"}
        return await self._lay_hands_on(random, lambda _: True, self._writing(status))

    async def evict_by_hand(self, _seconds: float, random: Random) -> bool:
        """Write Evicted into the status of a Workload that is admitted."""
        evicted = {
            "type": "Evicted",
            "status": "True",
            "reason": "Preempted",
            "message": "written by hand",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        return await self._lay_hands_on(
            random,
            lambda workload: bool(workload["status"].get("admission")),
            self._writing({"conditions": [evicted]}),
        )

    def _writing(self, status: Json) -> Callable[[Json], Awaitable[None]]:
        """What writes a status by the controller's own account.

        Only into a Workload that still is as it was looked at: one that has finished since would hold again
        what has been given to another, and no controller could have prevented that.
        """

        async def write(workload: Json) -> None:
            seen = {"resourceVersion": workload["metadata"]["resourceVersion"]}
            await self._hand.patch(f"{_path(workload)}/status", {"metadata": seen, "status": status})

        return write

    async def _lay_hands_on(
        self, random: Random, wanted: Callable[[Json], bool], act: Callable[[Json], Awaitable[None]]
    ) -> bool:
        """Do something to a user's Workload that is not finished, as soon as there is one."""
        for _ in range(LOOKS):
            listed = await self._api.get(f"{OWN}/workloads")
            found = [
                w
                for w in listed["items"]
                if w["metadata"]["namespace"] not in _STEADY
                and w.get("status", {}).get("state") not in {None, "Finished"}
                and wanted(w)
            ]
            try:
                if found:
                    await act(random.choice(sorted(found, key=_path)))
                    return True
            except RefusedError as error:
                if error.status not in {HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND}:
                    raise  # those it tries with another one
            await asyncio.sleep(LOOK_SECONDS)
        return False


def _path(workload: Json) -> str:
    metadata = workload["metadata"]
    return f"{OWN}/namespaces/{metadata['namespace']}/workloads/{metadata['name']}"


Act = Callable[[Administrator, float, Random], Awaitable[bool | None]]

ACTS: Final[dict[str, Act]] = {
    "queue edited": Administrator.edit_queue,
    "queue recreated": Administrator.recreate_queue,
    "bystander queue recreated": Administrator.recreate_bystander,
    "bystander queue written over": Administrator.overwrite_bystander,
    "LocalQueue recreated": Administrator.recreate_local_queue,
    "flavor recreated": Administrator.recreate_flavor,
    "namespace deleted": Administrator.delete_namespace,
    "Workload deleted": Administrator.delete_workload,
    "status written over": Administrator.overwrite_status,
    "evicted by hand": Administrator.evict_by_hand,
}

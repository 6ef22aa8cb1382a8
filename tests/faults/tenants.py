"""Tenants that try what they can (`tests.abuse`) while things fail, and the watcher of what they use.

What the ledger takes for granted of Jobs (that no user deletes them, that each comes to its end) does not
hold for theirs. So it is not told of their namespaces, and the watcher of `tests.abuse` checks them by bound
pods alone. Elastic quotas have one pool: the watcher adds up those of the crowd too. Users of queued pods
(`tests.faults.pods`) are watched with them, and each start of theirs by `tests.faults.starts`.
"""

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.abuse.closing import clear, lost_quota
from tests.abuse.crowd import Crowd
from tests.abuse.plan import plan
from tests.abuse.scene import GROUNDS, Ground, build, tenants, token
from tests.abuse.watcher import Watcher
from tests.faults import pods
from tests.faults.api import BATCH, Api
from tests.faults.facts import parse
from tests.faults.follow import EVERYTHING, Auditor, Scope
from tests.faults.plan import Plan
from tests.faults.pods import PodCrowd
from tests.faults.scene import ELASTIC, limits
from tests.faults.starts import Starts, scope

Json = dict[str, Any]

TRAIL: Final = 40
"""So many operations are told of each finding."""
_NAMESPACES: Final = frozenset(ground.namespace for ground in (*GROUNDS, *pods.GROUNDS))
_RUNNING: Final = frozenset(("jobs", "pods", "workloads"))


def _read(kind: str, raw: Json) -> object:
    theirs = kind in _RUNNING and raw["metadata"]["namespace"] in _NAMESPACES
    return None if theirs else parse(kind, raw)


OTHERS: Final = Scope(EVERYTHING.paths, _read)
"""What the ledger is told: everything but what tenants run; their quotas lend to others."""


@dataclass
class Tenants:
    """All of them, and their watcher.

    Attributes:
        auditors: follow the API server; run all the while.
        watcher: checks what bound pods use.
        crowd: the tenants.
        pods: users of queued pods.
        starts: checks when those run.
    """

    auditors: tuple[Auditor, ...]
    watcher: Watcher
    crowd: Crowd
    pods: PodCrowd
    starts: Starts
    _api: Api
    _plan: Plan

    @classmethod
    def of(cls, api: Api, planned: Plan) -> "Tenants":
        """Those of a plan; nothing is made yet."""
        elastic = (Ground(place.name, elastic=limits(place), tenants=0) for place in ELASTIC)
        watcher = Watcher((*GROUNDS, *elastic, *pods.GROUNDS), described=False)
        crowd = Crowd(api.server, api.trusted, planned.operations / planned.seconds)
        makers = PodCrowd(api, Random(f"{planned.seed}/makers"), planned.pods)
        starts = Starts(deleted=makers.deleted)
        makers.is_done = starts.is_done
        places = tuple(ground.namespace for ground in pods.GROUNDS)
        auditors = (Auditor(api, watcher, watcher.scope), Auditor(api, starts, scope(places)))
        return cls(auditors, watcher, crowd, makers, starts, api, planned)

    async def build(self) -> None:
        """Make their namespaces and quotas."""
        await build(self._api)
        await self.pods.build()

    async def run(self) -> None:
        """Have them do all that is planned, and delete what they leave: some would hold quota for ever."""
        users = tenants()
        courses = plan(self._plan.seed, self._plan.operations, users)
        tokens = [await token(self._api, user.ground.namespace, user.name) for user in users]
        await self.crowd.run(zip(courses, tokens, strict=True))
        await clear(self._api)

    async def close(self) -> list[tuple[str, str]]:
        """Delete what they have left, and check everything until now.

        Returns:
            What was wrong, and what led to it.
        """
        left = await clear(self._api)
        lost = await lost_quota(self._api)
        broken = await self.pods.close()
        listed = await self._api.get(f"{BATCH}/jobs", limit="1")
        version = int(listed["metadata"]["resourceVersion"])
        for auditor in self.auditors:
            await auditor.catch_up(version)
        wrong = [f"{name} of a tenant could not be deleted" for name in left]
        wrong += [f"Job {name} did not run, though its quota is free: some of it is lost" for name in lost]
        wrong += [*broken, *self.starts.close()]
        found = [(f.words, "\n".join(self.crowd.trail(f.about, TRAIL))) for f in self.watcher.findings]
        return [*found, *((words, words) for words in wrong)]

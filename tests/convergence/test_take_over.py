"""A process that takes over knows less than the one before knew: its watches may be behind."""

import asyncio
from random import Random

from admitter.cache.views import parse_job
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle
from admitter.election.elector import ElectionListener
from admitter.election.lease_lock import Term
from tests.apiserver.loop import run
from tests.apiserver.server import Json, clock
from tests.convergence.scene import Alone, Scene

BEHIND_SECONDS = 50.0


class Follower(Alone):
    """A second process, which leads once it is told to."""

    def __init__(self, scene: Scene) -> None:
        self._app = App(scene.server, clock, Random(2))
        self._term = asyncio.create_task(AppLifecycle(self._app).run(self))
        self._listener: ElectionListener | None = None

    def start(self, listener: ElectionListener) -> None:
        self._listener = listener

    def lead(self) -> None:
        assert self._listener is not None
        self._listener.acquired(0, Term(handed_over=False))

    def knows(self, jobs: int) -> bool:
        """Whether it knows so many admitted Workloads."""
        return sum(each.admission is not None for each in self._app.world.workloads) == jobs

    async def kill(self) -> None:
        self._term.cancel()
        await asyncio.wait([self._term])


class StartsWithoutAdmission:
    """Notes each Job that is set running while its Workload has no admission."""

    def __init__(self, scene: Scene) -> None:
        self.found: list[str] = []
        self._scene = scene
        scene.server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural != "jobs" or before is None or after is None:
            return
        if parse_job(before).suspended and not parse_job(after).suspended:
            name = after["metadata"]["name"]
            workload = self._scene.workload(name)
            if workload is None or not (workload.get("status") or {}).get("admission"):
                self.found.append(name)


def scene_of_two() -> Scene:
    scene = Scene({"a": 2}, withinClusterQueue="LowerPriority")
    scene.jobs.lasts = lambda _: 1000.0
    scene.submit("victim", "a", 2, "low")
    return scene


def test_a_released_workload_is_not_started_by_a_new_leader_whose_watch_is_behind() -> None:
    async def story() -> None:
        scene = scene_of_two()
        starts = StartsWithoutAdmission(scene)
        await scene.start()
        follower = Follower(scene)
        await scene.settled(lambda: scene.runs("victim") == 1 and follower.knows(1))
        scene.server.behind = lambda plural: BEHIND_SECONDS if plural == "workloads" else 0.0
        scene.submit("preemptor", "a", 2, "high")
        await scene.server.until(lambda: scene.condition("victim", "QuotaReserved") == "False")
        await scene.server.until(lambda: scene.runs("preemptor") == 1)
        await scene.kill()
        assert follower.knows(1), "its watch is behind: of the victim it knows the admission"
        follower.lead()
        await asyncio.sleep(BEHIND_SECONDS / 2)
        assert starts.found == []
        assert (scene.runs("victim"), scene.runs("preemptor")) == (0, 1)
        scene.server.behind = lambda _: 0.0
        await scene.settled()
        assert starts.found == []
        assert scene.excesses == []
        await follower.kill()

    run(story())


def test_a_job_is_not_started_for_a_workload_that_is_gone() -> None:
    async def story() -> None:
        scene = scene_of_two()
        starts = StartsWithoutAdmission(scene)
        await scene.start()
        follower = Follower(scene)
        await scene.settled(lambda: scene.runs("victim") == 1 and follower.knows(1))
        await scene.kill()
        scene.server.behind = lambda plural: BEHIND_SECONDS if plural == "workloads" else 0.0
        gone = scene.workload("victim")
        assert gone is not None
        scene.server.write("/apis/batch/v1/namespaces/team/jobs/victim", {"spec": {"suspend": True}})
        scene.server.remove(
            f"/apis/admitter.dev/v1alpha1/namespaces/team/workloads/{gone['metadata']['name']}"
        )
        await asyncio.sleep(1)
        assert follower.knows(1), "its watch is behind"
        follower.lead()
        await asyncio.sleep(BEHIND_SECONDS / 2)
        assert starts.found == []
        scene.server.behind = lambda _: 0.0
        await scene.settled(lambda: scene.runs("victim") == 1)
        assert starts.found == []
        assert scene.excesses == []
        await follower.kill()

    run(story())

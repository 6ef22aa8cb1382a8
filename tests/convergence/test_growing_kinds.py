"""RayClusters grow into idle quota by their autoscaler, and shrink before anything is evicted."""

import asyncio
import itertools
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from admitter.names import QUEUE_LABEL
from tests.apiserver.experiments import DEFINITIONS, JOB_KINDS
from tests.apiserver.loop import run
from tests.apiserver.rays import GROUP, RayOperator, definition, group, job_kind, pod_template, pods_of
from tests.convergence.scene import TEAM, Scene
from tests.convergence.test_random_operations import pause
from tests.scale import scaled

Json = dict[str, Any]

RAYS = f"/apis/{GROUP}/v1/namespaces/{TEAM}/rayclusters"
BOUNDS = "admitter.dev/original-bounds"
SUSPEND = {"suspend": True}


class Rays(Scene):
    """Queues of CPU, and RayClusters with a head of one CPU.

    Attributes:
        beyond: moments at which more pods of a worker group lived than were granted.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        self.beyond: list[str] = []
        super().__init__(cpu, **preemption)
        self.jobs.lasts = lambda _: 10_000.0
        self.server.grace = lambda plural, _: 2.0 if plural == "pods" else 0.0
        self.server.make(DEFINITIONS, definition())
        self.server.make(JOB_KINDS, job_kind())
        self.operator = RayOperator(self.server)
        self.server.listen(self._compare)

    def _compare(self, plural: str, _before: Json | None, _after: Json | None) -> None:
        if plural not in {"pods", "workloads"}:
            return
        for _, name in list(self.server.objects["rayclusters"]):
            status = (self.workload(name) or {}).get("status") or {}
            admitted = (status.get("admission") or {}).get("podSets") or ()
            granted = {each["name"]: each["count"] for each in admitted}
            for each in (status.get("resize") or {}).get("podSets") or ():
                granted[each["name"]] = max(granted.get(each["name"], 0), each["granted"])
            for part in {"headgroup", *granted} - {"head"}:
                alive = len(list(pods_of(self.server, self.job(name)["metadata"]["uid"], part)))
                most = granted.get("head" if part == "headgroup" else part, 0)
                if alive > most:
                    self.beyond.append(f"{name}: {alive} pods of {part}, {most} granted")

    def cluster(self, name: str, queue: str, *groups: Json, autoscales: bool = True) -> None:
        """A user makes a RayCluster, which a policy stops."""
        spec: Json = {"suspend": True, "headGroupSpec": {"template": pod_template(1)}}
        spec |= {"workerGroupSpecs": list(groups), "enableInTreeAutoscaling": autoscales}
        self.server.make(RAYS, {"metadata": {"name": name, "labels": {QUEUE_LABEL: queue}}, "spec": spec})

    def job(self, name: str) -> Json:
        if (TEAM, name) in self.server.objects["jobs"]:
            return super().job(name)
        return self.server.find(f"{RAYS}/{name}")

    def ask(self, name: str, replicas: int, place: int = 0) -> None:
        """An autoscaler, or a user, asks for replicas of a group."""
        groups = [dict(each) for each in self.job(name)["spec"]["workerGroupSpecs"]]
        groups[place]["replicas"] = replicas
        self.server.write(f"{RAYS}/{name}", {"spec": {"workerGroupSpecs": groups}})

    def bounds(self, name: str) -> list[int]:
        return [each["maxReplicas"] for each in self.job(name)["spec"]["workerGroupSpecs"]]

    def sizes(self, name: str) -> list[int]:
        return [each["replicas"] for each in self.job(name)["spec"]["workerGroupSpecs"]]

    def workers(self, name: str, part: str = "small") -> int:
        return len(list(pods_of(self.server, self.job(name)["metadata"]["uid"], part)))

    def parts(self, name: str) -> dict[str, tuple[int, int]]:
        """How many pods of each pod set are granted and wanted."""
        said = ((self.workload(name) or {}).get("status") or {}).get("resize") or {}
        return {each["name"]: (each["granted"], each["wanted"]) for each in said.get("podSets") or ()}


def test_an_autoscaler_gets_more_when_it_reaches_its_bound_and_gives_it_back_without_an_eviction() -> None:
    async def story() -> None:
        scene = Rays({"a": 9})
        scene.cluster("tune", "a", group("small", 2, 6))
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 2)
        assert scene.bounds("tune") == [4] or scene.bounds("tune") == [2]
        await scene.settled(lambda: scene.parts("tune") == {"small": (4, 4)} and scene.bounds("tune") == [4])
        assert scene.workers("tune") == 2
        scene.ask("tune", 4)
        await scene.settled(lambda: scene.workers("tune") == 4)
        await scene.settled(lambda: scene.parts("tune") == {"small": (6, 6)} and scene.bounds("tune") == [6])
        scene.ask("tune", 6)
        await scene.settled(lambda: scene.workers("tune") == 6)
        scene.submit("next", "a", 1, pods=4)
        await scene.settled(lambda: scene.runs("next") == 4)
        assert (scene.workers("tune"), scene.bounds("tune"), scene.sizes("tune")) == (4, [4], [4])
        assert scene.condition("tune", "Evicted") == ""
        assert "Resized" in scene.events("tune")
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_a_cluster_that_nothing_asks_more_for_is_written_as_before() -> None:
    async def story() -> None:
        scene = Rays({"a": 9})
        scene.cluster("fixed", "a", group("small", 3, 8), autoscales=False)
        await scene.start()
        await scene.settled(lambda: scene.workers("fixed") == 3)
        await asyncio.sleep(100)
        assert scene.bounds("fixed") == [3]
        assert scene.parts("fixed") == {}
        await scene.kill()

    run(story())


def test_what_a_user_asks_for_beyond_the_grant_waits_for_idle_quota_and_is_given_back() -> None:
    async def story() -> None:
        scene = Rays({"a": 8})
        scene.cluster("tune", "a", group("small", 2, 9), group("big", 1, 3, hosts=2), autoscales=False)
        await scene.start()
        await scene.settled(lambda: scene.workers("tune", "big") == 2 and scene.workers("tune") == 2)
        scene.ask("tune", 7)
        scene.ask("tune", 2, place=1)
        await scene.settled(lambda: scene.used("a") == 8000)
        await scene.settled(lambda: scene.workers("tune", "big") + scene.workers("tune") == 7)
        assert scene.sizes("tune") == [7, 2]
        assert scene.parts("tune").keys() <= {"small", "big"}
        scene.ask("tune", 2)
        await scene.settled(lambda: scene.workers("tune") == 2)
        await scene.settled(lambda: scene.workers("tune", "big") == 4 and scene.bounds("tune") == [2, 2])
        scene.ask("tune", 1, place=1)
        await scene.settled(lambda: scene.workers("tune", "big") == 2 and scene.used("a") == 5000)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_an_eviction_puts_back_what_its_user_wrote() -> None:
    async def story() -> None:
        scene = Rays({"a": 7}, withinClusterQueue="LowerPriority")
        scene.cluster("tune", "a", group("small", 2, 6))
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 2 and scene.bounds("tune") == [4])
        scene.ask("tune", 4)
        await scene.settled(lambda: scene.workers("tune") == 4)
        scene.submit("urgent", "a", 1, priority="high", pods=6)
        await scene.settled(lambda: scene.runs("urgent") == 6)
        assert (scene.bounds("tune"), scene.sizes("tune")) == ([6], [2])
        assert BOUNDS not in (scene.job("tune")["metadata"].get("annotations") or {})
        assert "resize" not in (scene.workload("tune") or {})["status"]
        assert scene.job("tune")["spec"]["suspend"] is True
        scene.delete("urgent")
        await scene.settled(lambda: scene.workers("tune") == 2)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_an_autoscaler_that_goes_down_and_up_again_keeps_what_was_admitted() -> None:
    async def story() -> None:
        scene = Rays({"a": 7})
        scene.cluster("tune", "a", group("small", 3, 3))
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 3)
        names = [pod["metadata"]["name"] for pod in pods_of(scene.server, _uid(scene, "tune"), "small")]
        groups = [dict(each) for each in scene.job("tune")["spec"]["workerGroupSpecs"]]
        groups[0] |= {"replicas": 0, "scaleStrategy": {"workersToDelete": names}}
        scene.server.write(f"{RAYS}/tune", {"spec": {"workerGroupSpecs": groups}})
        await scene.settled(lambda: scene.workers("tune") == 0)
        await asyncio.sleep(60)
        assert scene.used("a") == 4000
        scene.ask("tune", 3)
        await scene.settled(lambda: scene.workers("tune") == 3)
        assert scene.condition("tune", "Evicted") == ""
        await scene.kill()

    run(story())


def test_a_user_that_asks_for_something_else_all_the_time_keeps_nothing_from_others() -> None:
    async def flap(scene: Rays) -> None:
        for replicas in itertools.cycle((2, 1, 3)):
            scene.ask("tune", replicas, place=1)
            await asyncio.sleep(0.2)

    async def story() -> None:
        scene = Rays({"a": 8})
        scene.cluster("tune", "a", group("small", 2, 9), group("big", 1, 3, hosts=2), autoscales=False)
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 2)
        scene.ask("tune", 5)
        await scene.settled(lambda: scene.workers("tune") == 5)
        flapping = asyncio.create_task(flap(scene))
        scene.submit("next", "a", 1, pods=3)
        await scene.server.until(lambda: scene.runs("next") == 3, seconds=60.0)
        flapping.cancel()
        assert scene.workers("tune") == 2
        assert scene.condition("tune", "Evicted") == ""
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_a_group_that_its_user_suspends_gives_all_back_and_an_eviction_puts_its_bound_back() -> None:
    async def story() -> None:
        scene = Rays({"a": 8})
        scene.cluster("tune", "a", group("small", 2, 6), group("big", 1, 1, hosts=2), autoscales=False)
        await scene.start()
        scene.ask("tune", 5)
        await scene.settled(lambda: scene.workers("tune") == 5)
        groups = [dict(each) for each in scene.job("tune")["spec"]["workerGroupSpecs"]]
        scene.server.write(f"{RAYS}/tune", {"spec": {"workerGroupSpecs": [groups[0] | SUSPEND, groups[1]]}})
        scene.submit("next", "a", 1, pods=5)
        await scene.settled(lambda: scene.runs("next") == 5)
        assert (scene.workers("tune"), scene.workers("tune", "big")) == (0, 2)
        assert scene.condition("tune", "Evicted") == ""
        pause(scene, str((scene.workload("tune") or {})["metadata"]["name"]), active=False)
        await scene.settled(lambda: scene.condition("tune", "QuotaReserved") == "False")
        assert scene.bounds("tune") == [6, 1]
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_one_that_has_lost_what_it_remembers_of_its_bounds_is_evicted() -> None:
    async def story() -> None:
        scene = Rays({"a": 6})
        scene.cluster("tune", "a", group("small", 2, 6))
        await scene.start()
        await scene.settled(lambda: scene.bounds("tune") == [4])
        scene.server.write(f"{RAYS}/tune", {"metadata": {"annotations": {BOUNDS: None}}})
        await scene.settled(lambda: scene.condition("tune", "Evicted") == "True")
        await scene.settled(lambda: scene.workers("tune") == 2)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def _uid(scene: Rays, name: str) -> str:
    return str(scene.job(name)["metadata"]["uid"])


async def killed_after(scene: Rays, changes: int, seed: int) -> None:
    """Kill the controller after so many changes of anything, or when all is still; start another one."""
    seen = 0

    def changed(*_: object) -> None:
        nonlocal seen
        seen += 1

    scene.server.listen(changed)
    with suppress(TimeoutError):
        await scene.server.until(lambda: seen >= changes, seconds=100.0)
    await scene.kill()
    await scene.start(seed)


@pytest.mark.parametrize("seed", range(scaled(5, 160)))
def test_it_goes_on_wherever_a_controller_is_killed(seed: int) -> None:
    """In the middle of growth, and in the middle of shrinking."""

    async def story() -> None:
        random, scene = Random(seed), Rays({"a": 6, "b": 4})
        scene.cluster("tune", "a", group("small", 2, 9), group("big", 1, 2, hosts=2), autoscales=seed % 2 > 0)
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 2 and scene.workers("tune", "big") == 2)
        scene.ask("tune", 4)
        if seed % 4 > 1:
            scene.ask("tune", 2, place=1)
        await killed_after(scene, random.randint(1, 9), seed)
        scene.ask("tune", 9 if random.random() < 0.5 else 5)
        await killed_after(scene, random.randint(1, 9), seed + 1)
        await scene.settled(lambda: scene.workers("tune") + scene.workers("tune", "big") >= 6)
        scene.submit("owner", "b", 1, pods=4)
        await killed_after(scene, random.randint(3, 20), seed + 2)
        await scene.settled(lambda: scene.runs("owner") == 4)
        assert scene.workers("tune") + scene.workers("tune", "big") <= 5
        assert (scene.workers("tune") >= 2, scene.workers("tune", "big")) == (True, 2)
        assert scene.condition("tune", "Evicted") == ""
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())

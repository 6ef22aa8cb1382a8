"""A Job grows into idle quota, and shrinks before anything is evicted; so it goes on after any restart."""

import asyncio
from random import Random
from typing import Any

import pytest

from tests.apiserver.loop import run
from tests.convergence.scene import JOBS, Scene
from tests.scale import scaled

Json = dict[str, Any]

LEAST = "admitter.dev/min-parallelism"
MOST = "admitter.dev/max-parallelism"
ORIGINAL = "admitter.dev/original-parallelism"
GRANTED = "admitter.dev/granted-parallelism"


class Growing(Scene):
    """Queues in which Jobs run on; each pod uses one CPU.

    Attributes:
        beyond: moments at which more pods of a Job lived than were granted.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        self.beyond: list[str] = []
        super().__init__(cpu, **preemption)
        self.jobs.lasts = lambda _: 10_000.0
        self.server.listen(self._compare)

    def _compare(self, plural: str, _before: Json | None, _after: Json | None) -> None:
        if plural not in {"pods", "workloads"}:
            return
        for _, name in self.server.objects["jobs"]:
            workload, alive = self.workload(name), self.runs(name)
            said = (workload or {}).get("status") or {}
            admitted = sum(each["count"] for each in (said.get("admission") or {}).get("podSets") or ())
            granted = max(admitted, (said.get("resize") or {}).get("granted", 0))
            if alive > granted:
                self.beyond.append(f"{name}: {alive} pods, {granted} granted")

    def able(self, name: str, queue: str, pods: int, most: str, completions: int = 100) -> None:
        """A user makes a Job that can use more pods."""
        self.submit(name, queue, 1, pods=pods)
        spec = {"completions": completions}
        self.server.write(f"{JOBS}/{name}", {"metadata": {"annotations": {MOST: most}}, "spec": spec})

    def resize(self, name: str) -> tuple[int, int] | None:
        """How many pods are granted and wanted."""
        said = ((self.workload(name) or {}).get("status") or {}).get("resize")
        return (said["granted"], said["wanted"]) if said else None

    def notes(self, name: str) -> tuple[int, str | None, str | None]:
        job = self.job(name)
        said = job["metadata"].get("annotations") or {}
        return job["spec"]["parallelism"], said.get(ORIGINAL), said.get(GRANTED)

    def message(self, name: str) -> str:
        return str((self.workload(name) or {})["status"].get("message"))


def test_it_grows_and_gives_back_what_is_needed_without_an_eviction() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 4, "7")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 7)
        assert scene.notes("sweep") == (7, "4", "7")
        assert scene.resize("sweep") == (7, 7)
        assert scene.message("sweep") == "runs with 7 pods, 3 of them extra: these go first"
        scene.submit("next", "a", 1, pods=3)
        await scene.settled(lambda: scene.runs("next") == 3)
        assert scene.runs("sweep") == 5
        assert scene.resize("sweep") == (5, 7)
        assert scene.condition("sweep", "Evicted") == ""
        assert "Resized" in scene.events("sweep")
        scene.delete("next")
        await scene.settled(lambda: scene.runs("sweep") == 7)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_a_job_that_cannot_use_more_is_written_as_before() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.submit("plain", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("plain") == 4)
        assert scene.resize("plain") is None
        assert scene.notes("plain") == (4, None, None)
        await scene.kill()

    run(story())


def test_its_completions_are_a_limit_too() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 2, "8", completions=5)
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 5)
        assert scene.resize("sweep") == (5, 5)
        await scene.kill()

    run(story())


def test_an_eviction_puts_its_own_parallelism_back() -> None:
    async def story() -> None:
        scene = Growing({"a": 8}, withinClusterQueue="LowerPriority")
        scene.able("sweep", "a", 4, "8")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 8)
        scene.submit("urgent", "a", 1, priority="high", pods=6)
        await scene.settled(lambda: scene.runs("urgent") == 6)
        assert scene.notes("sweep") == (4, None, None)
        assert scene.resize("sweep") is None
        assert scene.condition("sweep", "Evicted") == "True"
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_what_is_no_number_keeps_it_waiting() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 4, "many")
        await scene.start()
        words = "its annotation admitter.dev/max-parallelism is 'many', which is no number of pods"
        await scene.server.until(lambda: words in str(scene.events("sweep")))
        assert scene.runs("sweep") == 0
        await scene.kill()

    run(story())


def test_a_user_that_says_that_it_can_use_fewer_gets_fewer() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 2, "8")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 8)
        scene.server.write(f"{JOBS}/sweep", {"metadata": {"annotations": {MOST: "3"}}})
        await scene.settled(lambda: scene.runs("sweep") == 3 and scene.resize("sweep") == (3, 3))
        await scene.kill()

    run(story())


def test_one_that_starts_with_fewer_pods_grows_too_and_its_own_number_is_kept() -> None:
    async def story() -> None:
        scene = Growing({"a": 6}, withinClusterQueue="LowerPriority")
        scene.submit("first", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("first") == 4)
        scene.able("sweep", "a", 4, "6")
        scene.server.write(f"{JOBS}/sweep", {"metadata": {"annotations": {LEAST: "1"}}})
        await scene.settled(lambda: scene.runs("sweep") == 2)
        scene.delete("first")
        await scene.settled(lambda: scene.runs("sweep") == 6)
        assert scene.notes("sweep") == (6, "4", "6")
        assert scene.message("sweep") == "runs with 6 pods, 4 of them extra: these go first"
        scene.submit("urgent", "a", 1, priority="high", pods=5)
        await scene.settled(lambda: scene.runs("urgent") == 5)
        await scene.settled(lambda: scene.runs("sweep") == 1)
        assert scene.notes("sweep") == (1, "4", None)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_an_annotation_that_its_user_writes_keeps_no_pod() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 4, "8")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 8)
        scene.server.write(f"{JOBS}/sweep", {"metadata": {"annotations": {GRANTED: "4"}}})
        scene.submit("next", "a", 1, pods=4)
        await scene.settled(lambda: scene.runs("next") == 4)
        assert scene.runs("sweep") == 4
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


def test_a_user_that_lowers_its_parallelism_gives_the_rest_back() -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        scene.able("sweep", "a", 4, "8")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 8)
        scene.server.write(f"{JOBS}/sweep", {"spec": {"parallelism": 5}})
        await scene.settled(lambda: scene.runs("sweep") == 5 and scene.resize("sweep") == (5, 5))
        scene.submit("next", "a", 1, pods=3)
        await scene.settled(lambda: scene.runs("next") == 3)
        scene.delete("next")
        await scene.settled(lambda: scene.used("a") == 5000)
        await asyncio.sleep(100)
        assert scene.runs("sweep") == 5
        await scene.kill()

    run(story())


async def killed_after(scene: Growing, changes: int, seed: int) -> None:
    """Kill the controller after so many changes of anything, and start another one."""
    seen = 0

    def changed(*_: object) -> None:
        nonlocal seen
        seen += 1

    scene.server.listen(changed)
    await scene.server.until(lambda: seen >= changes)
    await scene.kill()
    await scene.start(seed)


@pytest.mark.parametrize("seed", range(scaled(5, 160)))
def test_it_goes_on_wherever_a_controller_is_killed(seed: int) -> None:
    """In the middle of growth, and in the middle of shrinking."""

    async def story() -> None:
        random, scene = Random(seed), Growing({"a": 4, "b": 4})
        scene.able("sweep", "a", 4, "8")
        scene.able("other", "b", 1, "4")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 4 and scene.runs("other") == 1)
        await killed_after(scene, random.randint(1, 9), seed)
        await scene.settled(lambda: scene.runs("sweep") + scene.runs("other") == 8)
        scene.submit("owner", "b", 1, pods=3)
        await killed_after(scene, random.randint(3, 20), seed + 1)
        await scene.settled(lambda: scene.runs("owner") == 3)
        assert (scene.runs("sweep"), scene.runs("other")) == (4, 1)
        assert scene.condition("sweep", "Evicted") == ""
        scene.delete("owner")
        await killed_after(scene, random.randint(3, 9), seed + 2)
        await scene.settled(lambda: scene.runs("sweep") + scene.runs("other") == 8)
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())

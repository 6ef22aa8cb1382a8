"""A Job that can do with fewer pods starts with as many as fit, and when it is stopped asks for all again."""

from typing import Any

from tests.apiserver.loop import run
from tests.convergence.scene import JOBS, TEAM, Scene

Json = dict[str, Any]


def scene_of(cpu: int) -> Scene:
    """A queue in which Jobs run on."""
    scene = Scene({"a": cpu}, withinClusterQueue="LowerPriority")
    scene.jobs.lasts = lambda _: 10_000.0
    return scene


def able(scene: Scene, name: str, least: str) -> None:
    """A user says with how many pods a Job can do."""
    scene.server.write(
        f"{JOBS}/{name}", {"metadata": {"annotations": {"admitter.dev/min-parallelism": least}}}
    )


def of(scene: Scene, name: str) -> tuple[int, str | None]:
    """The parallelism of a Job, and what it was before an admission lowered it."""
    job = scene.job(name)
    annotations = job["metadata"].get("annotations") or {}
    return job["spec"]["parallelism"], annotations.get("admitter.dev/original-parallelism")


def status(scene: Scene, name: str) -> Json:
    workload = scene.workload(name)
    assert workload is not None
    found: Json = workload["status"]
    return found


def test_it_starts_with_as_many_pods_as_fit() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("first", "a", 1)
        await scene.start()
        await scene.settled(lambda: scene.runs("first") == 1)
        scene.submit("able", "a", 1, pods=5)
        able(scene, "able", "2")
        await scene.settled(lambda: scene.runs("able") == 3)
        assert of(scene, "able") == (3, "5")
        said = status(scene, "able")
        assert said["message"] == "runs with 3 of 5 pods"
        assert said["admission"]["podSets"][0]["count"] == 3
        assert (scene.used("a"), scene.excesses) == (4000, [])
        await scene.kill()

    run(story())


def test_all_of_its_pods_are_taken_if_they_fit_and_too_few_are_not() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("whole", "a", 1, pods=3)
        able(scene, "whole", "1")
        await scene.start()
        await scene.settled(lambda: scene.runs("whole") == 3)
        scene.submit("large", "a", 1, pods=5)
        able(scene, "large", "2")
        await scene.settled(lambda: scene.condition("large", "QuotaReserved") == "False")
        assert (of(scene, "whole"), of(scene, "large")) == ((3, None), (5, None))
        assert status(scene, "whole").get("message") is None
        await scene.kill()

    run(story())


def test_an_eviction_puts_its_parallelism_back_and_it_asks_for_all_again() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("first", "a", 1)
        await scene.start()
        await scene.settled(lambda: scene.runs("first") == 1)
        scene.submit("able", "a", 1, "low", pods=4)
        able(scene, "able", "2")
        await scene.settled(lambda: scene.runs("able") == 3)
        scene.submit("high", "a", 3, "high")
        await scene.server.until(lambda: scene.condition("able", "Evicted") == "True")
        await scene.settled(lambda: scene.runs("high") == 1)
        assert of(scene, "able") == (4, None)
        workload = scene.workload("able")
        assert workload is not None
        assert workload["spec"]["podSets"][0]["count"] == 4
        assert workload["spec"]["podSets"][0]["minCount"] == 2
        scene.delete("high")
        scene.delete("first")
        await scene.settled(lambda: scene.runs("able") == 4)
        assert (of(scene, "able"), scene.excesses) == ((4, None), [])
        await scene.kill()

    run(story())


def test_a_restart_between_admission_and_start_starts_as_many_as_were_admitted() -> None:
    async def story() -> None:
        scene = scene_of(3)
        scene.submit("able", "a", 1, pods=4)
        able(scene, "able", "2")
        await scene.start()
        await scene.server.until(lambda: scene.condition("able", "Admitted") == "True")
        await scene.kill()
        await scene.start(seed=2)
        await scene.settled(lambda: scene.runs("able") == 3)
        assert (of(scene, "able"), scene.excesses) == ((3, "4"), [])
        await scene.kill()

    run(story())


def test_after_its_workload_is_deleted_it_asks_for_all_of_its_pods() -> None:
    async def story() -> None:
        scene = scene_of(3)
        scene.submit("able", "a", 1, pods=4)
        able(scene, "able", "2")
        await scene.start()
        await scene.settled(lambda: scene.runs("able") == 3)
        workload = scene.workload("able")
        assert workload is not None
        scene.server.remove(
            f"/apis/admitter.dev/v1alpha1/namespaces/{TEAM}/workloads/{workload['metadata']['name']}"
        )
        await scene.server.until(lambda: of(scene, "able") == (4, None))
        await scene.settled(lambda: scene.runs("able") == 3)
        assert (of(scene, "able"), scene.excesses) == ((3, "4"), [])
        await scene.kill()

    run(story())


def test_an_annotation_that_is_no_number_keeps_it_waiting_with_the_reason() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("able", "a", 1, pods=4)
        able(scene, "able", "half")
        await scene.start()
        await scene.server.until(lambda: "InvalidRequests" in scene.events("able"))
        words = "its annotation admitter.dev/min-parallelism is 'half', which is no number of pods"
        assert words in scene.events("able")["InvalidRequests"]
        assert scene.runs("able") == 0
        await scene.kill()

    run(story())

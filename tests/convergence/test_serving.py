"""StatefulSets in a queue, with all controllers running: they grow, shrink, are evicted and change."""

import asyncio
from random import Random

import pytest

from admitter.cache.views import parse_workload
from admitter.controllers.workload.pod_jobs import REPLACED_SECONDS
from admitter.names import BEYOND_GROUP_ANNOTATION
from tests.apiserver.loop import run
from tests.apiserver.server import Fate
from tests.convergence.pods import SETS, PodScene
from tests.convergence.test_random_operations import disturb


def serving(cpu: int, **preemption: str) -> PodScene:
    """A queue `a`, and pods that run until they are deleted."""
    scene = PodScene({"a": cpu}, **preemption)
    scene.kubelet.lasts = lambda _: 1e6
    return scene


def names(name: str, pods: int) -> list[str]:
    return [f"{name}-{number}" for number in range(pods)]


def running(scene: PodScene) -> list[str]:
    """The names of pods that run."""
    return sorted(name for _, name in scene.server.objects["pods"] if scene.has_started(name))


def workloads(scene: PodScene) -> list[str]:
    """The kinds and names of what has a Workload."""
    notes = [raw["metadata"]["annotations"] for raw in scene.server.objects["workloads"].values()]
    return sorted(f"{each['admitter.dev/kind']} {each['admitter.dev/object']}" for each in notes)


def test_a_set_asks_for_the_difference_when_it_grows_and_frees_it_when_it_shrinks() -> None:
    async def story() -> None:
        scene = serving(3)
        await scene.start()
        scene.serve("web", 2)
        await scene.settled(lambda: running(scene) == names("web", 2))
        assert workloads(scene) == ["PodGroup web"]
        scene.scale("web", 3)
        await scene.settled(lambda: running(scene) == names("web", 3))
        assert workloads(scene) == ["Pod web-2", "PodGroup web"]
        assert scene.used("a") == 3000
        scene.pod("other", cpu=2)
        await scene.settled(lambda: scene.condition("other", "QuotaReserved") == "False")
        scene.scale("web", 1)
        await scene.settled(lambda: scene.has_started("other"))
        assert running(scene) == ["other", "web-0"]
        assert workloads(scene) == ["Pod other", "PodGroup web"]
        told = {each["message"] for each in scene.made_for("web")["status"]["conditions"]}
        assert told == {"admitted by ClusterQueue a, of which it keeps 1 cpu of any"}
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_set_that_grows_without_room_goes_on_as_it_is_until_there_is_some() -> None:
    async def story() -> None:
        scene = serving(3)
        await scene.start()
        scene.pod("other", cpu=1)
        scene.serve("web", 2)
        await scene.settled(lambda: running(scene) == ["other", *names("web", 2)])
        scene.scale("web", 3)
        await scene.settled(lambda: scene.find_pod("web-2") is not None)
        await scene.settled(lambda: scene.condition("web-2", "QuotaReserved") == "False")
        assert scene.job("web-2")["metadata"]["annotations"][BEYOND_GROUP_ANNOTATION] == "true"
        await scene.kill()
        await scene.start(seed=2)
        await asyncio.sleep(30)
        assert running(scene) == ["other", *names("web", 2)]
        scene.delete_pod("other")
        await scene.settled(lambda: running(scene) == names("web", 3))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_set_that_is_scaled_while_it_waits_asks_for_as_many_as_it_is_to_have() -> None:
    async def story() -> None:
        scene = serving(4)
        await scene.start()
        scene.pod("other", cpu=2)
        await scene.settled(lambda: scene.has_started("other"))
        scene.serve("web", 3)
        await scene.settled(lambda: scene.says("web", "QuotaReserved") == ("False", "InsufficientQuota"))
        scene.scale("web", 2)
        await scene.settled(lambda: running(scene) == ["other", *names("web", 2)])
        scene.scale("web", 0)
        await scene.settled(lambda: running(scene) == ["other"])
        await scene.settled(lambda: scene.used("a") == 2000)
        scene.delete_pod("other")
        scene.scale("web", 4)
        await scene.settled(lambda: running(scene) == names("web", 4))
        assert workloads(scene) == ["PodGroup web"], "one for all, though its template was made for three"
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_is_made_anew_has_the_place_of_the_one_before() -> None:
    async def story() -> None:
        scene = serving(2)
        await scene.start()
        scene.serve("web", 2)
        await scene.settled(lambda: running(scene) == names("web", 2))
        scene.pod("other")
        uid = scene.job("web-1")["metadata"]["uid"]
        scene.delete_pod("web-1")
        await scene.settled(lambda: running(scene) == names("web", 2) and _uid(scene, "web-1") != uid)
        assert scene.condition("other", "QuotaReserved") == "False"
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_set_of_one_pod_keeps_its_place_while_that_is_made_anew() -> None:
    async def story() -> None:
        scene = serving(1)
        await scene.start()
        scene.serve("web", 1)
        await scene.settled(lambda: running(scene) == ["web-0"])
        scene.pod("other", priority="high")
        uid = _uid(scene, "web-0")
        scene.delete_pod("web-0")
        await scene.settled(lambda: running(scene) == ["web-0"] and _uid(scene, "web-0") != uid)
        scene.server.remove(f"{SETS}/web")
        await scene.settled(lambda: running(scene) == ["other"])
        assert workloads(scene) == ["Pod other"]
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_set_of_which_the_last_pod_is_not_made_anew_keeps_its_place_for_a_moment_only() -> None:
    async def story() -> None:
        scene = serving(1)
        await scene.start()
        scene.serve("web", 1)
        await scene.settled(lambda: running(scene) == ["web-0"])
        scene.pod("other")
        scene.sets.works = False
        scene.delete_pod("web-0")
        await scene.settled(lambda: scene.find_pod("web-0") is None)
        await asyncio.sleep(REPLACED_SECONDS - 1)
        assert running(scene) == []
        await scene.settled(lambda: running(scene) == ["other"])
        assert workloads(scene) == ["Pod other"]
        await scene.kill()

    run(story())


def test_pods_that_ask_for_something_else_than_the_others_replace_them_one_by_one() -> None:
    async def story() -> None:
        scene = serving(4)
        await scene.start()
        scene.serve("web", 2, cpu=2)
        await scene.settled(lambda: running(scene) == names("web", 2))
        scene.change("web", spec={"nodeSelector": {"disk": "fast"}})
        for name in ("web-1", "web-0"):
            uid = _uid(scene, name)
            scene.delete_pod(name)
            await scene.settled(lambda: running(scene) == names("web", 2) and _uid(scene, name) != uid)  # noqa: B023  # called at once
        assert scene.used("a") == 4000
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_group_without_a_set_is_as_large_as_its_newest_pod_says() -> None:
    async def story() -> None:
        scene = serving(3)
        await scene.start()
        pods = scene.group("web", 3, pod_group_serving="true")
        await scene.settled(lambda: scene.started(pods) == 3)
        scene.delete_pod("web-1")
        scene.delete_pod("web-2")
        await scene.settled(lambda: running(scene) == ["web-0"])
        await asyncio.sleep(30)
        assert scene.used("a") == 3000, "it says that it is to have three"
        scene.group("web", 1, size=2, first=3, pod_group_serving="true")
        await scene.settled(lambda: running(scene) == ["web-0", "web-3"] and scene.used("a") == 2000)
        scene.group("web", 1, size=3, first=4, pod_group_serving="true")
        await scene.settled(lambda: scene.has_started("web-4"))
        assert workloads(scene) == ["Pod web-4", "PodGroup web"]
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_an_evicted_set_comes_back_with_all_of_its_pods() -> None:
    async def story() -> None:
        scene = serving(3, withinClusterQueue="LowerPriority")
        await scene.start()
        scene.serve("web", 2, priority="low")
        await scene.settled(lambda: running(scene) == names("web", 2))
        scene.scale("web", 3)
        await scene.settled(lambda: running(scene) == names("web", 3))
        scene.pod("urgent", cpu=3, priority="high")
        await scene.settled(lambda: running(scene) == ["urgent"])
        scene.delete_pod("urgent")
        await scene.settled(lambda: running(scene) == names("web", 3))
        assert workloads(scene) == ["PodGroup web"]
        assert scene.excesses == []
        await scene.kill()

    run(story())


def _uid(scene: PodScene, name: str) -> str:
    pod = scene.find_pod(name)
    return str(pod["metadata"]["uid"]) if pod is not None else ""


async def rest(scene: PodScene, sets: tuple[str, ...]) -> None:
    """Have sets without pods, and wait until they hold nothing; what was evicted before is over."""
    for name in sets:
        scene.scale(name, 0)

    def is_over() -> bool:
        views = map(parse_workload, scene.server.objects["workloads"].values())
        return all(view.finished for view in views) and not running(scene)

    await scene.settled(is_over)


async def story_of_chance(seed: int) -> None:
    """Sets are scaled and pods die while writes fail: no quota is passed, and all come to rest.

    One that makes its pods in order deletes none while one of a lower number waits, unless it deletes all.
    """
    random = Random(seed)
    scene = serving(6, withinClusterQueue=random.choice(["Never", "LowerPriority"]))
    await scene.start()
    sets, policy = ("web", "api"), random.choice(["OrderedReady", "Parallel"])
    for name in sets:
        priority = random.choice(["", "low", "high"])
        scene.serve(name, random.randint(0, 3), policy=policy, priority=priority)
    for _ in range(30):
        pods = sorted(name for _, name in scene.server.objects["pods"])
        if pods and random.random() < 0.4:
            scene.delete_pod(random.choice(pods))
        else:
            scene.scale(random.choice(sets), random.randint(0, 4))
        await disturb(scene, random)
        await asyncio.sleep(random.choice((0.0, 0.2, 3.0, 20.0)))
    scene.server.fate = lambda: Fate.DONE
    if policy == "OrderedReady":
        await rest(scene, sets)
    for name in sets:
        scene.scale(name, 3)
    await scene.settled(lambda: running(scene) == [*names("api", 3), *names("web", 3)])
    assert scene.used("a") == 6000
    await rest(scene, sets)
    assert scene.excesses == []
    await scene.kill()


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_to_sets_they_come_to_rest_within_the_quota(seed: int) -> None:
    run(story_of_chance(seed))

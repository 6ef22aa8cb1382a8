"""Places of groups: which pods take them, and when they are given back, with all controllers running."""

import asyncio

from admitter.cache.views import timestamp
from admitter.cache.world import workload_path
from tests.apiserver.loop import run
from tests.apiserver.server import Fate, clock
from tests.convergence.pods import PODS, PodScene
from tests.convergence.scene import TEAM


def failing_first(scene: PodScene) -> None:
    """The first pod of a group fails after five seconds, others run for long."""
    scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 500.0
    scene.kubelet.phase = lambda pod: "Failed" if pod["metadata"]["name"] == "tune-0" else "Succeeded"


def test_another_pod_takes_the_place_of_one_that_has_failed() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 100.0
        scene.kubelet.phase = lambda pod: "Failed" if pod["metadata"]["name"] == "tune-0" else "Succeeded"
        await scene.start()
        scene.group("tune", 3)
        await scene.server.until(lambda: (scene.job("tune-0").get("status") or {}).get("phase") == "Failed")
        assert scene.used("a") == 3000
        scene.group("tune", 1, size=3, first=3)
        await scene.settled(lambda: scene.has_started("tune-3"))
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_has_succeeded_frees_its_quota_at_once_and_for_good() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 500.0
        await scene.start()
        pods = scene.group("tune", 3)
        await scene.settled(lambda: scene.started(pods) == 3)
        scene.pod("next", cpu=1)
        await scene.settled(lambda: scene.has_started("next"))
        await scene.server.until(lambda: "succeededPods" in scene.made_for("tune")["status"])
        scene.delete_pod("tune-0")
        await scene.kill()
        await scene.start(seed=2)
        scene.pod("last", cpu=1)
        await scene.settled(
            lambda: scene.condition("last", "QuotaReserved") == "False" or scene.is_done("next")
        )
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_place_is_given_back_once_though_a_new_process_never_saw_the_pod_that_left_it() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 500.0
        await scene.start()
        pods = scene.group("tune", 3)
        await scene.settled(lambda: scene.started(pods) == 3)
        scene.pod("next", cpu=1)
        await scene.server.until(lambda: scene.has_started("next"))
        await scene.kill()
        scene.delete_pod("tune-0")
        await scene.start(seed=2)
        scene.group("tune", 1, size=3, first=3)
        await scene.server.until(lambda: scene.find_pod("tune-3") is None or not scene.is_gated("tune-3"))
        assert scene.find_pod("tune-3") is None
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_goes_before_its_workload_remembers_it_leaves_its_place_to_its_group() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 500.0
        await scene.start()
        pods = scene.group("tune", 3)
        await scene.settled(lambda: scene.started(pods) == 3)
        scene.pod("next", cpu=1)
        await scene.server.until(lambda: scene.job("tune-0").get("status", {}).get("phase") == "Succeeded")
        await scene.kill()
        scene.delete_pod("tune-0")
        await scene.start(seed=2)
        scene.group("tune", 1, size=3, first=3)
        await scene.settled(lambda: scene.has_started("tune-3"))
        assert scene.is_gated("next")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_pods_hold_what_they_use_though_their_group_serves_no_more() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] in {"web-0", "web-1"} else 500.0
        await scene.start()
        scene.pod("web-2", group="web", pod_group_size="3", pod_group_serving="true")
        scene.group("web", 2, size=3)
        await scene.server.until(lambda: scene.job("web-1").get("status", {}).get("phase") == "Succeeded")
        again = scene.group("web", 2, size=3, first=3)
        await scene.server.until(lambda: scene.started([*again, "web-2"]) == 3)
        scene.delete_pod("web-2")
        scene.pod("next", cpu=3)
        await scene.settled(lambda: "succeededPods" in scene.made_for("web")["status"])
        assert scene.used("a") == 2000
        assert scene.is_gated("next")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_place_that_no_pod_takes_for_five_minutes_is_given_back() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        failing_first(scene)
        await scene.start()
        pods = scene.group("tune", 3)
        await scene.server.until(lambda: scene.job("tune-0").get("status", {}).get("phase") == "Failed")
        scene.pod("next", cpu=1)
        await asyncio.sleep(290)
        assert scene.is_gated("next")
        await scene.settled(lambda: scene.has_started("next"))
        message = scene.made_for("tune")["status"]["conditions"][0]["message"]
        assert message.endswith("; given back: 1 of its places, since no pod took them for 300 s")
        scene.group("tune", 1, size=3, first=3)
        await scene.server.until(lambda: "NoPlaceInGroup" in scene.events("tune-3"))
        assert scene.is_gated("tune-3")
        assert scene.started(pods) == 2
        await scene.settled(lambda: scene.has_started("tune-3"))
        assert scene.started(pods) == 0
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_new_process_gives_a_place_back_as_soon_as_the_last_one_would_have() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        failing_first(scene)
        await scene.start()
        scene.group("tune", 3)
        await scene.server.until(lambda: scene.job("tune-0").get("status", {}).get("phase") == "Failed")
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(clock())}
        scene.server.write(f"{PODS}/tune-0/status", {"status": {"conditions": [ready]}})
        scene.pod("next", cpu=1)
        for seed in range(2, 5):
            await asyncio.sleep(90)
            assert scene.is_gated("next")
            await scene.kill()
            await scene.start(seed)
        await asyncio.sleep(40)
        assert scene.has_started("next")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_was_made_in_time_keeps_its_place_and_others_do_not_hurry_it() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        failing_first(scene)
        await scene.start()
        scene.group("tune", 3)
        await scene.server.until(lambda: scene.job("tune-0").get("status", {}).get("phase") == "Failed")
        await asyncio.sleep(250)
        scene.group("tune", 1, size=3, first=3)
        await scene.settled(lambda: scene.has_started("tune-3"))
        scene.delete_pod("tune-1")
        await asyncio.sleep(100)
        assert scene.used("a") == 3000
        await asyncio.sleep(250)
        assert scene.used("a") < 3000
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_failed_in_an_earlier_life_of_its_group_does_not_end_the_next_one() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "victim-0" else 100.0
        scene.kubelet.phase = lambda pod: "Failed" if pod["metadata"]["name"] == "victim-0" else "Succeeded"
        await scene.start()
        scene.group("victim", 2, priority="low", retriable_in_group="false")
        await scene.server.until(lambda: scene.job("victim-0").get("status", {}).get("phase") == "Failed")
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.settled(lambda: scene.says("victim", "Finished") == ("True", "Evicted"))
        again = scene.group("victim", 2, first=2, priority="low", retriable_in_group="false")
        await scene.settled(lambda: scene.started(again) == 2)
        await scene.settled(lambda: scene.says("victim", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def late(scene: PodScene, name: str) -> None:
    """The first start of a pod reaches the API server late, and others not at all."""
    paths: list[str] = []
    fates = iter([Fate.LATE])

    def fate() -> Fate:
        return next(fates, Fate.LOST) if paths[-1] == f"{PODS}/{name}" and scene.is_gated(name) else Fate.DONE

    scene.server.called.append(lambda path, _: paths.append(path))
    scene.server.fate = fate


def test_a_group_that_fails_gives_nothing_back_while_a_start_is_on_its_way() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda pod: 1.0 if pod["metadata"]["name"] == "tune-0" else 100.0
        scene.kubelet.phase = lambda pod: "Failed" if pod["metadata"]["name"] == "tune-0" else "Succeeded"
        late(scene, "tune-1")
        await scene.start()
        scene.group("tune", 2, retriable_in_group="false")
        await scene.server.until(lambda: scene.has_started("tune-0"))
        scene.pod("next", cpu=2)
        await scene.settled(lambda: scene.has_started("next"))
        await asyncio.sleep(20)
        assert scene.says("tune", "Finished") == ("True", "JobFailed")
        assert scene.find_pod("tune-1") is None or not scene.has_started("tune-1")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_deleted_workload_gives_nothing_back_while_a_start_of_its_group_is_on_its_way() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda _: 100.0
        late(scene, "tune-1")
        await scene.start()
        scene.group("tune", 2)
        await scene.server.until(lambda: scene.has_started("tune-0"))
        workload = scene.group_workload("tune")
        assert workload is not None
        scene.pod("next", cpu=2)
        scene.server.remove(workload_path((TEAM, workload["metadata"]["name"])))
        await asyncio.sleep(20)
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_keeps_its_place_though_its_user_adds_tolerations_once_it_runs() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda _: 500.0
        await scene.start()
        pods = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(pods) == 2)
        scene.server.write(
            f"{PODS}/tune-0", {"spec": {"tolerations": [{"key": "mine", "operator": "Exists"}]}}
        )
        scene.group("tune", 1, size=2, first=2)
        await scene.server.until(lambda: scene.find_pod("tune-2") is None)
        assert scene.started(pods) == 2
        assert scene.excesses == []
        await scene.kill()

    run(story())

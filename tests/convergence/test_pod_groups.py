"""Groups of queued pods, with all controllers running: admission, ends, replacements and evictions."""

import asyncio
from collections import Counter
from typing import Any

from admitter.cache.world import OWN
from tests.apiserver.loop import run
from tests.convergence.pods import PODS, PodScene, written


def test_a_group_waits_until_all_of_its_pods_are_there() -> None:
    async def story() -> None:
        scene = PodScene({"a": 8})
        await scene.start()
        early = scene.group("tune", 3, size=8)
        await scene.settled(lambda: scene.says("tune", "QuotaReserved") == ("False", "PodGroupIncomplete"))
        assert scene.made_for("tune")["status"]["message"] == "3 of its 8 pods are there"
        await asyncio.sleep(30)
        assert scene.started(early) == 0
        late = scene.group("tune", 5, size=8, first=3)
        await scene.settled(lambda: scene.started(early + late) == 8)
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        assert scene.used("a") == 0
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_group_takes_three_writes_and_one_a_pod() -> None:
    async def story() -> None:
        scene = PodScene({"a": 8})
        await scene.start()
        writes = written(scene.server)
        pods = scene.group("tune", 8)
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        await asyncio.sleep(30)
        made = Counter(plural for _, plural in writes)
        assert (made["workloads"], made["pods"]) == (3, len(pods))
        metadata = scene.made_for("tune")["metadata"]
        assert metadata["annotations"] == {"admitter.dev/kind": "PodGroup", "admitter.dev/object": "tune"}
        assert "ownerReferences" not in metadata
        await scene.kill()

    run(story())


def test_pods_of_two_shapes_are_admitted_to_two_flavors() -> None:
    async def story() -> None:
        scene = PodScene({"a": 8})
        for color in ("red", "blue"):
            scene.define_flavor(color)
        flavors = [{"name": "red", "quota": {"min": "4"}}, {"name": "blue", "quota": {"min": "6"}}]
        scene.server.write(
            f"{OWN}/clusterqueues/a", {"spec": {"resources": [{"name": "cpu", "flavors": flavors}]}}
        )
        await scene.start()
        small = scene.group("tune", 4, size=7)
        large = scene.group("tune", 3, size=7, first=4, cpu=2)
        await scene.settled(lambda: scene.started(small + large) == 7)
        colors = {name: scene.job(name)["spec"]["nodeSelector"]["color"] for name in small + large}
        assert {colors[name] for name in small} == {"red"}
        assert {colors[name] for name in large} == {"blue"}
        assert sorted(each["count"] for each in scene.made_for("tune")["spec"]["podSets"]) == [3, 4]
        await scene.kill()

    run(story())


def test_a_group_that_may_not_be_retried_fails_with_its_first_pod() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda pod: 5.0 if pod["metadata"]["name"] == "tune-0" else 50.0
        scene.kubelet.phase = lambda pod: "Failed" if pod["metadata"]["name"] == "tune-0" else "Succeeded"
        await scene.start()
        scene.group("tune", 3, retriable_in_group="false")
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobFailed"))
        assert scene.used("a") == 0
        await scene.kill()

    run(story())


def test_the_newest_pods_that_wait_are_deleted_if_there_are_too_many_and_none_that_runs() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda _: 100.0
        await scene.start()
        pods = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(pods) == 2)
        scene.group("tune", 2, size=2, first=2)
        await scene.settled(lambda: scene.find_pod("tune-2") is None and scene.find_pod("tune-3") is None)
        await scene.server.until(lambda: "Excess" in scene.events("tune-3"))
        assert scene.events("tune-3")["Excess"] == "deleted: group tune has 2 pods without it"
        assert scene.started(pods) == 2
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        scene.group("tune", 1, size=2, first=9)
        await scene.settled(lambda: scene.find_pod("tune-9") is None)
        await scene.kill()

    run(story())


def test_pods_that_name_different_sizes_wait_and_their_group_says_so() -> None:
    async def story() -> None:
        scene = PodScene({"a": 9})
        await scene.start()
        pods = scene.group("tune", 2, size=3) + scene.group("tune", 1, size=4, first=2)
        await scene.settled(lambda: scene.says("tune", "QuotaReserved")[1] == "PodGroupSizesDiffer")
        words = scene.made_for("tune")["status"]["message"]
        assert words == "its pods say that the group has 3 pods, and 4"
        assert scene.started(pods) == 0
        scene.delete_pod("tune-2")
        scene.group("tune", 1, size=3, first=2)
        await scene.settled(lambda: scene.started(pods) == 3)
        scene.group("tune", 1, size=4, first=3)
        await scene.server.until(lambda: "PodGroupSizesDiffer" in scene.events("tune-3"))
        assert scene.is_gated("tune-3")
        await scene.kill()

    run(story())


def test_two_users_with_the_same_name_for_a_group_have_two_groups() -> None:
    async def story() -> None:
        scene = PodScene({"a": 4})
        await scene.start()
        ada = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(ada) == 2)
        bob = scene.group("tune", 1, size=2, first=5, user="bob")
        await scene.settled(lambda: len(scene.server.objects["workloads"]) == 2)
        await asyncio.sleep(5)
        assert (scene.started(ada), scene.started(bob)) == (2, 0)
        bob += scene.group("tune", 1, size=2, first=6, user="bob")
        await scene.settled(lambda: scene.started(bob) == 2)
        await scene.kill()

    run(story())


def test_preemption_takes_a_whole_group_and_nothing_else() -> None:
    async def story() -> None:
        scene = PodScene({"a": 5}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        await scene.start()
        victims = scene.group("victim", 3, priority="low")
        scene.pod("other", cpu=1)
        await scene.settled(lambda: scene.started([*victims, "other"]) == 4)
        scene.pod("preemptor", cpu=3, priority="high")
        await scene.server.until(lambda: all("deletionTimestamp" in _meta(scene, name) for name in victims))
        for name in victims:
            condition = scene.job(name)["status"]["conditions"][0]
            assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByAdmitter")
        assert not scene.has_started("preemptor")
        await scene.settled(lambda: scene.has_started("preemptor"))
        assert [scene.find_pod(name) for name in victims] == [None] * 3
        assert scene.has_started("other")
        assert scene.says("victim", "QuotaReserved")[0] == "False"
        again = scene.group("victim", 3, first=3, priority="low")
        await scene.settled(lambda: scene.started(again) == 3)
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_pods_that_exit_without_an_error_because_they_are_evicted_have_not_succeeded() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        await scene.start()
        victims = scene.group("victim", 2, priority="low")
        await scene.settled(lambda: scene.started(victims) == 2)
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.server.until(lambda: all("deletionTimestamp" in _meta(scene, name) for name in victims))
        for name in victims:
            scene.server.write(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
        again = scene.group("victim", 2, first=2, priority="low")
        await scene.settled(lambda: scene.has_started("preemptor"))
        await scene.settled(lambda: scene.started(again) == 2)
        await scene.settled(lambda: scene.says("victim", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_succeeds_before_its_eviction_is_written_down_has_succeeded() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 500.0
        await scene.start()
        victims = scene.group("victim", 2, priority="low")
        await scene.settled(lambda: scene.started(victims) == 2)
        first = f"{PODS}/{victims[0]}/status"

        def ends_first(path: str, _: str) -> None:
            if path == first and scene.job(victims[0])["status"]["phase"] == "Running":
                scene.server.write(first, {"status": {"phase": "Succeeded"}})

        scene.server.called.append(ends_first)
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.settled(lambda: scene.has_started("preemptor"))
        again = scene.group("victim", 1, first=2, size=2, priority="low")
        await scene.settled(lambda: scene.started(again) == 1)
        assert "DisruptionTarget" not in str(scene.job(victims[0]))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_an_evicted_group_that_is_not_made_anew_in_time_is_over() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        await scene.start()
        victims = scene.group("victim", 2, priority="low")
        await scene.settled(lambda: scene.started(victims) == 2)
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.settled(lambda: scene.says("victim", "Finished") == ("True", "Evicted"))
        await scene.kill()
        await scene.start(seed=2)
        again = scene.group("victim", 2, priority="low")
        await scene.settled(lambda: scene.started(again) == 2)
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_an_evicted_group_that_may_not_be_retried_is_over_at_once() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        await scene.start()
        victims = scene.group("victim", 2, priority="low", retriable_in_group="false")
        await scene.settled(lambda: scene.started(victims) == 2)
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.settled(lambda: scene.has_started("preemptor"))
        assert scene.says("victim", "Finished") == ("True", "Evicted")
        await scene.kill()

    run(story())


def test_a_group_of_which_the_first_pod_counts_for_all_is_admitted_early() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        await scene.start()
        pods = scene.group("tune", 1, size=3, pod_group_fast_admission="true")
        await scene.settled(lambda: scene.started(pods) == 1)
        assert scene.used("a") == 3000
        pods += scene.group("tune", 2, size=3, first=1, pod_group_fast_admission="true")
        await scene.settled(lambda: scene.started(pods) == 3)
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "JobSucceeded"))
        await scene.kill()

    run(story())


def test_a_group_that_serves_is_never_over_and_a_pod_that_it_has_no_place_for_is_queued_by_itself() -> None:
    async def story() -> None:
        scene = PodScene({"a": 3})
        scene.kubelet.lasts = lambda _: 20.0
        said: dict[str, Any] = {"pod_group_serving": "true", "pod_group_fast_admission": "true"}
        await scene.start()
        pods = scene.group("web", 1, size=2, **said)
        await scene.settled(lambda: scene.started(pods) == 1)
        assert scene.used("a") == 2000
        await scene.server.until(lambda: scene.started(pods) == 0)
        scene.kubelet.lasts = lambda _: 1000.0
        pods += scene.group("web", 2, size=2, first=1, **said)
        await scene.settled(lambda: scene.started(pods) == 2)
        scene.group("web", 2, size=2, first=3, **said)
        await scene.settled(lambda: scene.started(["web-3", "web-4"]) == 1)
        assert scene.used("a") == 3000
        (late,) = (name for name in ("web-3", "web-4") if not scene.has_started(name))  # they are of one age
        await scene.settled(lambda: scene.condition(late, "QuotaReserved") == "False")
        scene.delete_pod("web-1")
        await scene.settled(lambda: scene.has_started(late))
        for name in [*pods, "web-3", "web-4"]:
            if scene.find_pod(name) is not None:
                scene.delete_pod(name)
        await scene.settled(lambda: not scene.server.objects["workloads"] and scene.used("a") == 0)
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_controller_that_starts_in_the_middle_of_a_group_goes_on() -> None:
    async def story() -> None:
        scene = PodScene({"a": 20}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 60.0
        await scene.start()
        pods = scene.group("tune", 20, priority="low")
        await scene.server.until(lambda: 0 < scene.started(pods) < 20)
        await scene.kill()
        await scene.start(seed=2)
        await scene.settled(lambda: scene.started(pods) == 20)
        await scene.kill()
        writes = written(scene.server)
        await scene.start(seed=3)
        await asyncio.sleep(10)
        assert [plural for _, plural in writes if plural in {"pods", "workloads"}] == []
        scene.group("next", 2, priority="high")
        await scene.server.until(lambda: any("deletionTimestamp" in _meta(scene, name) for name in pods))
        await scene.kill()
        await scene.start(seed=4)
        await scene.settled(lambda: scene.says("next", "Finished") == ("True", "JobSucceeded"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_group_with_a_deleted_workload_is_deleted_and_one_without_pods_loses_its_workload() -> None:
    async def story() -> None:
        scene = PodScene({"a": 4})
        scene.kubelet.lasts = lambda _: 1000.0
        await scene.start()
        pods = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(pods) == 2)
        name = scene.made_for("tune")["metadata"]["name"]
        scene.server.remove(f"{OWN}/namespaces/team/workloads/{name}")
        await scene.settled(lambda: [scene.find_pod(pod) for pod in pods] == [None, None])
        pods = scene.group("next", 2, cpu=2)
        await scene.settled(lambda: scene.started(pods) == 2)
        for pod in pods:
            scene.server.remove(f"{PODS}/{pod}")
        await scene.settled(lambda: not scene.server.objects["workloads"])
        assert scene.excesses == []
        await scene.kill()

    run(story())


def _meta(scene: PodScene, name: str) -> dict[str, str]:
    pod = scene.find_pod(name)
    return pod["metadata"] if pod is not None else {}

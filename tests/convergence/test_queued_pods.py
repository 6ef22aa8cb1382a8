"""Single pods that name a queue, with all controllers running."""

import asyncio
from collections import Counter

from admitter.cache.world import OWN
from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    FLAVORS_ANNOTATION,
    POD_GATE,
    QUEUE_LABEL,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from tests.apiserver.loop import run
from tests.convergence.pods import PODS, PodScene, written
from tests.convergence.scene import TEAM


def test_a_pod_runs_with_four_writes_and_the_next_one_waits_for_it() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        writes = written(scene.server)
        scene.pod("first", cpu=2)
        await scene.start()
        await scene.settled(lambda: scene.has_started("first"))
        scene.pod("second", cpu=1)
        await scene.settled(lambda: scene.condition("second", "QuotaReserved") == "False")
        assert not scene.has_started("second")
        await scene.settled(lambda: scene.is_done("first") and scene.is_done("second"))
        mine = Counter(name for name, plural in writes if plural in {"pods", "workloads"})
        first = scene.workload("first")
        assert first is not None
        assert mine["first"] + mine[first["metadata"]["name"]] == 4
        assert scene.used("a") == 0
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_one_patch_takes_the_gate_away_and_marks_the_pod() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.server.write(
            f"{OWN}/resourceflavors/any",
            {
                "spec": {
                    "nodeLabels": {"pool": "spot"},
                    "tolerations": [{"key": "spot", "operator": "Exists"}],
                }
            },
        )
        scene.pod("train", spec={"tolerations": [{"key": "own", "operator": "Exists"}]}, gates=("other",))
        await scene.start()
        await scene.settled(lambda: not scene.is_gated("train"))
        pod, workload = scene.job("train"), scene.workload("train")
        assert workload is not None
        assert workload["metadata"]["name"].startswith("pod-train-")
        assert pod["spec"]["schedulingGates"] == [{"name": "other"}]
        assert pod["spec"]["nodeSelector"] == {"pool": "spot"}
        assert [each["key"] for each in pod["spec"]["tolerations"]] == ["own", "spot"]
        assert pod["metadata"]["labels"][WORKLOAD_LABEL] == workload["metadata"]["name"]
        assert pod["metadata"]["labels"][CLUSTER_QUEUE_LABEL] == "a"
        assert pod["metadata"]["annotations"][WORKLOAD_UID_ANNOTATION] == workload["metadata"]["uid"]
        assert pod["metadata"]["annotations"][FLAVORS_ANNOTATION] == '{"cpu":"any"}'
        await scene.kill()

    run(story())


def test_a_preempted_pod_is_deleted_with_a_condition_and_holds_its_quota_until_it_is_gone() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        scene.pod("victim", cpu=2, priority="low")
        await scene.start()
        await scene.settled(lambda: scene.has_started("victim"))
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.server.until(lambda: "deletionTimestamp" in scene.job("victim")["metadata"])
        conditions = scene.job("victim")["status"]["conditions"]
        assert [(each["type"], each["reason"]) for each in conditions] == [
            ("DisruptionTarget", "PreemptionByAdmitter")
        ]
        assert "preempted for" in conditions[0]["message"]
        assert scene.used("a") == 2000
        assert not scene.has_started("preemptor")
        await scene.settled(lambda: scene.has_started("preemptor"))
        assert scene.find_pod("victim") is None
        assert len(scene.server.objects["workloads"]) == 1
        assert "Preempted" in scene.events("victim")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_victim_that_ends_while_it_is_evicted_finishes_as_evicted() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        scene.pod("victim", cpu=2, priority="low")
        await scene.start()
        await scene.settled(lambda: scene.has_started("victim"))
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.server.until(lambda: "deletionTimestamp" in scene.job("victim")["metadata"])
        scene.server.write(f"{PODS}/victim/status", {"status": {"phase": "Failed"}})
        await scene.server.until(lambda: scene.condition("victim", "Finished") == "True")
        workload = scene.workload("victim")
        assert workload is not None
        reasons = {each["type"]: each["reason"] for each in workload["status"]["conditions"]}
        assert reasons["Finished"] == "Evicted"
        await scene.settled(lambda: scene.has_started("preemptor"))
        await scene.kill()

    run(story())


def test_pods_are_deleted_while_they_wait_and_run() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda _: 1000.0
        await scene.start()
        scene.pod("runs", cpu=2)
        await scene.settled(lambda: scene.has_started("runs"))
        scene.pod("waits", cpu=2)
        await scene.settled(lambda: scene.condition("waits", "QuotaReserved") == "False")
        scene.delete_pod("waits")
        await scene.settled(lambda: len(scene.server.objects["workloads"]) == 1)
        scene.pod("next", cpu=2)
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        scene.delete_pod("runs")
        assert scene.used("a") == 2000
        assert not scene.has_started("next")
        await scene.settled(lambda: scene.has_started("next"))
        assert scene.find_pod("runs") is None
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_that_fails_frees_its_quota_and_its_workload_says_why() -> None:
    async def story() -> None:
        scene = PodScene({"a": 1})
        scene.kubelet.phase = lambda _: "Failed"
        scene.pod("train")
        await scene.start()
        await scene.settled(lambda: scene.is_done("train"))
        workload = scene.workload("train")
        assert workload is not None
        reasons = {each["type"]: each["reason"] for each in workload["status"]["conditions"]}
        assert reasons["Finished"] == "JobFailed"
        assert scene.used("a") == 0
        await scene.kill()

    run(story())


def test_a_controller_that_starts_in_the_middle_goes_on_and_writes_nothing_again() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.kubelet.lasts = lambda _: 100.0
        scene.pod("victim", cpu=2, priority="low")
        await scene.start()
        await scene.settled(lambda: scene.has_started("victim"))
        await scene.kill()
        writes = written(scene.server)
        await scene.start(seed=2)
        await asyncio.sleep(20)
        assert [plural for _, plural in writes if plural in {"pods", "workloads"}] == []
        scene.pod("preemptor", cpu=2, priority="high")
        await scene.server.until(lambda: "deletionTimestamp" in scene.job("victim")["metadata"])
        assert [name for name, plural in writes if plural == "pods"] == ["victim", "victim"]
        await scene.kill()
        await scene.start(seed=3)
        await scene.settled(lambda: scene.has_started("preemptor"))
        await scene.kill()
        await scene.start(seed=4)
        await scene.settled(lambda: scene.is_done("preemptor"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_paused_pod_is_evicted_and_one_that_waits_keeps_its_gate() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda _: 1000.0
        scene.pod("runs", cpu=2)
        await scene.start()
        await scene.settled(lambda: scene.has_started("runs"))
        workload = scene.workload("runs")
        assert workload is not None
        path = f"{OWN}/namespaces/{TEAM}/workloads/{workload['metadata']['name']}"
        scene.server.write(path, {"spec": {"active": False}})
        await scene.settled(lambda: scene.find_pod("runs") is None and scene.used("a") == 0)
        await scene.kill()

    run(story())


def test_a_pod_with_a_deleted_workload_is_deleted_too_as_it_could_not_be_evicted() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.kubelet.lasts = lambda _: 1000.0
        scene.pod("runs", cpu=2)
        await scene.start()
        await scene.settled(lambda: scene.has_started("runs"))
        workload = scene.workload("runs")
        assert workload is not None
        scene.server.remove(f"{OWN}/namespaces/{TEAM}/workloads/{workload['metadata']['name']}")
        scene.pod("next", cpu=2)
        await scene.settled(lambda: scene.has_started("next"))
        assert scene.find_pod("runs") is None
        assert "Stopped" in scene.events("runs")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_pod_of_a_job_that_names_a_queue_too_is_counted_with_its_job() -> None:
    async def story() -> None:
        scene = PodScene({"a": 2})
        scene.submit("job", "a", 1, pods=2, labels={QUEUE_LABEL: "a"})
        await scene.start()
        await scene.settled(lambda: scene.runs("job") == 2)
        assert len(scene.server.objects["workloads"]) == 1
        assert POD_GATE not in str(scene.server.objects["pods"])
        await scene.settled(lambda: scene.is_done("job"))
        await scene.kill()

    run(story())

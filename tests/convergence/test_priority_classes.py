"""WorkloadPriorityClasses that come, change and go, with all controllers running."""

from collections.abc import Callable
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.names import PRIORITY_CLASS_ALIAS_LABEL, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from tests.apiserver.loop import run
from tests.convergence.lab import EXPERIMENTS, Lab
from tests.convergence.pods import PODS, PodScene
from tests.convergence.scene import JOBS, TEAM, Scene

Json = dict[str, Any]

WORKLOADS = f"{OWN}/namespaces/{TEAM}/workloads"


def define(scene: Scene, name: str, value: int, **spec: Any) -> None:
    """An administrator makes a class, or changes it."""
    path, made = f"{OWN}/workloadpriorityclasses", {"spec": {"value": value, **spec}}
    if ("", name) in scene.server.objects["workloadpriorityclasses"]:
        scene.server.write(f"{path}/{name}", made)
    else:
        scene.server.make(path, {"metadata": {"name": name}, **made})


def label(scene: Scene, job: str, name: str | None, key: str = PRIORITY_CLASS_LABEL) -> None:
    """A user names the class of a Job, or takes its name off."""
    scene.server.write(f"{JOBS}/{job}", {"metadata": {"labels": {key: name}}})


def spec(scene: Scene, job: str) -> Json:
    """What the Workload of a Job asks for; nothing as long as there is none."""
    return (scene.workload(job) or {}).get("spec") or {}


def waits(scene: Scene, *jobs: str) -> Callable[[], bool]:
    return lambda: all(scene.condition(job, "QuotaReserved") == "False" for job in jobs)


def busy(**preemption: Json | str) -> Scene:
    """A queue of one CPU with a Job in it that runs for long, without a class."""
    scene = Scene({"a": 1}, **preemption)
    scene.jobs.lasts = lambda pod: 100.0 if pod["metadata"]["name"].startswith("busy") else 5.0
    scene.submit("busy", "a", 1)
    return scene


def test_a_changed_value_orders_anew_what_waits_and_writes_follow() -> None:
    async def story() -> None:
        scene = busy()
        for name, value in (("left", 5), ("right", 1)):
            define(scene, name, value)
        await scene.start()
        await scene.settled(lambda: scene.runs("busy") == 1)
        for name, key in (("left", PRIORITY_CLASS_LABEL), ("right", PRIORITY_CLASS_ALIAS_LABEL)):
            scene.submit(f"of-{name}", "a", 1)
            label(scene, f"of-{name}", name, key)
        await scene.settled(waits(scene, "of-left", "of-right"))
        assert spec(scene, "of-left")["priority"] == 5
        assert spec(scene, "of-right")["workloadPriorityClass"] == "right"
        define(scene, "right", 9)
        await scene.settled(lambda: spec(scene, "of-right")["priority"] == 9)
        await scene.settled(lambda: scene.is_done("of-right"))
        assert not scene.is_done("of-left")
        await scene.settled(lambda: scene.is_done("of-left"))
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_restart_goes_by_the_value_of_now_though_it_was_never_written() -> None:
    async def story() -> None:
        scene = busy()
        define(scene, "left", 5)
        define(scene, "right", 1)
        await scene.start()
        await scene.settled(lambda: scene.runs("busy") == 1)
        for name in ("left", "right"):
            scene.submit(f"of-{name}", "a", 1)
            label(scene, f"of-{name}", name)
        await scene.settled(waits(scene, "of-left", "of-right"))
        await scene.kill()
        define(scene, "right", 9)
        await scene.start(seed=2)
        await scene.settled(lambda: scene.is_done("of-right"))
        assert not scene.is_done("of-left")
        assert spec(scene, "of-right")["priority"] == 9
        await scene.kill()

    run(story())


def test_the_label_of_a_waiting_job_counts_before_the_class_of_its_pods_and_can_change() -> None:
    async def story() -> None:
        scene = busy()
        define(scene, "urgent", 50)
        await scene.start()
        await scene.settled(lambda: scene.runs("busy") == 1)
        scene.submit("first", "a", 1, "high")
        scene.submit("second", "a", 1)
        await scene.settled(waits(scene, "first", "second"))
        assert spec(scene, "first") | {"podSets": []} == {
            "queueName": "a",
            "priority": 10,
            "priorityClassName": "high",
            "podSets": [],
        }
        label(scene, "second", "urgent")
        await scene.settled(lambda: spec(scene, "second")["priority"] == 50)
        label(scene, "first", "urgent")
        await scene.settled(lambda: spec(scene, "first")["priority"] == 50)
        assert spec(scene, "first")["priorityClassName"] == "high", "queues may limit that"
        label(scene, "first", None)
        await scene.settled(lambda: spec(scene, "first")["priority"] == 10)
        assert "workloadPriorityClass" not in spec(scene, "first")
        await scene.settled(lambda: scene.is_done("second"))
        assert not scene.is_done("first")
        await scene.kill()

    run(story())


def test_what_is_admitted_goes_by_the_value_of_its_class_and_keeps_the_class() -> None:
    async def story() -> None:
        scene = Scene({"a": 1}, withinClusterQueue="LowerPriority")
        scene.jobs.lasts = lambda _: 100.0
        define(scene, "mine", 20)
        scene.submit("mine", "a", 1)
        label(scene, "mine", "mine")
        await scene.start()
        await scene.settled(lambda: scene.runs("mine") == 1)
        scene.submit("other", "a", 1, "high")
        await scene.settled(waits(scene, "other"))
        label(scene, "mine", "none-such")
        define(scene, "mine", 15)
        await scene.settled(lambda: spec(scene, "mine")["priority"] == 15)
        assert scene.runs("mine") == 1
        define(scene, "mine", 3)
        await scene.settled(lambda: scene.runs("other") == 1)
        assert scene.condition("mine", "Evicted") == "True"
        await scene.settled(lambda: spec(scene, "mine")["workloadPriorityClass"] == "none-such")
        await scene.settled(lambda: "PriorityClassNotFound" in scene.events("mine"))
        message = scene.events("mine")["PriorityClassNotFound"]
        assert message == "its WorkloadPriorityClass none-such does not exist"
        await scene.kill()

    run(story())


REFUSED: dict[str, tuple[Json, str]] = {
    "queue": ({"clusterQueues": ["other"]}, "its WorkloadPriorityClass urgent is not for ClusterQueue a"),
    "namespace": (
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        "its WorkloadPriorityClass urgent is not for namespace team",
    ),
    "expression": (
        {"namespaceSelector": {"matchExpressions": [{"key": "free", "operator": "Exists"}]}},
        "its WorkloadPriorityClass urgent is not for namespace team",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_class_that_is_not_for_a_queue_or_a_namespace_says_so_until_it_is(why: str) -> None:
    limits, words = REFUSED[why]

    async def story() -> None:
        scene = Scene({"a": 1})
        define(scene, "urgent", 50, **limits)
        scene.submit("mine", "a", 1)
        label(scene, "mine", "urgent")
        await scene.start()
        await scene.settled(lambda: "PriorityClassNotAllowed" in scene.events("mine"))
        assert scene.events("mine")["PriorityClassNotAllowed"] == words
        define(scene, "urgent", 50, **dict.fromkeys(limits), description="for all")
        await scene.settled(lambda: scene.is_done("mine"))
        await scene.kill()

    run(story())


def test_a_class_that_is_named_before_it_is_there_is_waited_for_and_one_that_goes_too() -> None:
    async def story() -> None:
        scene = busy()
        await scene.start()
        await scene.settled(lambda: scene.runs("busy") == 1)
        scene.submit("mine", "a", 1)
        label(scene, "mine", "urgent")
        await scene.settled(lambda: "PriorityClassNotFound" in scene.events("mine"))
        define(scene, "urgent", 50)
        await scene.settled(lambda: "InsufficientQuota" in scene.events("mine"))
        scene.server.remove(f"{OWN}/workloadpriorityclasses/urgent")
        await scene.settled(lambda: scene.is_done("busy"))
        assert scene.runs("mine") == 0
        define(scene, "urgent", 50)
        await scene.settled(lambda: scene.is_done("mine"))
        await scene.kill()

    run(story())


def test_pods_and_groups_go_by_the_label_of_their_pods_and_described_kinds_by_their_own() -> None:
    async def pods() -> None:
        scene = PodScene({"a": 1})
        define(scene, "urgent", 50)
        scene.pod("busy", cpu=1)
        await scene.start()
        await scene.settled(lambda: scene.has_started("busy"))
        scene.pod("alone")
        scene.server.write(f"{PODS}/alone", {"metadata": {"labels": {PRIORITY_CLASS_LABEL: "urgent"}}})
        names = scene.group("many", 2)
        scene.server.write(f"{PODS}/{names[0]}", {"metadata": {"labels": {PRIORITY_CLASS_LABEL: "urgent"}}})
        await scene.server.until(lambda: spec(scene, "alone").get("priority") == 50)
        await scene.server.until(lambda: scene.made_for("many")["spec"]["priority"] == 50)
        define(scene, "urgent", 60)
        await scene.server.until(lambda: scene.made_for("many")["spec"]["priority"] == 60)
        await scene.kill()

    async def described() -> None:
        scene = Lab()
        define(scene, "urgent", 50)
        await scene.start()
        scene.experiment("tried", 9, 9)
        scene.server.write(f"{EXPERIMENTS}/tried", {"metadata": {"labels": {PRIORITY_CLASS_LABEL: "urgent"}}})
        await scene.server.until(lambda: spec(scene, "tried").get("priority") == 50)
        define(scene, "urgent", 60)
        await scene.server.until(lambda: spec(scene, "tried")["priority"] == 60)
        await scene.kill()

    run(pods())
    run(described())


def test_a_workload_made_by_hand_has_the_priority_of_its_class_whatever_it_says() -> None:
    async def story() -> None:
        scene = busy()
        define(scene, "urgent", 50)
        await scene.start()
        await scene.settled(lambda: scene.runs("busy") == 1)
        pods = [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]
        asked = {"queueName": "a", "priority": 7, "workloadPriorityClass": "urgent", "podSets": pods}
        scene.server.make(WORKLOADS, {"metadata": {"name": "by-hand"}, "spec": asked})

        def made() -> Json:
            return scene.server.find(f"{WORKLOADS}/by-hand")

        await scene.settled(lambda: made()["spec"]["priority"] == 50)
        await scene.settled(lambda: (made().get("status") or {}).get("reason") == "InsufficientQuota")
        define(scene, "urgent", 60)
        await scene.settled(lambda: made()["spec"]["priority"] == 60)
        await scene.kill()

    run(story())


def test_an_empty_label_names_no_class() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        scene.submit("mine", "a", 1, "low")
        scene.server.write(
            f"{JOBS}/mine", {"metadata": {"labels": {QUEUE_LABEL: "a", PRIORITY_CLASS_LABEL: ""}}}
        )
        await scene.start()
        await scene.settled(lambda: scene.is_done("mine"))
        assert spec(scene, "mine")["priority"] == -10
        await scene.kill()

    run(story())

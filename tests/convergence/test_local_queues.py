"""LocalQueues that ClusterQueues ask for in the namespaces that they select, with all controllers running."""

import asyncio
from typing import Any

from admitter.cache.world import OWN
from tests.apiserver.loop import run
from tests.convergence.scene import TEAM, Scene

Json = dict[str, Any]

MADE = {"admitter.dev/generated-by": "cluster-queue", "admitter.dev/generated-for": TEAM}
QUEUES = f"{OWN}/namespaces/{TEAM}/localqueues"


def labelled(scene: Scene, namespace: str, **labels: str | None) -> None:
    """An administrator labels a namespace, and makes it if need be."""
    if ("", namespace) not in scene.server.objects["namespaces"]:
        scene.server.make("/api/v1/namespaces", {"metadata": {"name": namespace}})
    scene.server.write(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})


def asks(scene: Scene, queue: str, name: str | None, **labels: str) -> None:
    """An administrator has a ClusterQueue ask for LocalQueues in namespaces with labels; None: no more."""
    rule = {"name": name, "namespaceSelector": {"matchLabels": labels}} if name else None
    scene.server.write(f"{OWN}/clusterqueues/{queue}", {"spec": {"localQueues": rule}})


def found(scene: Scene, name: str) -> dict[str, str]:
    """Where the LocalQueues of a name lead, by namespace."""
    queues = scene.server.objects["localqueues"].items()
    return {space: made["spec"]["clusterQueue"] for (space, each), made in queues if each == name}


def told(scene: Scene, queue: str) -> tuple[str, str, str]:
    """Status, reason and message of a ClusterQueue's condition Active."""
    status = scene.server.objects["clusterqueues"]["", queue].get("status") or {}
    for each in status.get("conditions") or ():
        return each["status"], each["reason"], each["message"]
    return "", "", ""


def test_a_label_on_a_namespace_is_all_that_a_team_needs() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled()
        assert found(scene, "main") == {}
        labelled(scene, TEAM, gpus="yes")
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        assert scene.server.objects["localqueues"][TEAM, "main"]["metadata"]["labels"] == MADE
        scene.submit("train", "main", 1)
        await scene.server.until(lambda: scene.is_done("train"))
        labelled(scene, TEAM, gpus=None)
        await scene.settled(lambda: found(scene, "main") == {})
        await scene.kill()

    run(story())


def test_one_that_is_in_use_stays_until_the_last_workload_has_gone() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        scene.jobs.lasts = lambda _: 100.0
        labelled(scene, TEAM, gpus="yes")
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        scene.submit("runs", "main", 1)
        await scene.server.until(lambda: scene.runs("runs") == 1)
        scene.submit("waits", "main", 1)
        await scene.server.until(lambda: scene.condition("waits", "QuotaReserved") == "False")
        asks(scene, "a", None)
        await asyncio.sleep(5)
        assert found(scene, "main") == {TEAM: "a"}
        await scene.kill()
        await scene.start(seed=2)
        await scene.server.until(lambda: scene.is_done("runs"))
        assert found(scene, "main") == {TEAM: "a"}
        await scene.server.until(lambda: scene.is_done("waits"))
        await scene.settled(lambda: found(scene, "main") == {})
        await scene.kill()

    run(story())


def test_one_of_that_name_that_was_made_otherwise_stays_and_is_told() -> None:
    async def story() -> None:
        scene = Scene({"a": 1, "b": 1})
        scene.server.make(QUEUES, {"metadata": {"name": "main"}, "spec": {"clusterQueue": "b"}})
        labelled(scene, TEAM, gpus="yes")
        labelled(scene, "other", gpus="yes")
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled(lambda: found(scene, "main") == {TEAM: "b", "other": "a"})
        words = "spec.localQueues: LocalQueue team/main leads to another ClusterQueue"
        await scene.settled(lambda: told(scene, "a") == ("True", "LocalQueueTaken", words))
        scene.server.remove(f"{QUEUES}/main")
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a", "other": "a"})
        await scene.settled(lambda: told(scene, "a")[1] == "Ready")
        await scene.kill()

    run(story())


def test_what_administrators_say_of_one_stays_and_where_it_leads_does_not() -> None:
    async def story() -> None:
        scene = Scene({"a": 1, "b": 1})
        labelled(scene, TEAM, gpus="yes")
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        scene.server.write(f"{QUEUES}/main", {"spec": {"stopPolicy": "Hold"}})
        await scene.settled()
        assert scene.server.objects["localqueues"][TEAM, "main"]["spec"]["stopPolicy"] == "Hold"
        scene.server.write(f"{QUEUES}/main", {"spec": {"clusterQueue": "b"}})
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        scene.server.remove(f"{QUEUES}/main")
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        taken_over: Json = {"metadata": {"labels": dict.fromkeys(MADE)}}
        scene.server.write(f"{QUEUES}/main", taken_over)
        asks(scene, "a", None)
        await scene.settled()
        assert found(scene, "main") == {TEAM: "a"}, "it is the administrator's own now"
        await scene.kill()

    run(story())


def test_of_two_that_ask_the_older_one_has_it_until_it_asks_no_more_and_it_is_empty() -> None:
    async def story() -> None:
        scene = Scene({"a": 1, "b": 1})
        scene.jobs.lasts = lambda _: 50.0
        labelled(scene, TEAM, gpus="yes")
        asks(scene, "b", "main", gpus="yes")
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        await scene.settled(lambda: told(scene, "b")[1] == "LocalQueueTaken")
        assert told(scene, "a")[1] == "Ready"
        scene.submit("train", "main", 1)
        await scene.server.until(lambda: scene.runs("train") == 1)
        asks(scene, "a", None)
        await asyncio.sleep(5)
        assert found(scene, "main") == {TEAM: "a"}
        await scene.server.until(lambda: scene.is_done("train"))
        await scene.settled(lambda: found(scene, "main") == {TEAM: "b"})
        await scene.settled(lambda: told(scene, "b")[1] == "Ready")
        await scene.kill()

    run(story())


def test_as_long_as_the_rule_can_not_be_read_nothing_goes() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        labelled(scene, TEAM, gpus="yes")
        asks(scene, "a", "main", gpus="yes")
        await scene.start()
        await scene.settled(lambda: found(scene, "main") == {TEAM: "a"})
        odd: Json = {"spec": {"localQueues": {"odd": True}}}
        scene.server.write(f"{OWN}/clusterqueues/a", odd)
        await scene.settled(lambda: told(scene, "a")[1] == "InvalidSpec")
        labelled(scene, TEAM, gpus=None)
        await scene.kill()
        await scene.start(seed=2)
        await asyncio.sleep(5)
        assert found(scene, "main") == {TEAM: "a"}
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"localQueues": {"odd": None}}})
        await scene.settled(lambda: found(scene, "main") == {})
        await scene.kill()

    run(story())

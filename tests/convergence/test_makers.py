"""What makes queued pods is told why these wait, with all controllers running: once for a wait."""

import asyncio
from typing import Any

from tests.apiserver.loop import run
from tests.convergence.pods import PodScene
from tests.convergence.scene import TEAM

Json = dict[str, Any]

APPS = f"/apis/apps/v1/namespaces/{TEAM}"


def owner(kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid}


def told(scene: PodScene, kind: str) -> list[tuple[str, str]]:
    """Name of the object and message of each event on objects of a kind."""
    found = [
        each for each in scene.server.objects["events"].values() if each["involvedObject"]["kind"] == kind
    ]
    return [(each["involvedObject"]["name"], each["message"]) for each in found]


def replica_set(scene: PodScene, name: str, *above: Json) -> Json:
    """A ReplicaSet is made; returns it as the owner of its pods."""
    owners = [each | {"controller": True} for each in above]
    made = scene.server.make(f"{APPS}/replicasets", {"metadata": {"name": name, "ownerReferences": owners}})
    return owner("ReplicaSet", name, made["metadata"]["uid"])


async def full() -> PodScene:
    """A queue of one CPU, which a pod has that does not end."""
    scene = PodScene({"a": 1})
    scene.kubelet.lasts = lambda _: 1e6
    await scene.start()
    scene.pod("first")
    await scene.settled(lambda: scene.has_started("first"))
    return scene


def test_a_deployment_is_told_once_why_its_pods_wait_and_again_when_others_do() -> None:
    async def story() -> None:
        scene = await full()
        made_by = replica_set(scene, "web-abc", owner("Deployment", "web", "uid-web"))
        scene.pod("web-abc-1", owner=made_by)
        await scene.server.until(lambda: bool(told(scene, "Deployment")))
        scene.pod("web-abc-2", owner=made_by)
        await scene.settled(lambda: scene.condition("web-abc-2", "QuotaReserved") == "False")
        await asyncio.sleep(10)
        ((name, message),) = told(scene, "Deployment")
        assert name == "web"
        assert message.startswith("pod web-abc-1 waits: asks for 1 cpu from ClusterQueue a")
        scene.delete_pod("first")
        await scene.settled(lambda: scene.has_started("web-abc-1"))
        scene.pod("web-abc-3", owner=made_by)
        await scene.server.until(lambda: len(told(scene, "Deployment")) == 2)
        assert told(scene, "ReplicaSet") == []
        await scene.kill()

    run(story())


def test_a_replica_set_that_no_deployment_has_made_is_told_itself() -> None:
    async def story() -> None:
        scene = await full()
        scene.pod("web-1", owner=replica_set(scene, "web"))
        await scene.server.until(lambda: bool(told(scene, "ReplicaSet")))
        assert [name for name, _ in told(scene, "ReplicaSet")] == ["web"]
        await scene.kill()

    run(story())


def test_pods_that_name_a_maker_that_is_not_theirs_tell_it_nothing() -> None:
    async def story() -> None:
        scene = await full()
        replica_set(scene, "web-abc", owner("Deployment", "web", "uid-web"))
        scene.pod("forged", owner=owner("ReplicaSet", "web-abc", "another"))
        scene.pod("orphan", owner=owner("ReplicaSet", "gone", "uid-gone"))
        scene.pod(
            "step", owner={**owner("Workflow", "flow", "uid-flow"), "apiVersion": "argoproj.io/v1alpha1"}
        )
        names = ("forged", "orphan", "step")
        await scene.server.until(lambda: all("InsufficientQuota" in scene.events(name) for name in names))
        await asyncio.sleep(10)
        assert {each["involvedObject"]["kind"] for each in scene.server.objects["events"].values()} == {"Pod"}
        await scene.kill()

    run(story())

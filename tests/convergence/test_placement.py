"""Queues that rules of placement make, with all controllers running."""

import asyncio
from typing import Any

from admitter.cache.world import OWN
from admitter.names import PLACEMENT_ANNOTATION
from tests.apiserver.loop import run
from tests.convergence.scene import JOBS, Scene

Json = dict[str, Any]

POLICIES = f"{OWN}/placementpolicies"
BEHIND_SECONDS = 20.0


def test_a_queue_that_goes_with_its_policy_stays_away() -> None:
    """The controller hears of the end of the queue before it hears of that of the policy."""

    async def story() -> None:
        scene, made = Scene({"a": 2}), list[str]()
        rule = {"from": "Label", "label": "team", "parent": "all", "create": True}
        spec: Json = {"namespaceSelector": {}, "rules": [rule]}
        scene.server.make(POLICIES, {"metadata": {"name": "teams"}, "spec": spec})
        await scene.start()
        _submit(scene, "first")
        await scene.server.until(lambda: scene.is_done("first"))
        scene.server.write(f"{OWN}/clusterqueues/gold", {"spec": {"stopPolicy": "Hold"}})
        _submit(scene, "waits")
        await scene.server.until(lambda: scene.condition("waits", "QuotaReserved") == "False")

        def note(plural: str, before: Json | None, after: Json | None) -> None:
            if plural == "clusterqueues" and before is None and after is not None:
                made.append(after["metadata"]["name"])

        scene.server.listen(note)
        scene.server.behind = lambda plural: BEHIND_SECONDS if plural == "placementpolicies" else 0.0
        scene.server.remove(f"{POLICIES}/teams")
        assert ("", "gold") not in scene.server.objects["clusterqueues"], "it goes with its owner"
        await asyncio.sleep(3 * BEHIND_SECONDS)
        assert made == []
        await scene.kill()

    run(story())


def _submit(scene: Scene, name: str) -> None:
    """A user makes a Job of team gold, which the API server marks as one of the policy."""
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    notes = {PLACEMENT_ANNOTATION: "teams"}
    spec = {"suspend": True, "parallelism": 1, "completions": 1, "template": template}
    metadata = {"name": name, "labels": {"team": "gold"}, "annotations": notes}
    scene.server.make(JOBS, {"metadata": metadata, "spec": spec})

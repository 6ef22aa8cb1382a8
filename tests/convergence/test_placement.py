"""Queues that rules of placement make, with all controllers running."""

import asyncio
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.client.errors import api_error
from admitter.names import PLACEMENT_ANNOTATION, QUEUE_LABEL
from tests.apiserver.loop import run
from tests.apiserver.server import Changed
from tests.convergence.scene import JOBS, Scene
from tests.convergence.test_refused import REFUSED, SEVERAL_TRIES, refused, told

Json = dict[str, Any]

POLICIES = f"{OWN}/placementpolicies"
BEHIND_SECONDS = 20.0


def test_a_queue_that_goes_with_its_policy_stays_away() -> None:
    """The controller hears of the end of the queue before it hears of that of the policy."""

    async def story() -> None:
        scene, made = _scene(), list[str]()
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


def _queue_made(plural: str, before: Json | None, _after: Json | None) -> None:
    if plural == "localqueues" and before is None:
        raise api_error(403, {"reason": "Forbidden", "message": "policy gold forbids it"})


def _job_queued(plural: str, before: Json | None, after: Json | None) -> None:
    old, new = ((each or {}).get("metadata", {}).get("labels", {}) for each in (before, after))
    if plural == "jobs" and before is not None and QUEUE_LABEL in new.keys() - old.keys():
        raise api_error(422, {"reason": "Invalid", "message": "policy gold forbids it"})


@pytest.mark.parametrize("policy", [_queue_made, _job_queued], ids=["403 on its queue", "422 on the Job"])
def test_a_refused_write_is_logged_once_and_told_on_the_job(policy: Changed) -> None:
    async def story() -> None:
        scene = _scene()
        await scene.start()
        with refused(scene, policy) as lines:
            _submit(scene, "job")
            await scene.server.until(lambda: told(scene, "job") != [])
            await asyncio.sleep(SEVERAL_TRIES)
        failed = [line["log_level"] for line in lines if line["event"] == "will try again"]
        assert failed.count("warning") == 1 < len(failed)
        assert told(scene, "job") == [REFUSED]
        await scene.server.until(lambda: scene.is_done("job"))
        assert told(scene, "job") == [REFUSED]
        await scene.kill()

    run(story())


def _scene() -> Scene:
    """One with a policy by which each team has a queue of its own."""
    scene = Scene({"a": 2})
    rule = {"from": "Label", "label": "team", "parent": "all", "create": True}
    spec: Json = {"namespaceSelector": {}, "rules": [rule]}
    scene.server.make(POLICIES, {"metadata": {"name": "teams"}, "spec": spec})
    return scene


def _submit(scene: Scene, name: str) -> None:
    """A user makes a Job of team gold, which the API server marks as one of the policy."""
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    notes = {PLACEMENT_ANNOTATION: "teams"}
    spec = {"suspend": True, "parallelism": 1, "completions": 1, "template": template}
    metadata = {"name": name, "labels": {"team": "gold"}, "annotations": notes}
    scene.server.make(JOBS, {"metadata": metadata, "spec": spec})

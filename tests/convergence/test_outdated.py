"""A Job that has changed since its Workload was written: it competes as what it is now, or not at all."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from admitter.client.errors import api_error
from admitter.names import MAX_PARALLELISM_ANNOTATION, MIN_PARALLELISM_ANNOTATION, QUEUE_LABEL
from tests.apiserver.loop import run
from tests.convergence.scene import JOBS, Scene

Json = dict[str, Any]

WHILE = 60.0
"""Seconds, in which a Job could be admitted and evicted many times."""


class Watched(Scene):
    """A scene of queues `a` and `b` in which Jobs run on, and admissions are counted.

    Attributes:
        admitted: how often each Workload was admitted, by the name of its Job.
        refuses: whether the API server refuses new Workloads, and other specs of those that there are.
    """

    def __init__(self) -> None:
        super().__init__({"a": 2, "b": 2}, withinClusterQueue="LowerPriority")
        self.jobs.lasts = lambda _: 10_000.0
        self.admitted: dict[str, int] = {}
        self.refuses = False
        self.server.listen(self._count)
        self.server.policies.append(self._refuse)

    def _count(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "workloads" and after and not _admission(before) and _admission(after):
            name = after["metadata"]["ownerReferences"][0]["name"]
            self.admitted[name] = self.admitted.get(name, 0) + 1

    def _refuse(self, plural: str, before: Json | None, after: Json | None) -> None:
        if self.refuses and plural == "workloads" and after and (before or {}).get("spec") != after["spec"]:
            raise api_error(422, {"reason": "Invalid", "message": "policy gold forbids it"})

    def annotate(self, name: str, annotation: str, value: str | None) -> None:
        """A user annotates a Job."""
        self.server.write(f"{JOBS}/{name}", {"metadata": {"annotations": {annotation: value}}})

    def why(self, name: str) -> tuple[str, str]:
        """Why a Workload waits: reason and message."""
        status = (self.workload(name) or {}).get("status") or {}
        return status.get("reason", ""), status.get("message", "")


def _admission(raw: Json | None) -> Json | None:
    found: Json | None = ((raw or {}).get("status") or {}).get("admission")
    return found


@pytest.mark.parametrize("annotation", [MIN_PARALLELISM_ANNOTATION, MAX_PARALLELISM_ANNOTATION])
def test_a_waiting_job_that_can_be_counted_no_more_is_not_admitted_until_it_can(annotation: str) -> None:
    async def story() -> None:
        scene = Watched()
        scene.submit("first", "a", 4)
        await scene.start()
        await scene.settled(lambda: scene.runs("first") == 1)
        scene.submit("second", "a", 1)
        await scene.settled(lambda: scene.why("second")[0] == "InsufficientQuota")
        scene.annotate("second", annotation, "two")
        await scene.server.until(lambda: "InvalidRequests" in scene.events("second"))
        scene.delete("first")
        await scene.settled(lambda: scene.why("second")[0] == "InvalidRequests")
        await asyncio.sleep(WHILE)
        assert f"its annotation {annotation} is 'two', which is no number of pods" in scene.why("second")[1]
        assert "second" not in scene.admitted
        assert (scene.used("a"), scene.excesses) == (0, [])
        scene.annotate("second", annotation, None)
        await scene.settled(lambda: scene.runs("second") == 1)
        assert scene.admitted == {"first": 1, "second": 1}
        await scene.kill()

    run(story())


def _scale(scene: Scene) -> None:
    scene.server.write(f"{JOBS}/job", {"spec": {"parallelism": 5, "completions": 5}})


def _move(scene: Scene) -> None:
    scene.server.write(f"{JOBS}/job", {"metadata": {"labels": {QUEUE_LABEL: "nowhere"}}})


@pytest.mark.parametrize(
    ("change", "reason"),
    [(_scale, "NeverFits"), (_move, "QueueNotFound")],
    ids=["more pods", "another queue"],
)
@pytest.mark.parametrize("refuses", [False, True], ids=["written", "refused"])
def test_a_running_job_that_has_changed_is_evicted_once_and_admitted_only_as_what_it_is_now(
    change: Callable[[Scene], None], reason: str, *, refuses: bool
) -> None:
    """Also while the API server refuses to have it written what it asks for now: that is tried again."""

    async def story() -> None:
        scene = Watched()
        scene.submit("job", "a", 1)
        await scene.start()
        await scene.settled(lambda: scene.runs("job") == 1)
        scene.refuses = refuses
        change(scene)
        await scene.settled(lambda: scene.runs("job") == 0 and scene.used("a") == 0)
        await asyncio.sleep(WHILE)
        if refuses:
            assert scene.why("job")[0] == "Outdated"
            assert "policy gold forbids it" in scene.events("job")["InvalidRequests"]
            scene.refuses = False  # and that is found out by itself
        await scene.settled(lambda: scene.why("job")[0] == reason)
        assert scene.admitted == {"job": 1}
        await scene.kill()

    run(story())


def test_a_workload_that_can_not_be_made_is_tried_again() -> None:
    async def story() -> None:
        scene = Watched()
        scene.refuses = True
        scene.submit("job", "a", 1)
        await scene.start()
        await scene.server.until(lambda: "InvalidRequests" in scene.events("job"))
        assert "policy gold forbids it" in scene.events("job")["InvalidRequests"]
        scene.refuses = False
        await scene.settled(lambda: scene.runs("job") == 1)
        await scene.kill()

    run(story())

"""Writes that the API server refuses: each is logged once, told on its Job, and done when it is not refused.

Refused admissions are in `test_told`, refused Workloads in `test_convergence`.
"""

import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from admitter.cache.world import OWN, pods_path, workload_path
from admitter.client.errors import api_error
from admitter.controllers.workload.marks import IN_QUOTA
from admitter.names import CAPACITY_LABEL, ELASTIC_QUOTA_QUEUE
from tests.apiserver.loop import run
from tests.apiserver.server import Changed, Json
from tests.convergence.scene import JOBS, TEAM, Scene
from tests.convergence.test_growing import MOST
from tests.convergence.test_told import refusing

REFUSED = "the API server refuses what it needs: policy gold forbids it"
LONG = 10_000.0
PODS = 50
"""More than are written at a time, so that the first refusals are told before the last are known."""
SEVERAL_TRIES = 60.0
"""Seconds; what is refused is tried again every 10."""


@contextmanager
def refused(scene: Scene, policy: Changed) -> Iterator[list[MutableMapping[str, Any]]]:
    """The log of a while in which the API server refuses some changes."""
    scene.server.policies.append(policy)
    with capture_logs() as lines:
        yield lines
    scene.server.policies.remove(policy)


def warned(lines: list[MutableMapping[str, Any]], event: str) -> list[str]:
    """The objects that warnings are about, of at least three lines each."""
    of: dict[str, list[str]] = {}
    for line in lines:
        if line["event"] == event:
            of.setdefault(str(line.get("workload") or line["name"]), []).append(line["log_level"])
    assert all(len(levels) > 2 for levels in of.values()), of
    return sorted(name for name, levels in of.items() for level in levels if level == "warning")


def told(scene: Scene, job: str) -> list[str]:
    """All that a Job is told of refused writes."""
    events = scene.server.objects["events"].values()
    return [
        event["message"]
        for event in events
        if (event["involvedObject"]["name"], event["reason"]) == (job, "WriteRefused")
    ]


def name_of(scene: Scene, job: str) -> str:
    """The name of a Job's Workload."""
    return str((scene.workload(job) or {})["metadata"]["name"])


class Decision(NamedTuple):
    """A write of a decision on a Job.

    Attributes:
        event: what the log says if it fails.
        field: of the status of its Workload.
        before: brings about what it depends on.
        ready: whether that is there.
        act: brings it about.
        done: whether it is written.
    """

    event: str
    field: str
    before: Callable[[Scene], None]
    ready: Callable[[Scene], bool]
    act: Callable[[Scene], None]
    done: Callable[[Scene], bool]


def _runs(scene: Scene) -> bool:
    return scene.runs("job") == 1


def _preempt(scene: Scene) -> None:
    scene.submit("preemptor", "a", 3, "high")


def _preempt_gently(scene: Scene) -> None:
    scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"preemption": {"gracePeriod": "1h"}}})
    _preempt(scene)


def _fill(scene: Scene) -> None:
    _preempt(scene)
    scene.submit("small", "a", 1, "high")


def _grow(scene: Scene) -> None:
    notes = {"annotations": {MOST: "2"}}
    scene.server.write(f"{JOBS}/job", {"metadata": notes, "spec": {"completions": 100}})


EVICTION = Decision(
    "eviction not written",
    "preemption",
    lambda _: None,
    _runs,
    _preempt,
    lambda scene: scene.runs("preemptor") == 1,
)
RESIZE = Decision(
    "number of pods not written",
    "resize",
    lambda _: None,
    _runs,
    _grow,
    lambda scene: scene.runs("job") == 2,
)
CANCELLATION = Decision(
    "end of a grace period not written",
    "preemption",
    _preempt_gently,
    lambda scene: scene.condition("job", "EvictionPending") == "True",
    lambda scene: scene.delete("preemptor"),
    lambda scene: scene.condition("job", "EvictionPending") == "False" and _runs(scene),
)
AMENDMENT = Decision(
    "eviction not amended",
    "preemption",
    _fill,
    lambda scene: scene.runs("preemptor") == scene.runs("small") == 1,
    lambda scene: scene.delete("small"),
    lambda scene: "preemption" not in (scene.workload("job") or {})["status"],
)


@pytest.mark.parametrize(
    "decision",
    [EVICTION, RESIZE, CANCELLATION, AMENDMENT],
    ids=["eviction", "resize", "cancellation", "amendment"],
)
def test_a_refused_decision_is_logged_once_and_told_on_the_job(decision: Decision) -> None:
    async def story() -> None:
        scene = Scene({"a": 4}, withinClusterQueue="LowerPriority")
        scene.jobs.lasts = lambda _: LONG
        scene.submit("job", "a", 2, "low")
        await scene.start()
        await scene.settled(lambda: _runs(scene))
        decision.before(scene)
        await scene.settled(lambda: decision.ready(scene))
        with refused(scene, refusing("workloads", decision.field)) as lines:
            decision.act(scene)
            await asyncio.sleep(SEVERAL_TRIES)
        assert warned(lines, decision.event) == [name_of(scene, "job")]
        words = f"the API server refuses the status of its Workload: policy gold forbids {decision.field}"
        assert told(scene, "job") == [words]
        assert not decision.done(scene)
        await scene.settled(lambda: decision.done(scene))
        assert told(scene, "job") == [words]
        assert scene.excesses == []
        await scene.kill()

    run(story())


class Elastic(Scene):
    """A Job with many pods on an elastic quota."""

    def __init__(self) -> None:
        super().__init__({"a": 1})
        self.jobs.lasts = lambda _: LONG
        quota = f"{OWN}/namespaces/{TEAM}/elasticquotas"
        self.server.make(quota, {"metadata": {"name": "all"}, "spec": {"min": {"cpu": str(PODS)}}})
        self.submit("job", ELASTIC_QUOTA_QUEUE, 1, pods=PODS)

    def shown(self, plural: str) -> dict[str, str]:
        """The capacity that each Workload, or each pod, of the Job says, by its name."""
        objects = self.server.objects[plural].values()
        return {raw["metadata"]["name"]: _capacity(raw) for raw in objects}

    def overwrite(self, plural: str, word: str) -> None:
        """A user writes another capacity."""
        for namespace, name in list(self.server.objects[plural]):
            path = workload_path((namespace, name))
            if plural == "pods":
                path = f"{pods_path(namespace)}/{name}"
            self.server.write(path, {"metadata": {"labels": {CAPACITY_LABEL: word}}})

    def is_right(self, plural: str) -> bool:
        return set(self.shown(plural).values()) == {IN_QUOTA}


def _capacity(raw: Json | None) -> str:
    return str(((raw or {}).get("metadata", {}).get("labels") or {}).get(CAPACITY_LABEL))


def relabelling(plural: str) -> Changed:
    """A policy that refuses to put labels right."""

    def policy(changed: str, before: Json | None, after: Json | None) -> None:
        if changed == plural and before and after and _capacity(before) != _capacity(after) == IN_QUOTA:
            raise api_error(403, {"reason": "Forbidden", "message": "policy gold forbids it"})

    return policy


@pytest.mark.parametrize("plural", ["workloads", "pods"])
def test_refused_labels_are_logged_once_each_and_told_once_on_the_job(plural: str) -> None:
    """Also when they are refused again, after they were written or a user had put them right."""

    async def story() -> None:
        scene = Elastic()
        await scene.start()
        await scene.server.until(lambda: scene.runs("job") == PODS and scene.is_right("workloads"))
        await scene.server.until(lambda: scene.is_right("pods"))
        names = sorted(scene.shown(plural))
        for times, by_hand in enumerate((False, True, False), 1):
            policy = relabelling(plural)
            with refused(scene, policy) as lines:
                scene.overwrite(plural, "mine")
                await asyncio.sleep(SEVERAL_TRIES)
                assert set(scene.shown(plural).values()) == {"mine"}
                if by_hand:
                    scene.server.policies.remove(policy)
                    scene.overwrite(plural, IN_QUOTA)
                    scene.server.policies.append(policy)
                    await asyncio.sleep(SEVERAL_TRIES)
            assert warned(lines, "label not written") == names
            assert told(scene, "job") == [REFUSED] * times
            await scene.server.until(lambda: scene.is_right(plural))
        await scene.kill()

    run(story())

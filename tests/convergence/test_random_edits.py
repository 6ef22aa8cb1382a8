"""Whatever users make of Jobs that wait or run: none is evicted without end, and each runs once corrected."""

import asyncio
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from admitter.client.errors import ClusterError
from admitter.names import (
    MAX_PARALLELISM_ANNOTATION,
    MAX_RUNTIME_ANNOTATION,
    MIN_PARALLELISM_ANNOTATION,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
)
from tests.apiserver.loop import run
from tests.apiserver.server import Fate
from tests.convergence.scene import JOBS, Scene
from tests.convergence.test_random_operations import CPU, PAUSES, disturb, made, operate, pause
from tests.scale import scaled

Json = dict[str, Any]

OPERATIONS = 30
LONG = 120.0
"""Seconds: longer than an eviction takes, and a Job."""
NUMBERS = (MIN_PARALLELISM_ANNOTATION, MAX_PARALLELISM_ANNOTATION)
SOUND: Json = dict.fromkeys((*NUMBERS, MAX_RUNTIME_ANNOTATION))
TEXTS = ("two", "-1", "1e2", "")
ROUNDS = 60
"""More than there are Jobs: one after another, all of them have run by then."""


class Edits:
    """Changes of Jobs that their users make, and evictions that follow from them, by the name of a Job."""

    def __init__(self, scene: Scene) -> None:
        self.made = Counter[str]()
        self.evicted = Counter[str]()
        self._scene = scene
        scene.server.listen(self._count)

    def _count(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "workloads" and after is not None and _has_changed(after) and not _has_changed(before):
            self.evicted[after["metadata"]["ownerReferences"][0]["name"]] += 1

    def make(self, job: str, random: Random) -> None:
        """Change a Job; the API server refuses another template of one that runs."""
        body: Json
        match random.choice(("text", "number", "queue", "class", "pods", "requests", "size")):
            case "text":
                body = _noted(annotations={random.choice(list(SOUND)): random.choice(TEXTS)})
            case "number":
                body = _noted(annotations={random.choice(NUMBERS): random.choice((None, "1", "2", "1000"))})
            case "queue":
                body = _noted(labels={QUEUE_LABEL: random.choice((*CPU, "nowhere", "", None))})
            case "class":
                body = _noted(labels={PRIORITY_CLASS_LABEL: random.choice(("nowhere", None))})
            case "pods":
                spec = self._scene.job(job)["spec"]  # a policy refuses more pods to one that runs
                most = 9 if spec["suspend"] else spec["parallelism"]
                body = {"spec": {"parallelism": random.randint(1, most)}}
            case "requests":
                body = _asking(random.randint(1, 9))
            case _:
                selector = {f"of-{number}": "x" * 60 for number in range(random.choice((1, 1200)))}
                body = {"spec": {"template": {"spec": {"nodeSelector": selector}}}}
        before = _said(self._scene.job(job))
        with suppress(ClusterError):
            self._scene.server.write(f"{JOBS}/{job}", body)
        self.made[job] += _said(self._scene.job(job)) != before

    def correct(self, job: str) -> None:
        """Have a Job ask for one pod that fits, in a queue that there is."""
        sound = _noted(annotations=SOUND, labels={QUEUE_LABEL: "a", PRIORITY_CLASS_LABEL: None})
        self._scene.server.write(f"{JOBS}/{job}", sound | {"spec": {"parallelism": 1}})
        with suppress(ClusterError):  # the template of one that runs can't change, and what it asks for fits
            template = _asking(1)
            template["spec"]["template"]["spec"]["nodeSelector"] = None
            self._scene.server.write(f"{JOBS}/{job}", template)


def _said(job: Json) -> list[Json]:
    """What its user has written of a Job."""
    metadata = job["metadata"]
    return deepcopy([metadata.get("labels"), metadata.get("annotations"), job["spec"]])


def _noted(**metadata: Json) -> Json:
    return {"metadata": metadata}


def _asking(cpu: int) -> Json:
    containers = [{"resources": {"requests": {"cpu": str(cpu)}}}]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def _has_changed(workload: Json | None) -> bool:
    """Whether a Workload is to stop since its Job has changed, or could not be started."""
    conditions = ((workload or {}).get("status") or {}).get("conditions") or ()
    said = {each["type"]: (each["status"], each["reason"]) for each in conditions}
    return said.get("Evicted") in {("True", "JobChanged"), ("True", "NotStarted")}


async def story(seed: int, *, faults: bool) -> None:
    random = Random(seed)
    scene = made(random)
    edits = Edits(scene)
    await scene.start()
    for number in range(OPERATIONS):
        operate(scene, random, number)
        jobs = [name for _, name in scene.server.objects["jobs"] if not scene.is_done(name)]
        for job in random.sample(jobs, min(len(jobs), 2)):
            edits.make(job, random)
        if faults:
            await disturb(scene, random)
        await asyncio.sleep(random.choice(PAUSES))
    scene.server.fate = lambda: Fate.DONE
    await asyncio.sleep(LONG)
    endless = {name: n for name, n in edits.evicted.items() if n > edits.made[name] + 1}
    assert endless == {}
    for _ in range(ROUNDS):
        for _, job in list(scene.server.objects["jobs"]):
            if not scene.is_done(job):
                edits.correct(job)
        for _, workload in list(scene.server.objects["workloads"]):
            pause(scene, workload, active=True)
        await asyncio.sleep(LONG)
    await scene.settled(lambda: all(scene.is_done(job) for _, job in scene.server.objects["jobs"]))
    assert scene.excesses == []
    await scene.kill()


@pytest.mark.parametrize("faults", [False, True], ids=["sound", "faults"])
@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_jobs_are_evicted_no_more_often_than_their_users_change_them(seed: int, *, faults: bool) -> None:
    run(story(seed, faults=faults))

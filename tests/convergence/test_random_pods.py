"""Whatever users do and whatever fails: in the end each queued pod has run, and none without room."""

import asyncio
from random import Random
from typing import Any

import pytest

from admitter.cache.world import workload_path
from tests.apiserver.loop import run
from tests.apiserver.server import Fate
from tests.convergence.pods import PODS, PodScene
from tests.convergence.scene import CLASSES
from tests.convergence.test_random_operations import CPU, PAUSES, disturb, pause
from tests.scale import scaled

OPERATIONS = 40


def operate(scene: PodScene, random: Random, number: int) -> None:
    """A user makes, changes, deletes, pauses or resumes a pod, deletes its Workload, or makes a Job."""
    pods = sorted(name for _, name in scene.server.objects["pods"] if name.startswith("pod-"))
    workloads = sorted(scene.server.objects["workloads"])
    of_pods = [key for key in workloads if key[1].startswith("pod")]
    kinds = ["pod"] * 4 + ["group"] * 3 + ["job"]
    kinds += ["delete", "tolerate"] * bool(pods) + ["pause"] * bool(workloads) + ["forget"] * bool(of_pods)
    priority, queue = random.choice(["", *CLASSES]), random.choice(list(CPU))
    match random.choice(kinds):
        case "pod":
            scene.pod(f"pod-{number}", queue, random.randint(1, 4), priority)
        case "group":
            make_group(scene, random, f"pod-group-{number}", queue, priority)
        case "job":
            scene.submit(f"job-{number}", queue, random.randint(1, 3), priority, random.randint(1, 2))
        case "delete":
            scene.delete_pod(random.choice(pods))
        case "tolerate":
            tolerations = [{"key": f"key-{number}", "operator": "Exists"}]
            scene.server.write(f"{PODS}/{random.choice(pods)}", {"spec": {"tolerations": tolerations}})
        case "forget":
            scene.server.remove(workload_path(random.choice(of_pods)))
        case _:
            pause(scene, random.choice(workloads)[1], active=random.random() < 0.3)


def make_group(scene: PodScene, random: Random, name: str, queue: str, priority: str) -> None:
    """A user makes a group of pods of one shape or two; now and then one pod too many."""
    said = {"retriable_in_group": "false"} if random.random() < 0.3 else {}
    size = random.randint(1, 3)
    common: dict[str, Any] = {"queue": queue, "priority": priority, "size": size, **said}
    scene.group(name, size, **common)
    if random.random() < 0.2:
        scene.group(name, 1, first=size, **common)
    scene.groups[name] = common


async def make_anew(scene: PodScene) -> None:
    """Users go on until all is over: they make pods in the places of those that are gone."""
    for number in range(1, 100):
        if not scene.unfinished() and not sum(map(scene.used, CPU)):
            return
        await asyncio.sleep(20)
        for name, common in scene.groups.items():
            scene.group(name, scene.lacking(name), first=100 * number, **common)
    raise AssertionError(scene.unfinished())


async def story(seed: int, *, faults: bool) -> None:
    """Let users do what they like; never is more admitted, or runs, than there is."""
    random = Random(seed)
    scene = PodScene(
        CPU,
        withinClusterQueue=random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        reclaimWithinCohort=random.choice(["Never", "LowerPriority", "Any"]),
        **random.choice([{}, {"gracePeriod": "10s"}]),
    )
    scene.kubelet.lasts = scene.jobs.lasts = lambda _: random.choice((1.0, 10.0, 60.0))
    scene.kubelet.phase = lambda _: random.choice(("Succeeded", "Succeeded", "Failed"))
    await scene.start()
    for number in range(OPERATIONS):
        operate(scene, random, number)
        if faults:
            await disturb(scene, random)
        await asyncio.sleep(random.choice(PAUSES))
    scene.server.fate = lambda: Fate.DONE
    for _, workload in list(scene.server.objects["workloads"]):
        pause(scene, workload, active=True)
    await make_anew(scene)
    await scene.settled()
    assert scene.excesses == []
    await scene.kill()


@pytest.mark.parametrize("seed", range(scaled(2, 40)))
def test_each_pod_runs(seed: int) -> None:
    run(story(seed, faults=False))


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_so_it_does_with_lost_answers_conflicts_and_restarts(seed: int) -> None:
    run(story(seed, faults=True))

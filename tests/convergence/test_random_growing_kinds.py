"""Whatever autoscalers and users ask for, and whatever fails: never are more pods there than are granted."""

import asyncio
from random import Random

import pytest

from tests.apiserver.loop import run
from tests.apiserver.rays import group
from tests.apiserver.server import Fate
from tests.convergence.scene import CLASSES
from tests.convergence.test_growing_kinds import RAYS, Rays
from tests.convergence.test_random_operations import PAUSES, disturb, pause
from tests.scale import scaled

OPERATIONS = 40
CPU = {"a": 6, "b": 4}


def operate(scene: Rays, random: Random, number: int) -> None:
    """A user makes or deletes a RayCluster or a Job, or pauses a Workload; or replicas are asked for."""
    rays = sorted(name for _, name in scene.server.objects["rayclusters"])
    jobs = sorted(name for _, name in scene.server.objects["jobs"])
    workloads = sorted(scene.server.objects["workloads"])
    kinds = ["ray"] * 2 + ["job"] * 3 + ["ask"] * 8 * bool(rays) + ["pause"] * bool(workloads)
    kinds += ["delete"] * bool(rays) + ["end"] * bool(jobs) + ["stop"] * bool(rays)
    queue, priority = random.choice(list(CPU)), random.choice(["", *CLASSES])
    match random.choice(kinds):
        case "ray":
            groups = [group("small", random.randint(1, 2), random.randint(2, 8), priority=priority)]
            if random.random() < 0.5:
                groups.append(group("big", 1, random.randint(1, 3), hosts=2, priority=priority))
            scene.cluster(f"ray-{number}", queue, *groups, autoscales=random.random() < 0.5)
        case "job":
            pods = random.randint(1, 4)
            scene.submit(f"job-{number}", queue, random.randint(1, 6 // pods), priority, pods)
        case "ask":
            ask(scene, random, random.choice(rays))
        case "pause":
            pause(scene, random.choice(workloads)[1], active=random.random() < 0.5)
        case "delete":
            scene.server.remove(f"{RAYS}/{random.choice(rays)}")
        case "end":
            scene.delete(random.choice(jobs))
        case _:
            name = random.choice(rays)
            groups = [dict(each) for each in scene.job(name)["spec"]["workerGroupSpecs"]]
            if not scene.job(name)["spec"]["suspend"] and random.random() < 0.3:
                random.choice(groups)["suspend"] = True
                scene.server.write(f"{RAYS}/{name}", {"spec": {"workerGroupSpecs": groups}})


def ask(scene: Rays, random: Random, name: str) -> None:
    """An autoscaler asks for no more than the bound; a user for whatever it likes."""
    spec = scene.job(name)["spec"]
    place = random.randrange(len(spec["workerGroupSpecs"]))
    most = spec["workerGroupSpecs"][place]["maxReplicas"] if spec["enableInTreeAutoscaling"] else 9
    if not spec["suspend"]:
        scene.ask(name, random.randint(0, most) if random.random() < 0.5 else most, place)


async def story(seed: int, *, faults: bool) -> None:
    random = Random(seed)
    scene = Rays(
        CPU,
        withinClusterQueue=random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        reclaimWithinCohort=random.choice(["Never", "LowerPriority", "Any"]),
        **random.choice([{}, {"gracePeriod": "10s"}]),
    )
    scene.jobs.lasts = lambda _: random.choice((5.0, 60.0, 200.0))
    await scene.start()
    for number in range(OPERATIONS):
        operate(scene, random, number)
        if faults:
            await disturb(scene, random)
        await asyncio.sleep(random.choice((*PAUSES, 40.0)))
    scene.server.fate = lambda: Fate.DONE
    for _, workload in list(scene.server.objects["workloads"]):
        pause(scene, workload, active=True)
    await asyncio.sleep(300.0)
    for _, name in list(scene.server.objects["rayclusters"]):
        scene.server.remove(f"{RAYS}/{name}")
    jobs = [name for _, name in scene.server.objects["jobs"]]
    await scene.settled(lambda: all(map(scene.is_done, jobs)))
    assert (scene.beyond, scene.excesses) == ([], [])
    assert sum(map(scene.used, CPU)) == 0
    await scene.kill()


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_each_job_runs_beside_clusters_that_grow_and_shrink(seed: int) -> None:
    run(story(seed, faults=False))


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_so_it_does_with_lost_answers_conflicts_and_restarts(seed: int) -> None:
    run(story(seed, faults=True))

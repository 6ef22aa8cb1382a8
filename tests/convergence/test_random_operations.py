"""Whatever users do and whatever fails: in the end each Job has run, and statuses say what is so."""

import asyncio
from random import Random

import pytest

from admitter.names import MAX_PARALLELISM_ANNOTATION, MIN_PARALLELISM_ANNOTATION
from tests.apiserver.loop import run
from tests.apiserver.server import FAULTS, Fate
from tests.convergence.scene import CLASSES, JOBS, TEAM, Scene
from tests.scale import scaled

OPERATIONS = 30
CPU = {"a": 3, "b": 3}
PAUSES = (0.0, 0.05, 0.5, 5.0, 20.0)


def made(random: Random) -> Scene:
    """Two queues that preempt as they like, and Jobs that run for as long as they like."""
    scene = Scene(
        CPU,
        withinClusterQueue=random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        reclaimWithinCohort=random.choice(["Never", "LowerPriority", "Any"]),
        **random.choice([{}, {"gracePeriod": "10s"}]),
    )
    scene.jobs.lasts = lambda _: random.choice((1.0, 10.0, 60.0))
    scene.jobs.spread = lambda _: random.choice((0.0, 0.2, 2.0, 20.0))
    return scene


def operate(scene: Scene, random: Random, number: int) -> None:
    """A user makes, deletes, pauses or resumes a Job."""
    jobs = sorted(name for _, name in scene.server.objects["jobs"])
    workloads = sorted(scene.server.objects["workloads"])
    kinds = ["submit"] * 4 + ["delete"] * bool(jobs) + ["pause"] * bool(workloads)
    match random.choice(kinds):
        case "submit":
            pods = random.randint(1, 3)
            cpu, priority = random.randint(1, 6 // pods), random.choice(["", *CLASSES])
            scene.submit(f"job-{number}", random.choice(list(CPU)), cpu, priority, pods)
            if pods > 1 and random.random() < 0.3:
                annotations = {MIN_PARALLELISM_ANNOTATION: str(random.randint(1, pods))}
                scene.server.write(f"{JOBS}/job-{number}", {"metadata": {"annotations": annotations}})
            if random.random() < 0.3:
                grows(scene, f"job-{number}", pods, random.randint(1, 3))
        case "delete":
            scene.delete(random.choice(jobs))
        case _:
            pause(scene, random.choice(workloads)[1], active=random.random() < 0.3)


def grows(scene: Scene, job: str, pods: int, more: int) -> None:
    """A Job can use more pods, and has work for them."""
    body = {"metadata": {"annotations": {MAX_PARALLELISM_ANNOTATION: str(pods + more)}}}
    scene.server.write(f"{JOBS}/{job}", body | {"spec": {"completions": pods + 2 * more}})


def pause(scene: Scene, workload: str, *, active: bool) -> None:
    """A user pauses a Workload, or lets it go on."""
    path = f"/apis/admitter.dev/v1alpha1/namespaces/{TEAM}/workloads/{workload}"
    scene.server.write(path, {"spec": {"active": active}})


async def story(seed: int, *, faults: bool = False) -> None:
    """Let users do what they like; in the end each Job has run, and never was more admitted than there is."""
    random = Random(seed)
    scene = made(random)
    await scene.start()
    for number in range(OPERATIONS):
        operate(scene, random, number)
        if faults:
            await disturb(scene, random)
        await asyncio.sleep(random.choice(PAUSES))
    scene.server.fate = lambda: Fate.DONE
    for _, workload in list(scene.server.objects["workloads"]):
        pause(scene, workload, active=True)
    jobs = [name for _, name in scene.server.objects["jobs"]]
    await scene.settled(lambda: all(map(scene.is_done, jobs)))
    assert scene.excesses == []
    assert sum(map(scene.used, CPU)) == 0
    await scene.kill()


async def disturb(scene: Scene, random: Random) -> None:
    """Writes fail and watches are late; now and then watches end, or the controller does."""
    scene.server.fate = lambda: random.choice(FAULTS) if random.random() < 0.15 else Fate.DONE
    scene.server.behind = lambda _: random.choice((0.0, 0.0, 0.01, 0.3))
    if random.random() < 0.1:
        scene.server.cut_watches(forget=random.random() < 0.5)
    if random.random() < 0.1:
        await scene.kill()
        await scene.start()


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_each_job_runs_and_the_statuses_say_what_is_so(seed: int) -> None:
    run(story(seed))


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_so_they_do_with_lost_answers_conflicts_and_restarts(seed: int) -> None:
    run(story(seed, faults=True))

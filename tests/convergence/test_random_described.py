"""Whatever users do and whatever fails: in the end each Experiment and each Job has run, and none twice."""

import asyncio
from random import Random

import pytest

from tests.apiserver.loop import run
from tests.apiserver.server import Fate
from tests.convergence.lab import EXPERIMENTS, Lab
from tests.convergence.scene import CLASSES
from tests.convergence.test_random_operations import PAUSES, disturb, pause
from tests.scale import scaled

OPERATIONS = 40


def operate(lab: Lab, random: Random, number: int) -> None:
    """A user makes, deletes, pauses or resumes an Experiment, or makes a Job."""
    experiments = sorted(name for _, name in lab.server.objects["experiments"])
    workloads = sorted(lab.server.objects["workloads"])
    kinds = ["experiment"] * 4 + ["job"] * 2 + ["delete"] * bool(experiments) + ["pause"] * bool(workloads)
    priority = random.choice(["", *CLASSES])
    match random.choice(kinds):
        case "experiment":
            sizes = random.randint(1, 2), random.randint(1, 2), random.randint(1, 2)
            lab.experiment(f"e-{number}", *sizes, priority)
        case "job":
            lab.submit(f"j-{number}", "a", random.randint(1, 4), priority)
        case "delete":
            lab.server.remove(f"{EXPERIMENTS}/{random.choice(experiments)}")
        case _:
            pause(lab, random.choice(workloads)[1], active=random.random() < 0.3)


async def story(seed: int, *, faults: bool) -> None:
    """Let users do what they like; never is more admitted, or runs, than there is."""
    random = Random(seed)
    lab = Lab(withinClusterQueue=random.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]))
    lab.operator.lasts = random.choice((5.0, 20.0, 60.0))
    await lab.start()
    for number in range(OPERATIONS):
        operate(lab, random, number)
        if faults:
            await disturb(lab, random)
        await asyncio.sleep(random.choice(PAUSES))
    lab.server.fate = lambda: Fate.DONE
    for _, workload in list(lab.server.objects["workloads"]):
        pause(lab, workload, active=True)
    left = [name for plural in ("experiments", "jobs") for _, name in lab.server.objects[plural]]
    await lab.settled(lambda: all(map(lab.is_done, left)))
    assert lab.excesses == []
    assert lab.used("a") == 0
    assert sorted(lab.operator.ended) == sorted(set(lab.operator.ended))
    await lab.kill()


@pytest.mark.parametrize("seed", range(scaled(2, 40)))
def test_each_experiment_runs_once(seed: int) -> None:
    run(story(seed, faults=False))


@pytest.mark.parametrize("seed", range(scaled(2, 60)))
def test_so_it_does_with_lost_answers_conflicts_and_restarts(seed: int) -> None:
    run(story(seed, faults=True))

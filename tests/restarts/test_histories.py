"""Random histories: a controller that starts at any instant decides as one that went on would."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from admitter.engine.commands import GainReservation, SetBackOff, UseReservation
from tests.apiserver.loop import run
from tests.apiserver.server import FAULTS, Fate
from tests.restarts.server import Server
from tests.restarts.team import (
    CLASSES,
    RECOVERY_SECONDS,
    Controller,
    asks,
    queue,
    quiet,
    used,
)
from tests.scale import examples

Json = dict[str, Any]
Step = Callable[[Controller], Any]

STEPS = 18
QUEUES = ("a", "b")
CPU = 4_000

many = settings(max_examples=examples(12))
seeds = given(seed=st.integers(0, 2**32 - 1))


def policies(random: Random) -> list[Json]:
    """Two queues of one cohort that preempt as they like, with grace or without."""
    within = ["Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"]
    borrows: list[Json] = [
        {},
        {"borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 10}},
    ]
    grace: list[Json] = [{}, {}, {"gracePeriod": "30s"}]
    return [
        queue(
            name,
            CPU // 1000,
            random.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
            withinClusterQueue=random.choice(within),
            reclaimWithinCohort=random.choice(["Never", "LowerPriority", "Any"]),
            **random.choice(borrows),
            **random.choice(grace),
        )
        for name in QUEUES
    ]


def step(random: Random, number: int, controller: Controller) -> Step:
    """What happens next: the same can be done to another controller with a server that holds the same."""
    server = controller.server
    views = [controller.view(name) for name in sorted(server.workloads)]
    evicting = [view.name for view in views if view.evicting]
    running = [view.name for view in views if view.admission is not None and not view.evicting]
    waiting = [view.name for view in views if view.admission is None and not view.finished]
    kinds = ["arrive"] * 5 + ["time"] + ["gone"] * bool(evicting) + ["finish"] * bool(running)
    kinds += ["delete"] * bool(waiting or evicting) + ["pause"] * bool(running or waiting)
    match random.choice(kinds):
        case "arrive":
            spec = asks(random.choice(QUEUES), random.randint(1, 5), random.choice(["", *CLASSES]))
            name = f"w{number}"
            return lambda c: c.server.submit(name, spec)
        case "gone":
            name = random.choice(evicting)
            return lambda c: c.gone(name)
        case "finish":
            name = random.choice(running)
            return lambda c: c.finish(name)
        case "delete":
            name = random.choice(waiting + evicting)
            return lambda c: c.server.drop(name)
        case "pause":
            name = random.choice(running + waiting)
            active = not server.workloads[name]["spec"]["active"]
            return lambda c: c.server.change(name, {"active": active})
        case _:
            seconds = random.choice([5.0, 40.0])
            return lambda _: quiet(seconds)


async def take(controller: Controller, happens: Step) -> None:
    """Let it happen, and everything follow from it."""
    done = happens(controller)
    if done is not None:
        await done
    await quiet()
    await controller.stop_what_must()
    await quiet()
    within_quota(controller)


def within_quota(controller: Controller) -> None:
    """No more is held than there is."""
    held = {name: controller.view(name).admission for name in controller.server.workloads}
    assert used(held) <= CPU * len(QUEUES)


def remember(live: Controller, restarted: Controller) -> None:
    """Tell a controller that has just started what no status says of places that were given back unused.

    These are back-offs that nothing waits for, and reservations of which the victims are gone or run again
    (docs/design/preemption.md).
    """
    views = [live.view(name) for name in live.server.workloads]
    carried = {(view.queue, view.back_off) for view in views if view.back_off}
    for (name, namespace), back_off in live.engine.returned.known:
        if (name, back_off) not in carried:
            restarted.engine.apply(SetBackOff(name, namespace, back_off))
    gained = live.engine.returned.gained
    for uid in sorted(gained | restarted.engine.returned.gained):
        restarted.engine.apply(GainReservation(uid) if uid in gained else UseReservation(uid))


@many
@seeds
def test_a_restart_at_rest_changes_no_decision(seed: int) -> None:
    random = Random(seed)

    async def history() -> None:
        queues = policies(random)
        live = Controller(Server(), queues)
        restarted = Controller(live.server.copy(), queues)
        for number in range(STEPS):
            happens = step(random, number, live)
            await asyncio.gather(take(live, happens), take(restarted, happens))
            assert restarted.decisions() == live.decisions()
            live.agrees()
            if random.random() < 0.5:
                await restarted.kill()
                restarted = Controller(live.server.copy(), queues)
                remember(live, restarted)
                await quiet()
                assert restarted.decisions() == live.decisions(), "right after the restart"
                restarted.agrees()
        await live.kill()
        await restarted.kill()

    run(history())


@many
@seeds
@example(seed=116222359)  # a late write names a later generation of a reservation that was taken over
def test_whatever_is_lost_or_late_the_statuses_come_to_say_what_the_engine_knows(seed: int) -> None:
    random = Random(seed)

    async def history() -> None:
        queues = policies(random)
        server = Server()
        controller = Controller(server, queues)
        for number in range(STEPS):
            server.fate = lambda: random.choice(FAULTS) if random.random() < 0.3 else Fate.DONE
            happens = step(random, number, controller)
            try:
                done = happens(controller)
                if done is not None:
                    await done
                await quiet(random.choice([0.0, 0.005, 0.015, 0.03, 1.0]))
            except Exception:  # noqa: BLE001, S110  # what fails is tried again by a work queue, as a later step here
                pass
            within_quota(controller)
            if random.random() < 0.3:
                await controller.kill()
                controller = Controller(server, queues)
        server.fate = lambda: Fate.DONE
        await quiet(RECOVERY_SECONDS)
        await take(controller, lambda _: None)
        controller.agrees()
        restarted = Controller(server.copy(), queues)
        await quiet()
        assert restarted.decisions() == controller.decisions(), "once more"
        await controller.kill()
        await restarted.kill()

    run(history())

"""A controller that starts knows how often each Workload was evicted, and when it may be again."""

from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.restarts.server import Server
from tests.restarts.team import Controller, asks, queue, quiet

QUEUES = [
    queue("owner", 4, reclaimWithinCohort="Any"),
    queue("lends", 0, maxEvictionsPerWorkload={"count": 1, "per": "60s"}),
]


async def arrives(controller: Controller, name: str, queue_name: str) -> None:
    controller.server.submit(name, asks(queue_name, 4))
    await quiet(1.5)


async def evicted_once() -> Controller:
    """`borrower` is evicted for `first`, and runs again once that has ended."""
    controller = Controller(Server(), QUEUES)
    await arrives(controller, "borrower", "lends")
    await arrives(controller, "first", "owner")
    assert controller.view("borrower").evicting
    await controller.gone("borrower")
    await quiet(1)
    controller.finish("first")
    await quiet(1)
    assert "borrower" in controller.admitted()
    return controller


def test_a_restart_in_the_middle_of_a_window_keeps_to_it_and_wakes_at_its_end() -> None:
    async def story() -> None:
        before = await evicted_once()
        (evicted,) = before.view("borrower").evictions
        await arrives(before, "second", "owner")
        told = before.view("second").status
        assert told["reason"] == "EvictionsLimited"
        assert "a Workload of ClusterQueue lends that would make room was evicted 1 time within 1m" in str(
            told["message"]
        )
        await before.kill()

        after = Controller(before.server, QUEUES)
        await quiet(evicted + 58 - clock().timestamp())
        assert not after.view("borrower").evicting
        assert after.view("second").status == told, "nothing is written anew"
        await quiet(4)
        assert after.view("borrower").evicting, "it is woken at that time"
        assert len(after.view("borrower").evictions) == 2
        assert after.view("borrower").evictions[1] >= evicted + 60
        await after.kill()

    run(story())


def test_without_a_restart_it_is_the_same() -> None:
    async def story() -> None:
        controller = await evicted_once()
        (evicted,) = controller.view("borrower").evictions
        await arrives(controller, "second", "owner")
        await quiet(evicted + 58 - clock().timestamp())
        assert not controller.view("borrower").evicting
        await quiet(4)
        assert controller.view("borrower").evicting
        await controller.kill()

    run(story())

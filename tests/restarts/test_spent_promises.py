"""A controller that starts keeps the places that are promised still, and no other."""

from tests.apiserver.loop import run
from tests.apiserver.server import Fate
from tests.restarts.server import Server
from tests.restarts.team import Controller, asks, queue, quiet

Q = [queue("q", 4, withinClusterQueue="LowerPriority")]


async def arrives(server: Server, name: str, priority: str = "", cpu: int = 4) -> None:
    server.submit(name, asks("q", cpu, priority))
    await quiet()


async def makes_room(controller: Controller, name: str) -> None:
    assert controller.view(name).evicting
    await controller.gone(name)
    await quiet()


def test_a_place_that_was_taken_and_lost_again_is_not_promised_by_a_restart() -> None:
    async def story() -> None:
        server = Server()
        first = Controller(server, Q)
        await arrives(server, "v", "low")
        await arrives(server, "p")
        await makes_room(first, "v")
        await arrives(server, "h1", "high")
        await makes_room(first, "p")
        await arrives(server, "h2", "high")
        assert first.admitted() == {"h1"}
        assert (first.view("v").preemption or first.view("h1")).key == ("team", "p"), "what v was evicted for"
        await first.kill()
        server.drop("h1")
        second = Controller(server, Q)
        await quiet()
        assert second.admitted() == {"h2"}, "p has lost its place long ago"
        assert second.view("p").preempted is not None
        second.agrees()
        await second.kill()

    run(story())


def test_a_place_that_is_promised_still_is_kept_with_what_makes_room_for_it() -> None:
    async def story() -> None:
        server = Server()
        first = Controller(server, Q)
        await arrives(server, "a", cpu=2)
        await arrives(server, "b", cpu=2)
        await arrives(server, "big", "high")
        await makes_room(first, "a")
        await first.kill()
        second = Controller(server, Q)
        await arrives(server, "small", cpu=2)
        assert second.admitted() == {"b"}, "what a has left is promised to big"
        second.agrees()
        await makes_room(second, "b")
        assert second.admitted() == {"big"}
        assert second.view("big").reservation.admission is None
        await second.kill()

    run(story())


def test_a_place_that_was_given_up_is_not_promised_by_a_restart() -> None:
    """The preemptor asks for something else while its victim still ends, and then for the same again."""

    async def story() -> None:
        server = Server()
        first = Controller(server, Q)
        await arrives(server, "v")
        await arrives(server, "p", "high")
        server.change("p", {"active": False})
        await quiet()
        assert first.view("p").reservation.generation == 2, (
            "whatever it gets later was not made by what went for it"
        )
        assert first.view("p").reservation.admission is None
        await first.kill()
        server.change("p", {"active": True})
        server.submit("urgent", asks("q", 4, "urgent"))
        second = Controller(server, Q)
        await quiet()
        assert set(second.engine.ledger.pending_reservations) == {second.view("urgent").uid}
        second.agrees()
        await makes_room(second, "v")
        assert second.admitted() == {"urgent"}
        await second.kill()

    run(story())


def test_a_reservation_with_a_lost_write_is_known_from_what_makes_room() -> None:
    async def story() -> None:
        server = Server()
        first = Controller(server, Q)
        await arrives(server, "v")
        writes = iter([Fate.DONE, Fate.LOST])  # the eviction, and then the place
        server.fate = lambda: next(writes, Fate.LOST)
        server.submit("p", asks("q", 4, "high"))
        await quiet(0.5)
        assert first.view("v").evicting
        assert first.view("p").reservation.generation == 0
        await first.kill()
        server.fate = lambda: Fate.DONE
        second = Controller(server, Q)
        await quiet()
        assert second.view("p").reservation.generation == 1
        second.agrees()
        await makes_room(second, "v")
        assert second.admitted() == {"p"}
        await second.kill()

    run(story())


def test_what_is_evicted_for_a_place_that_is_void_leaves_its_quota_to_the_next_one() -> None:
    """Otherwise a restart would evict another one, though enough is about to be free."""

    async def story() -> None:
        queues = [queue("q", 4, withinClusterQueue="LowerPriority")]
        server = Server()
        first = Controller(server, queues)
        await arrives(server, "old", cpu=2)
        await arrives(server, "new", cpu=2)
        await arrives(server, "p", "high", cpu=2)
        assert [name for name in ("old", "new") if first.view(name).evicting] == ["new"]
        server.drop("p")
        await quiet()
        await first.kill()
        server.submit("next", asks("q", 2, "high"))
        second = Controller(server, queues)
        await quiet()
        assert not second.view("old").evicting, "new goes already"
        second.agrees()
        await makes_room(second, "new")
        assert second.admitted() == {"old", "next"}
        await second.kill()

    run(story())


def test_a_place_for_which_nothing_is_evicted_is_kept_too() -> None:
    """What v leaves is enough for p and for heir, which wait for the same pods to end."""

    async def story() -> None:
        server = Server()
        first = Controller(server, Q)
        await arrives(server, "v", cpu=4)
        await arrives(server, "p", "high", cpu=2)
        await arrives(server, "heir", cpu=2)
        assert first.view("heir").reservation.admission is not None
        await first.kill()
        second = Controller(server, Q)
        await quiet()
        second.agrees()
        assert second.view("heir").uid in second.engine.ledger.pending_reservations
        await makes_room(second, "v")
        assert second.admitted() == {"p", "heir"}
        await second.kill()

    run(story())


def test_what_was_told_to_go_stays_if_the_place_was_given_up_while_no_controller_ran() -> None:
    patient = [queue("q", 4, withinClusterQueue="LowerPriority", gracePeriod="1h")]

    async def story() -> None:
        server = Server()
        first = Controller(server, patient)
        await arrives(server, "v")
        await arrives(server, "p", "high")
        assert first.view("v").evict_at is not None
        server.fate = lambda: Fate.REFUSED  # neither the end of the place nor that of the grace is written
        server.change("p", {"active": False})
        await quiet(0.5)
        await first.kill()
        server.fate = lambda: Fate.DONE
        second = Controller(server, patient)
        await quiet()
        assert second.view("v").evict_at is None
        second.agrees()
        await second.kill()

    run(story())


def test_what_was_told_to_go_for_one_and_goes_for_another_says_so() -> None:
    """urgent takes over the place of large; large competes anew, and gets another one, with that of small."""
    patient = [queue("q", 8, withinClusterQueue="LowerPriority", gracePeriod="1h")]

    async def story() -> None:
        server = Server()
        first = Controller(server, patient)
        await arrives(server, "least", "low", cpu=2)
        await arrives(server, "small", cpu=1)
        await arrives(server, "large", "high", cpu=7)
        await arrives(server, "urgent", "urgent", cpu=1)
        assert first.admitted() == {"least", "small", "urgent"}
        preemption, until = first.view("small").preemption, first.view("small").evict_at
        assert preemption is not None
        assert (preemption.key, preemption.generation) == (("team", "large"), 2)
        first.agrees()
        await first.kill()
        second = Controller(server, patient)
        await quiet()
        second.agrees()
        assert second.view("small").preemption == preemption, "its eviction is not cancelled"
        assert second.view("small").evict_at == until
        await second.kill()

    run(story())


def test_what_still_goes_for_a_place_that_is_taken_already_does_not_take_it_back() -> None:
    """p gets in when `ends` does, before the pods of v have ended: v is displaced by p all the same."""
    queues = [
        queue("a", 4, withinClusterQueue="LowerPriority", reclaimWithinCohort="Any"),
        queue("b", 4, reclaimWithinCohort="Any"),
    ]

    async def story() -> None:
        server = Server()
        first = Controller(server, queues)
        for name, cpu in (("ends", 4), ("v", 4)):
            server.submit(name, asks("a", cpu))
            await quiet()
        server.submit("p", asks("b", 3))
        await quiet()
        assert first.view("v").evicting
        first.finish("ends")
        await quiet()
        assert first.admitted() == {"v", "p"}
        promised = first.engine.ledger.displacements.preemptor(first.view("v").uid)
        await first.kill()
        second = Controller(server, queues)
        await quiet()
        assert second.engine.ledger.displacements.preemptor(second.view("v").uid) == promised
        await second.kill()

    run(story())

"""A controller that starts knows for which namespaces nothing is evicted, and until when."""

import pytest

from admitter.cache.pod_views import parse_pod
from admitter.names import CLUSTER_QUEUE_LABEL, WORKLOAD_LABEL, WORKLOAD_UID_ANNOTATION
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.restarts.server import TEAM, Server
from tests.restarts.team import Controller, Json, asks, queue, quiet, thing

QUEUES = [queue("owner", 4, reclaimWithinCohort="Any"), queue("lends", 0)]
PAIR = ("owner", TEAM)


async def arrives(server: Server, name: str, queue_name: str = "owner", cpu: int = 4) -> None:
    server.submit(name, asks(queue_name, cpu))
    await quiet(1.5)


async def given_back(controller: Controller, name: str = "unused") -> None:
    """A Workload evicts `borrower`, and is deleted at once; then `borrower` runs again."""
    server = controller.server
    await arrives(server, name)
    assert controller.view("borrower").evicting
    server.drop(name)
    await quiet(1)
    await controller.gone("borrower")
    await quiet(1)
    assert controller.admitted() == {"borrower"}


async def begun() -> Controller:
    controller = Controller(Server(), QUEUES)
    await arrives(controller.server, "borrower", "lends")
    return controller


def test_what_waits_says_until_when_and_evicts_then() -> None:
    async def story() -> None:
        controller = await begun()
        await given_back(controller)
        await arrives(controller.server, "waits")
        view = controller.view("waits")
        assert view.status["reason"] == "PreemptionBackedOff"
        assert view.back_off is not None
        assert view.back_off.count == 1
        assert 5 < view.back_off.until - clock().timestamp() < 10
        assert "a place gained by eviction was given back unused: evicts again after 00:00:1" in str(
            view.status["message"]
        )
        await quiet(view.back_off.until - clock().timestamp() + 1)
        assert controller.view("borrower").evicting
        await quiet()
        assert controller.view("waits").back_off is None
        await controller.kill()

    run(story())


def test_a_restart_keeps_to_the_back_off_that_something_waits_for() -> None:
    async def story() -> None:
        first = await begun()
        await given_back(first)
        await arrives(first.server, "waits")
        before = first.view("waits").back_off
        await first.kill()
        second = Controller(first.server, QUEUES)
        await quiet(1)
        assert before is not None
        assert second.engine.returned.of(*PAIR) == before
        assert not second.view("borrower").evicting
        assert second.view("waits").back_off == before
        await quiet(before.until - clock().timestamp() + 1)
        assert second.view("borrower").evicting, "it is woken at that time"
        second.server.drop("waits")
        await quiet(1)
        after = second.engine.returned.of(*PAIR)
        assert after is not None
        assert after.count == 2, "it has counted on"
        await second.kill()

    run(story())


def test_a_restart_forgets_what_nothing_waits_for() -> None:
    """docs/design/preemption.md says so."""

    async def story() -> None:
        first = await begun()
        await given_back(first)
        await first.kill()
        second = Controller(first.server, QUEUES)
        await arrives(second.server, "next")
        assert second.view("borrower").evicting
        await second.kill()

    run(story())


def test_a_place_that_was_promised_before_the_restart_counts_if_it_is_given_back_after_it() -> None:
    async def story() -> None:
        first = await begun()
        await arrives(first.server, "unused")
        assert first.view("borrower").evicting
        await first.kill()
        second = Controller(first.server, QUEUES)
        second.server.drop("unused")
        await quiet(1)
        assert second.engine.returned.of(*PAIR) is not None
        await second.kill()

    run(story())


def test_so_does_one_that_was_taken_before_the_restart() -> None:
    async def story() -> None:
        first = await begun()
        await arrives(first.server, "unused")
        await first.gone("borrower")
        await quiet(1)
        assert first.admitted() == {"unused"}
        await first.kill()
        second = Controller(first.server, QUEUES)
        second.server.drop("unused")
        await quiet(1)
        assert second.engine.returned.of(*PAIR) is not None
        await second.kill()

    run(story())


def test_to_pause_counts_and_a_stopped_queue_does_not() -> None:
    async def story() -> None:
        for stops in (True, False):
            controller = await begun()
            await arrives(controller.server, "unused")
            if stops:
                stopped = queue("owner", 4, reclaimWithinCohort="Any")
                stopped["spec"]["stopPolicy"] = "Hold"
                stopped["metadata"]["resourceVersion"] = "2"
                controller._define([stopped])
            else:
                controller.server.change("unused", {"active": False})
            await quiet(1)
            assert not controller.engine.ledger.pending_reservations
            assert (controller.engine.returned.of(*PAIR) is None) is stops
            await controller.kill()

    run(story())


def test_to_pause_what_has_been_admitted_counts_once() -> None:
    async def story() -> None:
        controller = await begun()
        await arrives(controller.server, "unused")
        await controller.gone("borrower")
        await quiet(1)
        controller.server.change("unused", {"active": False})
        await quiet(1)
        await controller.stop_what_must()
        await quiet(1)
        await controller.gone("unused")
        await quiet(1)
        controller.server.drop("unused")
        await quiet(1)
        back_off = controller.engine.returned.of(*PAIR)
        assert back_off is not None
        assert back_off.count == 1
        await controller.kill()

    run(story())


class WithPod(Controller):
    """One that knows of a pod of the Workload `unused`."""

    phase = "Running"

    def _define(self, queues: list[Json]) -> None:
        super()._define(queues)
        if "unused" in self.server.workloads:
            self.pod_comes()

    def pod_comes(self) -> None:
        labels = {WORKLOAD_LABEL: "unused", CLUSTER_QUEUE_LABEL: "owner"}
        metadata = thing("unused-pod", {}, TEAM)["metadata"] | {"labels": labels}
        metadata["annotations"] = {WORKLOAD_UID_ANNOTATION: self.view("unused").uid}
        pod = {"metadata": metadata, "spec": {"containers": []}, "status": {"phase": self.phase}}
        self.world.pods.apply(parse_pod(pod))


class WithPendingPod(WithPod):
    """Its pod waits for a node."""

    phase = "Pending"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("kind", "counts"), [(WithPod, False), (WithPendingPod, True)])
def test_a_place_is_used_once_a_pod_of_it_has_run(kind: type[WithPod], restarts: bool, counts: bool) -> None:
    async def story() -> None:
        first = kind(Server(), QUEUES)
        server = first.server
        await arrives(server, "borrower", "lends")
        await arrives(server, "unused")
        await first.gone("borrower")
        await quiet(1)
        assert first.admitted() == {"unused"}
        last: WithPod = first
        if restarts:
            await first.kill()
            last = kind(server, QUEUES)
        else:
            first.pod_comes()
        server.drop("unused")
        await quiet(1)
        assert (last.engine.returned.of(*PAIR) is not None) is counts
        await last.kill()

    run(story())


def test_what_is_deleted_while_a_drained_queue_stops_it_gives_nothing_back() -> None:
    async def story() -> None:
        controller = await begun()
        await arrives(controller.server, "unused")
        await controller.gone("borrower")
        await quiet(1)
        drained = queue("owner", 4, reclaimWithinCohort="Any")
        drained["spec"]["stopPolicy"] = "HoldAndDrain"
        drained["metadata"]["resourceVersion"] = "2"
        controller._define([drained])
        await quiet(1)
        await controller.stop_what_must()
        await quiet(1)
        assert controller.view("unused").evicting
        controller.server.drop("unused")
        await quiet(1)
        assert controller.engine.returned.of(*PAIR) is None
        await controller.kill()

    run(story())

"""Which Leases are renewed, whatever the clocks of the controllers and of this machine say."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from admitter.client.errors import UnreachableError, api_error
from admitter.election.leases import HANDED_OVER, LEASES, Clocks
from admitter.insight.controller_status import ControllerState, ControllerStatus
from admitter.insight.lease_watch import LAPSE_SECONDS, MOST_SHARDS, PACE_SECONDS, LeaseWatch
from tests.apiserver.loop import run
from tests.apiserver.server import ApiServer, clock

Json = dict[str, Any]
ABSENT, LEADING, UNKNOWN = ControllerState.ABSENT, ControllerState.LEADING, ControllerState.UNKNOWN


def stamped(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Cluster:
    """An API server with Leases, and a machine with a clock that is behind it by some seconds.

    Attributes:
        server: has the Leases.
        behind: by how many seconds this machine's clock is behind that of the controllers.
        refusal: raised at each read; None: none.
        reads: how many there were.
    """

    def __init__(self, behind: float = 0.0) -> None:
        self.server = ApiServer()
        self.server.make("/api/v1/namespaces", {"metadata": {"name": "admitter-system"}})
        self.behind = behind
        self.refusal: Exception | None = None
        self.reads = 0
        self.metrics = self.server.metrics
        loop = asyncio.get_running_loop()
        clocks = Clocks(loop.time, lambda: clock() - timedelta(seconds=self.behind), asyncio.sleep)
        self.watch = LeaseWatch(self, clocks)  # type: ignore[arg-type]  # it only reads

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        self.reads += 1
        if self.refusal is not None:
            raise self.refusal
        return await self.server.get(path, query)

    def lease(
        self, shard: int = 0, shards: int = 1, holder: str = "pod_1", age: float = 0.0, duration: float = 2
    ) -> None:
        """Make a Lease that was renewed some seconds ago."""
        then = stamped(clock() - timedelta(seconds=age))
        metadata: Json = {
            "name": f"admitter-controller-shard-{shard}" if shard else "admitter-controller",
            "labels": {"app.kubernetes.io/part-of": "admitter", "admitter.dev/shard": str(shard)},
            "annotations": {"admitter.dev/shards": str(shards)},
        }
        if not holder:
            metadata["annotations"][HANDED_OVER] = "pod_0"
        spec = {"leaseDurationSeconds": duration, "holderIdentity": holder}
        self.server.make(
            LEASES, {"metadata": metadata, "spec": spec | {"acquireTime": then, "renewTime": then}}
        )

    def renew(self, name: str = "admitter-controller") -> None:
        self.server.write(f"{LEASES}/{name}", {"spec": {"renewTime": stamped(clock())}})

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """A controller that renews the Lease, as often as it does."""

        async def renew() -> None:
            while True:
                self.renew()
                await asyncio.sleep(0.4)

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()


def settled(behind: float, *prepare: Callable[[Cluster], None]) -> tuple[ControllerStatus, float, int]:
    """What is known in the end, after how many seconds and reads."""

    async def main() -> tuple[ControllerStatus, float, int]:
        cluster, loop = Cluster(behind), asyncio.get_running_loop()
        for each in prepare:
            each(cluster)
        began = loop.time()
        return await cluster.watch.settle(), loop.time() - began, cluster.reads

    return run(main())


def test_without_a_lease_one_look_is_enough() -> None:
    status, took, reads = settled(0.0)
    assert (status.state, took, reads) == (ABSENT, 0.0, 1)
    assert not status.shards[0].exists


def test_a_lease_that_is_fresh_by_this_clock_too_needs_one_look() -> None:
    status, took, reads = settled(0.0, lambda cluster: cluster.lease(age=0.5))
    assert (status.state, took, reads) == (LEADING, 0.0, 1)
    assert (status.shards[0].holder, status.shards[0].since) == ("pod_1", status.shards[0].renewed)


def test_a_lease_that_is_old_by_far_is_watched_for_a_second() -> None:
    status, took, _ = settled(0.0, lambda cluster: cluster.lease(age=240.0))
    assert status.state is ABSENT
    assert 1.0 <= took < 1.4


@pytest.mark.parametrize("age", [4.0, 20.0])
def test_a_lease_that_may_be_late_by_its_clock_is_watched_for_its_duration(age: float) -> None:
    status, took, _ = settled(0.0, lambda cluster: cluster.lease(age=age))
    assert status.state is ABSENT
    assert 3.0 <= took < 3.4


@pytest.mark.parametrize("behind", [-3600.0, -20.0, -5.0, 5.0, 20.0, 3600.0])
def test_a_controller_that_renews_leads_whatever_the_clocks_say(behind: float) -> None:
    async def main() -> tuple[ControllerState, float]:
        cluster, loop = Cluster(behind), asyncio.get_running_loop()
        cluster.lease()
        async with cluster.renewing():
            began = loop.time()
            return (await cluster.watch.settle()).state, loop.time() - began

    state, took = run(main())
    assert state is LEADING
    assert took < 1.0


def test_a_clock_that_is_behind_makes_no_leader_of_a_dead_one() -> None:
    status, _, _ = settled(60.0, lambda cluster: cluster.lease(age=20.0))
    assert status.state is ABSENT


def test_a_duration_that_a_user_has_written_keeps_no_dead_controller_alive() -> None:
    status, took, _ = settled(0.0, lambda cluster: cluster.lease(age=10.0, duration=10**9))
    assert status.state is ABSENT
    assert took < 7.0


def test_a_lease_that_is_handed_over_and_not_taken_names_who_left() -> None:
    status, took, _ = settled(0.0, lambda cluster: cluster.lease(holder="", age=0.1))
    (lease,) = status.shards
    assert (status.state, lease.released, lease.holder, lease.since) == (ABSENT, True, "pod_0", None)
    assert took >= 3.0, "another controller may be about to take it"


def test_shards_that_are_missing_or_not_renewed_are_found() -> None:
    def shards(cluster: Cluster) -> None:
        cluster.lease(0, 3)
        cluster.lease(2, 3, age=60.0)

    async def main() -> ControllerStatus:
        cluster = Cluster()
        shards(cluster)
        async with cluster.renewing():
            return await cluster.watch.settle()

    status = run(main())
    assert status.state is ControllerState.PARTIAL
    assert [(each.alive, each.exists) for each in status.shards] == [
        (True, True),
        (False, False),
        (False, True),
    ]


def test_the_number_of_shards_is_that_of_the_living() -> None:
    def shards(cluster: Cluster) -> None:
        cluster.lease(0, 2, age=0.1)
        cluster.lease(1, 2, age=0.1)
        cluster.lease(3, 4, age=60.0)

    assert settled(0.0, shards)[0].count == 2
    assert settled(0.0, lambda cluster: cluster.lease(0, 10**17, age=0.1))[0].count == MOST_SHARDS


def test_leases_that_may_not_be_read_are_asked_for_once() -> None:
    def deny(cluster: Cluster) -> None:
        cluster.refusal = api_error(403, {"message": "leases is forbidden: tina cannot list"})

    status, took, reads = settled(0.0, deny)
    assert (status.state, status.problem, took, reads) == (
        UNKNOWN,
        "leases is forbidden: tina cannot list",
        0.0,
        1,
    )


def test_a_controller_that_dies_and_one_that_follows_are_seen() -> None:
    async def main() -> list[ControllerState]:
        cluster = Cluster()
        cluster.lease()
        states = []
        following = asyncio.create_task(cluster.watch.follow())
        async with cluster.renewing():
            await asyncio.sleep(4 * PACE_SECONDS)
            states.append(cluster.watch.status().state)
        await asyncio.sleep(3 * PACE_SECONDS)
        states.append(cluster.watch.status().state)
        async with cluster.renewing():
            await asyncio.sleep(PACE_SECONDS)
            states.append(cluster.watch.status().state)
        following.cancel()
        return states

    assert run(main()) == [LEADING, ABSENT, LEADING]


def test_while_the_api_server_is_away_nothing_is_held_against_a_controller() -> None:
    """No controller can renew its Lease then; after that it gets time to."""

    async def main() -> list[ControllerState]:
        cluster = Cluster()
        cluster.lease()
        await cluster.watch.look()
        states = [cluster.watch.status().state]
        cluster.refusal = UnreachableError("no connection")
        await asyncio.sleep(PACE_SECONDS)
        await cluster.watch.look()
        states.append(cluster.watch.status().state)
        await asyncio.sleep(60.0)
        cluster.refusal = None
        await cluster.watch.look()
        states.append(cluster.watch.status().state)
        await asyncio.sleep(0.4)
        cluster.renew()
        await cluster.watch.look()
        return [*states, cluster.watch.status().state]

    assert run(main()) == [LEADING, UNKNOWN, UNKNOWN, LEADING]


def test_a_machine_that_slept_begins_anew() -> None:
    async def main() -> ControllerState:
        cluster = Cluster()
        cluster.lease()
        await cluster.watch.look()
        await asyncio.sleep(2 * LAPSE_SECONDS)
        await cluster.watch.look()
        return cluster.watch.status().state

    assert run(main()) is UNKNOWN

"""The claim to lead is kept in a thread of its own, whatever the event loop is busy with."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, cast

from admitter.client.errors import api_error
from admitter.client.transport import HttpTransport
from admitter.election.elector_thread import ElectorThread
from admitter.election.lease_lock import Term
from admitter.election.leases import HANDED_OVER, LEASES, LeaseSettings
from tests.patience import PATIENCE_SECONDS

Json = dict[str, Any]
SETTINGS = LeaseSettings(duration=1, margin=0.5, renewal=0.05, look=0.02)
NAME = "admitter-controller"


class Server:
    """Keeps a Lease for callers of any thread.

    Attributes:
        lease: as it is.
        threads: the names of those that have called.
        broken: whether calls fail as no cluster makes them fail.
    """

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.threads: set[str] = set()
        self.broken = False
        self._lock = threading.Lock()
        self._version = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def get(self, path: str, _query: Mapping[str, str] | None = None) -> Json:
        self.threads.add(threading.current_thread().name)
        if self.broken:
            raise ValueError("a defect")
        if path == LEASES:
            return {"items": [] if self.lease is None else [self.lease]}
        assert self.lease is not None
        return self.lease

    async def create(self, _path: str, body: Json) -> Json:
        return self._write(body["spec"], {})

    async def patch(self, _path: str, body: Json) -> Json:
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise api_error(409, {})
        return self._write(self.lease["spec"] | body["spec"], body["metadata"].get("annotations", {}))

    def takes(self, holder: str) -> None:
        """Another process takes the Lease."""
        assert self.lease is not None
        self._write(self.lease["spec"] | {"holderIdentity": holder}, {})

    def _write(self, spec: Json, annotations: Json) -> Json:
        with self._lock:
            self._version += 1
            metadata = {"name": NAME, "resourceVersion": str(self._version), "annotations": annotations}
            self.lease = {"metadata": metadata, "spec": spec}
            return self.lease

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease is not None else ""


class Claim:
    """A claim to the only shard."""

    def __init__(self, leadership: ElectorThread) -> None:
        self._leadership = leadership
        self._won: asyncio.Future[Term] = asyncio.get_running_loop().create_future()
        self.permit, self.lost = leadership.permit, leadership.lost
        self.wanted_by_others: list[int] = []

    async def win(self) -> Term:
        self._leadership.start(self)
        return await self._won

    async def resign(self, *, clean: bool) -> None:
        await self._leadership.resign(clean=[0] if clean else [])

    def acquired(self, shard: int, term: Term) -> None:
        assert threading.current_thread() is threading.main_thread(), "told in the loop that asked"
        assert shard == 0
        self._won.set_result(term)

    def release_requested(self, shard: int) -> None:
        self.wanted_by_others.append(shard)

    def leases_refreshed(self) -> None:
        """Nothing follows."""


@asynccontextmanager
async def claiming(server: Server, identity: str = "me") -> AsyncIterator[Claim]:
    """A claim, given up at the end of the block."""

    async def connect() -> HttpTransport:
        return cast("HttpTransport", server)

    claim = Claim(ElectorThread(connect, identity, 1, SETTINGS))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield claim
    finally:
        await claim.resign(clean=False)
    assert claim.wanted_by_others == [], "no other process wants it"


async def test_the_lead_is_kept_while_the_event_loop_is_busy() -> None:
    server = Server()
    async with claiming(server) as claim:
        assert await claim.win() == Term(handed_over=False)
        assert server.lease is not None
        before = server.lease["metadata"]["resourceVersion"]
        time.sleep(2 * SETTINGS.duration)  # noqa: ASYNC251  # this is how busy it is
        await asyncio.wait_for(claim.permit(), 0.5)
        assert server.lease["metadata"]["resourceVersion"] != before
    assert server.threads == {"elector"}


async def test_nothing_may_be_written_before_the_lead_is_won() -> None:
    server = Server()
    async with claiming(server, "first") as first, claiming(server, "second") as second:
        await first.win()
        winning = asyncio.create_task(second.win())
        permitted = asyncio.create_task(second.permit())
        await asyncio.wait([winning, permitted], timeout=2 * SETTINGS.duration)
        assert not winning.done()
        assert not permitted.done()
        await first.resign(clean=True)
        assert await winning == Term(handed_over=True)
        await permitted


async def test_a_process_that_lost_the_lead_is_told_and_writes_nothing() -> None:
    server = Server()
    async with claiming(server) as claim:
        await claim.win()
        server.takes("other")
        await claim.lost()
        permitted = asyncio.create_task(claim.permit())
        await asyncio.wait([permitted], timeout=0.2)
        assert not permitted.done()
        permitted.cancel()
    assert server.holder == "other", "it is not given up for the other"


async def test_a_lease_is_handed_over_only_when_no_write_is_in_flight() -> None:
    for clean, holder in ((True, ""), (False, "me")):
        server = Server()
        async with claiming(server) as claim:
            await claim.win()
            await claim.resign(clean=clean)
            assert server.lease is not None
            assert server.holder == holder
            assert (HANDED_OVER in server.lease["metadata"]["annotations"]) == clean


async def test_a_claim_can_be_given_up_before_it_is_made_and_while_another_leads() -> None:
    server = Server()
    async with claiming(server, "first") as first, claiming(server, "second") as second, claiming(server):
        await first.win()
        winning = asyncio.create_task(second.win())
        await asyncio.sleep(0)
        await second.resign(clean=False)
        assert server.holder == "first"
        winning.cancel()


async def test_an_elector_that_fails_ends() -> None:
    server = Server()
    server.broken = True
    async with claiming(server) as claim:
        winning = asyncio.create_task(claim.win())
        await claim.lost()
        assert not winning.done()
        winning.cancel()

"""What else decides about Jobs when they are made: the policies of the API server, and Kueue.

The API server is asked. Policies and Kueue may come and go while the controller runs, so it looks again now
and then; a watch is no way: older servers lack the kinds.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from admitter.cache.timestamps import seconds
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.policies import GROUP as ADMISSION
from admitter.client.policies import MUTATING, NOT_SERVED, VERSIONS, mutating_version
from admitter.client.transport import Transport
from admitter.names import MAKERS_POLICY, PLACEMENT_POLICY, SUSPEND_POLICY
from admitter.policy.placement_policies import NOTICE_SECONDS
from admitter.policy.status import Clock

KUEUE: Final = "/apis/kueue.x-k8s.io"
LOOKED_AGAIN_SECONDS: Final = 10.0

_MISSING: Final = {
    SUSPEND_POLICY: (
        "the API server has no policy that suspends queued Jobs at creation: the controller "
        "alone guards, and suspends a moment later what was created running"
    ),
    MAKERS_POLICY: (
        "the API server has no policy that records the user of a Job: what Jobs say of their user is believed"
    ),
    PLACEMENT_POLICY: (
        "the API server has no policy that suspends Jobs until a rule has placed them: the controller does "
        "so a moment later"
    ),
}

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Presence:
    """When an object was there, as far as this process has looked.

    `look` says since when it is there, in seconds since the epoch, or None if it is not.
    """

    look: Callable[[], Awaitable[float | None]]
    clock: Clock
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _since: float | None = None
    _looked: float = -math.inf
    _ended: list[tuple[float, float]] = field(default_factory=list)

    async def at(self, moment: float) -> bool:
        """Whether it was there at a moment, in seconds since the epoch.

        What has been seen counts when it is gone too: what was made under it does not change by that.
        """
        async with self._lock:
            now = self.clock().timestamp()
            if now - self._looked >= LOOKED_AGAIN_SECONDS:
                since = await self.look()
                if self._since is not None and since != self._since:
                    self._ended.append((self._since, self._looked))
                self._since, self._looked = since, now
        if self._since is not None and self._since <= moment:
            return True
        return any(since <= moment <= until for since, until in self._ended)


def marking(transport: Transport, clock: Clock) -> Presence:
    """When the API server marked the Jobs made then that were a PlacementPolicy's.

    The mark on a Job counts for nothing: without the policies a user could write it. The API server has taken
    notice of the policy, and of what puts it into force, a while after their creation.
    """

    async def look() -> float | None:
        for version in VERSIONS:
            paths = [
                f"/apis/{ADMISSION}/{version}/{plural}/{PLACEMENT_POLICY}" for plural in MUTATING.values()
            ]
            try:
                found = [await transport.get(path) for path in paths]
            except NotFoundError:
                continue
            return max(seconds(each["metadata"]["creationTimestamp"]) for each in found) + NOTICE_SECONDS
        return None

    return Presence(look, clock)


def kueue(transport: Transport, clock: Clock) -> Presence:
    """When a Job made then with the label of Kueue is Kueue's.

    When Kueue came does not matter: before that no Job had its label.
    """

    async def look() -> float | None:
        try:
            await transport.get(KUEUE)
        except NotFoundError:
            return None
        return -math.inf

    return Presence(look, clock)


async def say_what_is_missing(transport: Transport) -> str:
    """Say which policies the API server lacks; returns that it has none of their kind, if it is so."""
    try:
        version = await mutating_version(transport)
        if version is None:
            log.warning(NOT_SERVED)
            return NOT_SERVED
        for name, words in _MISSING.items():
            try:
                await transport.get(f"/apis/{ADMISSION}/{version}/mutatingadmissionpolicies/{name}")
            except NotFoundError:
                log.warning(words, policy=name)
    except ClusterError as error:
        log.warning("can't tell which policies are installed", error=str(error))
    return ""

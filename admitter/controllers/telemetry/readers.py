"""Which users may read the metrics: those that may get the path `/metrics`, as the API server says.

Metrics name queues, namespaces and what these use, and every pod of a cluster can reach the port.
"""

import ipaddress
from typing import Final

from aiohttp import web

from admitter.client.access import Access, TooManyTokensError, bearer
from admitter.client.errors import ClusterError

PATH: Final = "/metrics"
ROLE: Final = "admitter-metrics-reader"
"""The ClusterRole that lets read them."""


def is_local(address: str) -> bool:
    """Whether only programs of the same machine, or pod, reach an address."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


class Readers:
    """Rejects requests for metrics from users that may not read them."""

    def __init__(self, access: Access) -> None:
        """`access` asks the API server."""
        self._access = access

    async def refusal(self, request: web.Request) -> web.Response | None:
        """Why a request gets no metrics; None if it gets them."""
        token = bearer(request.headers.get("Authorization", ""))
        if not token:
            return _refused(401, "a bearer token is needed: docs/metrics.md#who-may-read-them")
        try:
            user = await self._access.user(token, request.remote or "")
            if user is None:
                return _refused(401, "the API server does not know this token, or it has expired")
            if not await self._access.may_get(user, PATH):
                return _refused(403, f"{user.name} may not get {PATH}: the ClusterRole {ROLE} allows it")
        except TooManyTokensError:
            return _refused(429, "too many unknown tokens were tried: try again in a minute")
        except ClusterError as error:
            return _refused(503, f"the API server does not identify the user: {error}")
        return None


def _refused(status: int, words: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return web.Response(status=status, text=f"{words}\n", headers=headers)

"""Requests to the API server: kubernetes-asyncio's configuration, connections of our own, JSON by orjson.

The library's typed models cost about five times the CPU of a raw call, so objects travel as
plain JSON. A single call that was throttled, failed in the server or lost its connection is repeated by
`admitter.client.throttle`; a conflict never is: the writer must look at the object again.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache, partial
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson
from prometheus_client import CollectorRegistry
from typing_extensions import override

from admitter import __version__
from admitter.client.decoding import decoded
from admitter.client.errors import ClusterError, ConfigurationError, UnreachableError, api_error
from admitter.client.http import Client, HttpAnswer, HttpError, Server
from admitter.client.metrics import NO_ANSWER, CallMetrics
from admitter.client.throttle import Throttle
from admitter.names import FIELD_MANAGER

if TYPE_CHECKING:
    from admitter.client.kubeconfig import Configuration

Json = dict[str, Any]
Permit = Callable[[], Awaitable[None]]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
"""Only for kinds of Kubernetes itself: of a list of conditions it replaces those that it names."""
APPLY_PATCH: Final = "application/apply-patch+yaml"

CALL_TIMEOUT_SECONDS: Final = 30.0


class Transport(Protocol):
    """Calls to one API server, all of which raise ClusterError if it does not answer, or refuses."""

    metrics: CallMetrics

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""

    async def create(self, path: str, body: Json, query: Mapping[str, str] | None = None) -> Json:
        """Create an object; `path` is its collection."""

    async def patch(
        self, path: str, body: Json, content_type: str = MERGE_PATCH, query: Mapping[str, str] | None = None
    ) -> Json:
        """Patch an object, by default with a JSON merge patch."""

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply: create the object or take over the fields that `body` names."""
        return await self.patch(path, body, APPLY_PATCH, {"force": "true"})

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """Delete an object; `body` may carry preconditions."""

    def stream(
        self, path: str, query: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch; what it yields are pieces of the body, which has one JSON document a line.

        Raises:
            ApiError: the server refused it.
            UnreachableError: no connection, or it was lost while reading.
        """


class HttpTransport(Transport):
    """One connection pool; calls are made as the `impersonated` user, if it is not empty."""

    def __init__(
        self,
        configuration: "Configuration",
        refresher: asyncio.Task[None] | None = None,
        metrics: CallMetrics | None = None,
        *,
        repeats: bool = True,
        permit: Permit | None = None,
    ) -> None:
        """Connect at the first call.

        The refresher keeps the configuration's token fresh. Calls that the server may take later are held
        back and repeated, if it `repeats`. The permit is waited for before each attempt to write.

        Raises:
            ConfigurationError: the proxy on the way speaks something else than HTTP.
        """
        self.metrics = metrics if metrics is not None else CallMetrics(CollectorRegistry())
        self._configuration = configuration
        self.host = str(configuration.host).rstrip("/")
        name = configuration.tls_server_name or ""
        proxy = _proxy(configuration, self.host)
        self._client = Client(Server(self.host, _tls(configuration), name, proxy))
        self._throttle = Throttle() if repeats else None
        if self._throttle is not None:
            self.metrics.follow(self._throttle)
        self._refresher = refresher
        self._permit = permit
        self.impersonated = ""

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | None = None,
        context: str | None = None,
        metrics: CallMetrics | None = None,
        *,
        repeats: bool = True,
        permit: Permit | None = None,
        impersonated: str = "",
    ) -> Self:
        """Read the configuration and open a pool; the first request connects.

        By default the file is that of `KUBECONFIG`, `~/.kube/config`, or the pod's own account, and the
        context is its current one. The rest is as of the constructor.

        Raises:
            ConfigurationError: there is no such file or context, or it can't be used.
        """
        from admitter.client.kubeconfig import read  # noqa: PLC0415  # its library is slow to load

        settings, refresher = await read(kubeconfig, context)
        made = cls(settings, refresher, metrics, repeats=repeats, permit=permit)
        made.impersonated = impersonated
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._refresher is not None:
            self._refresher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refresher
        await self._client.close()

    @override
    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self._call("GET", path, query=query)

    @override
    async def create(self, path: str, body: Json, query: Mapping[str, str] | None = None) -> Json:
        return await self._call("POST", path, body, JSON, {"fieldManager": FIELD_MANAGER, **(query or {})})

    @override
    async def patch(
        self, path: str, body: Json, content_type: str = MERGE_PATCH, query: Mapping[str, str] | None = None
    ) -> Json:
        return await self._call(
            "PATCH", path, body, content_type, {"fieldManager": FIELD_MANAGER, **(query or {})}
        )

    @override
    async def delete(self, path: str, body: Json | None = None) -> Json:
        return await self._call("DELETE", path, body, JSON)

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content_type: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        data = None if body is None else orjson.dumps(body)
        once = partial(self._once, method, _with(path, query), data, content_type)
        try:
            return await (self._throttle.call(once) if self._throttle is not None else once())
        except ClusterError as error:
            if method != "GET":
                self.metrics.write_failed(path, error)
            raise

    async def _once(self, method: str, path: str, data: bytes | None, content_type: str | None) -> Json:
        headers = await self._headers(content_type)
        permit = self._permit if method != "GET" else None
        try:
            answer = await self._client.call(method, path, headers, data, CALL_TIMEOUT_SECONDS, permit)
        except (HttpError, TimeoutError, OSError) as error:
            self.metrics.called(method, path, NO_ANSWER)
            raise UnreachableError(f"{self.host} does not answer: {error or type(error).__name__}") from error
        self.metrics.called(method, path, str(answer.status))
        return _decoded(f"{method} {path}", answer)

    @override
    @contextlib.asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        headers = await self._headers(None)
        try:
            async with self._client.stream(_with(path, query), headers, CALL_TIMEOUT_SECONDS) as (
                answer,
                body,
            ):
                self.metrics.watched(path, str(answer.status))
                if answer.status != 200:
                    answer.body = b"".join([piece async for piece in body])
                    _decoded(f"GET {path}", answer)
                yield body
        except (HttpError, TimeoutError, OSError) as error:
            raise UnreachableError(f"watching {path}: {error or type(error).__name__}") from error

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"accept": JSON, "user-agent": f"admitter/{__version__}"}
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        if token:
            headers["authorization"] = token if " " in token else f"Bearer {token}"
        if self.impersonated:
            headers["impersonate-user"] = self.impersonated
        if content_type:
            headers["content-type"] = content_type
        return headers


def _with(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{_encoded(tuple(query.items()))}" if query else path


@lru_cache(maxsize=64)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """What follows the path; most calls have one of few."""
    return urlencode(query)


def _tls(configuration: "Configuration") -> ssl.SSLContext:
    """The authorities to trust, and the client's certificate, as the library has them."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _proxy(configuration: "Configuration", host: str) -> str:
    """The proxy on the way to a host, by the configuration or else the environment; empty: there is none.

    The environment's is not for hosts on the own machine, as in kubectl and all that is written in Go.
    """
    address = urlsplit(host)
    direct = _is_loopback(address.hostname or "") or proxy_bypass(address.netloc)
    of_environment = None if direct else getproxies().get(address.scheme)
    proxy = str(configuration.proxy or of_environment or "")
    if proxy and urlsplit(proxy).scheme != "http":
        without_password = proxy.rpartition("@")[2]
        raise ConfigurationError(f"proxy {without_password}: can be reached by http:// only")
    return proxy


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _decoded(request: str, answer: HttpAnswer) -> Json:
    try:
        body = decoded(answer.body) if answer.body else {}
    except ValueError as error:
        if answer.status < 400:
            raise UnreachableError(f"the answer to {request} is cut off") from error
        body = {"message": answer.body[:500].decode(errors="replace")}
    if answer.status >= 400:
        raise api_error(
            answer.status, body if isinstance(body, dict) else {}, answer.headers.get("retry-after")
        )
    return body if isinstance(body, dict) else {}

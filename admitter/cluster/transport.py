"""Requests to the API server: kubernetes-asyncio's configuration and connection, JSON by orjson.

The library's typed models cost about five times the CPU of a raw call, so objects travel as
plain JSON. tenacity repeats a single call that was throttled, failed in the server or lost its
connection; a conflict is never repeated here: who wrote must look at the object again.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from kubernetes_asyncio import client, config
from kubernetes_asyncio.config.config_exception import ConfigException
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_exponential_jitter

from admitter import __version__
from admitter.cluster.errors import ApiError, ConfigurationError, UnreachableError, api_error
from admitter.names import FIELD_MANAGER

Json = dict[str, Any]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

ATTEMPTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 0.1
CALL_TIMEOUT_SECONDS: Final = 30.0
LONGEST_RETRY_AFTER_SECONDS: Final = 30.0

_backoff = wait_exponential_jitter(multiplier=0.1, max=5.0, jitter=0.1)


def _worth_repeating(error: BaseException) -> bool:
    if isinstance(error, UnreachableError):
        return True
    return isinstance(error, ApiError) and (error.status == 429 or error.status >= 500)


def _wished(error: BaseException | None) -> float | None:
    """How long the server asks to wait, in seconds; None if it does not say."""
    if isinstance(error, ApiError) and error.retry_after is not None:
        return min(error.retry_after, LONGEST_RETRY_AFTER_SECONDS)
    return None


def _pause(state: RetryCallState) -> float:
    wished = _wished(state.outcome.exception() if state.outcome else None)
    return _backoff(state) if wished is None else wished


class Transport:
    """One connection pool to one API server."""

    def __init__(self, api: client.ApiClient, refresher: asyncio.Task[None] | None = None) -> None:
        self._configuration = api.configuration
        self._api = api
        self._host = str(self._configuration.host).rstrip("/")
        self._proxy = self._configuration.proxy or _proxy(self._host)
        # The own session of the library looks for a proxy and for a file of passwords at each request.
        pool: aiohttp.ClientSession = api.rest_client.pool_manager
        self._session = aiohttp.ClientSession(connector=pool.connector, connector_owner=False)
        self._timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_SECONDS)
        self._refresher = refresher

    @property
    def host(self) -> str:
        """The address of the API server."""
        return self._host

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        """Read the configuration and open a pool; the first request connects.

        Args:
            kubeconfig: the file to read; by default `KUBECONFIG`, `~/.kube/config`, or the pod's own account.
            context: the context in it, by default its current one.

        Raises:
            ConfigurationError: there is no such file or context, or it can't be used.
        """
        if kubeconfig is not None and not kubeconfig.is_file():  # noqa: ASYNC240  # once, at the start
            raise ConfigurationError(f"no cluster to talk to: there is no file {kubeconfig}")
        settings = client.Configuration()
        in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
        refresher = None
        try:
            if kubeconfig is None and context is None and in_cluster:
                config.load_incluster_config(client_configuration=settings)  # type: ignore[no-untyped-call]  # the library leaves it untyped
            else:
                loader = await config.load_kube_config(
                    config_file=str(kubeconfig) if kubeconfig else None,
                    context=context,
                    client_configuration=settings,
                    persist_config=False,
                )
                refresher = asyncio.create_task(
                    config.refresh_token(loader, client_configuration=settings), name="refresh-token"
                )
        except (ConfigException, OSError, ValueError) as error:
            source = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
            raise ConfigurationError(f"no cluster to talk to: {source}: {error}") from error
        return cls(client.ApiClient(settings), refresher)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._refresher is not None:
            self._refresher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refresher
        await self._session.close()
        await self._api.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""
        return await self._call("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """Create an object; `path` is its collection."""
        return await self._call("POST", path, body, JSON, {"fieldManager": FIELD_MANAGER})

    async def patch(
        self,
        path: str,
        body: Json,
        content_type: str = MERGE_PATCH,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """Patch an object, by default with a JSON merge patch."""
        return await self._call(
            "PATCH", path, body, content_type, {"fieldManager": FIELD_MANAGER, **(query or {})}
        )

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply: create the object or take over the fields that `body` names."""
        return await self.patch(path, body, APPLY_PATCH, {"force": "true"})

    async def delete(self, path: str, body: Json | None = None) -> Json:
        """Delete an object; `body` may carry preconditions."""
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
        once = partial(self._once, method, self._url(path, query), data, content_type)
        try:
            return await once()  # as nearly always: to watch over attempts costs as much as the call
        except (ApiError, UnreachableError) as error:
            if not _worth_repeating(error):
                raise
            wished = _wished(error)
        await asyncio.sleep(FIRST_PAUSE_SECONDS if wished is None else wished)
        retrying = AsyncRetrying(
            retry=retry_if_exception(_worth_repeating),
            wait=_pause,
            stop=stop_after_attempt(ATTEMPTS - 1),
            reraise=True,
        )
        return await retrying(once)

    async def _once(self, method: str, url: str, data: bytes | None, content_type: str | None) -> Json:
        headers = await self._headers(content_type)
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=self._timeout, **self._connection()
            ) as response:
                return _decoded(response, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(
                f"{self._host} does not answer: {error or type(error).__name__}"
            ) from error

    @contextlib.asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a watch; what it yields is the body, one JSON document a line.

        Raises:
            ApiError: the server refused it.
            UnreachableError: no connection, or it was lost while reading.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CALL_TIMEOUT_SECONDS)
        try:
            async with self._session.get(
                self._url(path, query),
                headers=await self._headers(None),
                timeout=timeout,
                **self._connection(),
            ) as response:
                if response.status != 200:
                    _decoded(response, await response.read())
                yield response.content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"watching {path}: {error or type(error).__name__}") from error

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self._host}{path}?{urlencode(query)}" if query else f"{self._host}{path}"

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        headers = {"accept": JSON, "user-agent": f"admitter/{__version__}"}
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        if token:
            headers["authorization"] = token if " " in token else f"Bearer {token}"
        if content_type:
            headers["content-type"] = content_type
        return headers

    def _connection(self) -> dict[str, Any]:
        """What a proxy or another name in the server's certificate asks of each request."""
        options: dict[str, Any] = {}
        if self._proxy:
            options["proxy"] = self._proxy
        if self._configuration.tls_server_name:
            options["server_hostname"] = self._configuration.tls_server_name
        return options


def _proxy(host: str) -> str | None:
    """The proxy that the environment names for the way to a host; None: there is none."""
    address = urlsplit(host)
    if proxy_bypass(address.netloc):
        return None
    return getproxies().get(address.scheme)


def _decoded(response: aiohttp.ClientResponse, raw: bytes) -> Json:
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        if response.status < 400:
            raise UnreachableError(
                f"the answer to {response.method} {response.url.path} is cut off"
            ) from error
        body = {"message": raw[:500].decode(errors="replace")}
    if response.status >= 400:
        raise api_error(
            response.status, body if isinstance(body, dict) else {}, response.headers.get("Retry-After")
        )
    return body if isinstance(body, dict) else {}

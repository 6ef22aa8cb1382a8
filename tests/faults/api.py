"""The API server as people, and the auditor, reach it: directly, with no code of Admitter's.

A client that is cut off, or refused since the server is starting, tries again: people do.
"""

import asyncio
import json
import ssl
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
import yaml

from admitter.sandbox.cluster import Cluster

Json = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
CALL_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 180.0
PAUSE_SECONDS: Final = 0.3
_LATER: Final = frozenset({401, 403, 429, 500, 502, 503, 504})
"""A server that has just started answers 403 until it has read the rights of users."""
OWN: Final = "/apis/admitter.dev/v1alpha1"
BATCH: Final = "/apis/batch/v1"
CORE: Final = "/api/v1"


class RefusedError(Exception):
    """An answer that no repetition changes.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Calls, repeated until they are answered.

    Attributes:
        server: the URL of the API server.
        trusted: by what it is known to be the one.
    """

    def __init__(self, kubeconfig: Path) -> None:
        """Prepare.

        Args:
            kubeconfig: one that authenticates by a token.
        """
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self.trusted = ssl.create_default_context(
            cadata=b64decode(cluster["certificate-authority-data"]).decode()
        )
        self._headers = {"Authorization": f"Bearer {content['users'][0]['user']['token']}"}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self.trusted)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str, **query: str) -> Json:
        """An object or a list."""
        return await self._call("GET", path, query=query)

    async def create(self, path: str, body: Json) -> Json:
        """Create an object; one that is there already, from an attempt with a lost answer, will do."""
        try:
            return await self._call("POST", path, body)
        except RefusedError as error:
            if error.status == 409 and "object is being deleted" not in str(error):
                return {}
            raise

    async def post(self, path: str, text: bytes) -> int:
        """Try once to create an object from a text as it is, fields that it should not have left out.

        Returns:
            The status.
        """
        headers, timeout = {"Content-Type": "application/json"}, aiohttp.ClientTimeout(total=CALL_SECONDS)
        where = self.server + path
        query = {"fieldValidation": "Ignore"}
        async with self._session.post(
            where, data=text, params=query, headers=headers, timeout=timeout
        ) as response:
            await response.read()
            return response.status

    async def patch(self, path: str, body: Json) -> Json:
        """Merge a patch into an object."""
        return await self._call("PATCH", path, body, MERGE)

    async def delete(self, path: str, **query: str) -> Json:
        """Delete an object or a collection, in the background; one that is gone will do."""
        try:
            return await self._call("DELETE", path, query={"propagationPolicy": "Background", **query})
        except RefusedError as error:
            if error.status == 404:
                return {}
            raise

    async def pages(self, path: str) -> AsyncIterator[Json]:
        """A whole list, page by page."""
        query = {"limit": "500"}
        while True:
            page = await self._call("GET", path, query=query)
            yield page
            if not page["metadata"].get("continue"):
                return
            query["continue"] = page["metadata"]["continue"]

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Json:
        data = orjson.dumps(body) if body is not None else None
        end = time.monotonic() + PATIENCE_SECONDS
        timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
        while True:
            try:
                async with self._session.request(
                    method,
                    self.server + path,
                    data=data,
                    params=query,
                    headers={"Content-Type": content},
                    timeout=timeout,
                ) as response:
                    answer = await response.read()
                    if response.status < 400:
                        return dict(orjson.loads(answer))
                    refused = RefusedError(response.status, answer[:300].decode(errors="replace"))
                    if response.status not in _LATER or time.monotonic() > end:
                        raise refused
            except (aiohttp.ClientError, TimeoutError, OSError, json.JSONDecodeError):
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def watch(self, path: str, version: str, seconds: int) -> AsyncIterator[Json]:
        """The events of one watch until it ends, bookmarks included.

        Raises:
            RefusedError: the server refuses to go on from that version, or for another reason.
            aiohttp.ClientError: the connection was lost.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=seconds + 10)
        async with self._session.get(self.server + path, params=query, timeout=timeout) as response:
            if response.status != 200:
                raise RefusedError(response.status, (await response.text())[:300])
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    event: Json = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise RefusedError(int(event["object"].get("code", 500)), str(event["object"]))
                    yield event


def everything_allowed(cluster: Cluster, path: Path) -> Path:
    """Write a kubeconfig with which its reader may do everything; returns `path`."""
    cluster.run_kubectl("create", "serviceaccount", "people", "--namespace=default")
    binding = ("create", "clusterrolebinding", "people", "--clusterrole=cluster-admin")
    cluster.run_kubectl(*binding, "--serviceaccount=default:people")
    return cluster.service_account_kubeconfig("default", "people", path)

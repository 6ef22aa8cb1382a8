"""All events of a collection, in order: a watch that goes on where the API server has ended it."""

from collections.abc import AsyncIterator
from typing import Any

import orjson

from admitter.client.transport import Transport

Json = dict[str, Any]


async def newest(transport: Transport, path: str) -> str:
    """The resource version of a collection now."""
    listed = await transport.get(path, {"limit": "1"})
    return str(listed["metadata"]["resourceVersion"])


async def events(transport: Transport, path: str, version: str) -> AsyncIterator[tuple[str, Json]]:
    """Events after a version: `ADDED`, `MODIFIED` or `DELETED`, and the object.

    An API server under load ends the watches of clients that do not keep up; nothing is missed by that.

    Raises:
        RuntimeError: the API server has forgotten the version to go on from.
    """
    while True:
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        async with transport.stream(path, query) as body:
            rest = b""
            async for chunk in body:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"watching {path}: {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield event["type"], event["object"]

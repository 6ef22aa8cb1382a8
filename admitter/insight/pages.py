"""Lists of the API server, page by page, so that neither side holds one of them whole as text."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

from admitter.cluster.transport import Json, Transport

PAGE: Final = 500


async def listed(
    transport: Transport, path: str, query: Mapping[str, str] | None = None
) -> AsyncIterator[Json]:
    """All objects of a collection, by a query such as selectors.

    Raises:
        ClusterError: the API server does not answer, or its user may not list them.
    """
    asked = {**(query or {}), "limit": str(PAGE)}
    while True:
        page = await transport.get(path, asked)
        for item in page["items"]:
            yield item
        if not page["metadata"].get("continue"):
            return
        asked["continue"] = page["metadata"]["continue"]

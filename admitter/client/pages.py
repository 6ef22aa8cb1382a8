"""Lists of the API server, page by page, so that no list is ever held whole as text.

An object may take 1.5 MB, and a page is parsed at once: pages get smaller where objects are large.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

import orjson

Json = dict[str, Any]

FIRST: Final = 25
MOST: Final = 100
"""Objects of a page: 150 MB if all of them are as large as can be."""
BYTES: Final = 4_000_000
"""What a page should take."""


class Reader(Protocol):
    """Reads of an API server."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Read an object or a list."""


async def pages(reader: Reader, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[Json]:
    """The pages of a collection, by a query such as selectors.

    Raises:
        ClusterError: the API server does not answer, or its user may not list them.
    """
    asked, limit = dict(query or {}), FIRST
    while True:
        page = await reader.get(path, asked | {"limit": str(limit)})
        yield page
        if not page["metadata"].get("continue"):
            return
        asked["continue"] = page["metadata"]["continue"]
        items = page["items"]
        limit = max(1, min(MOST, len(items) * BYTES // max(1, _size(items))))


def _size(items: list[Json]) -> int:
    """Bytes of some objects as JSON; as many as a page may take if one is nested too deep to be written."""
    try:
        return len(orjson.dumps(items))
    except TypeError:
        return BYTES

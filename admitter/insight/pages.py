"""Reads collections of the API server, object by object, and explains its refusals."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from admitter.client.errors import ApiError, ClusterError, NotFoundError, UnreachableError
from admitter.client.pages import pages

if TYPE_CHECKING:
    from admitter.client.transport import Transport

Json = dict[str, Any]


async def listed(
    transport: "Transport", path: str, query: Mapping[str, str] | None = None
) -> AsyncIterator[Json]:
    """All objects of a collection, by a query such as selectors.

    Raises:
        ClusterError: the API server does not answer, or its user may not list them.
    """
    async for page in pages(transport, path, query):
        for item in page["items"]:
            yield item


def spelled(path: str, error: ClusterError) -> str:
    """Why the collection at a path can't be read, and what to do about it."""
    if isinstance(error, UnreachableError):
        return f"No answer from the API server: {error}"
    if isinstance(error, NotFoundError):
        return f"There is no {path} in this cluster: is Admitter installed? admitter install does it."
    if isinstance(error, ApiError) and error.status in {401, 403}:
        return f"Rights are missing: {error}. Without them a snapshot will do (--state)."
    return f"The API server says of {path}: {error}"

"""Lists of the API server, page by page, so that nobody holds one whole as text; what a refusal means."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from admitter.cluster.errors import ApiError, ClusterError, NotFoundError, UnreachableError

if TYPE_CHECKING:
    from admitter.cluster.transport import Transport

Json = dict[str, Any]

PAGE: Final = 500


async def listed(
    transport: "Transport", path: str, query: Mapping[str, str] | None = None
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


def spelled(path: str, error: ClusterError) -> str:
    """Why a collection can't be followed, and what to do about it.

    Args:
        path: of the collection.
        error: what happened.
    """
    if isinstance(error, UnreachableError):
        return f"No answer from the API server: {error}"
    if isinstance(error, NotFoundError):
        return f"There is no {path} in this cluster: is Admitter installed? admitter install does it."
    if isinstance(error, ApiError) and error.status in {401, 403}:
        return f"Rights are missing: {error}. Who may not read the cluster can be given a snapshot (--state)."
    return f"The API server says of {path}: {error}"

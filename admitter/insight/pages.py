"""Reads collections of the API server, object by object, and explains its refusals."""

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from admitter.client.errors import ApiError, ClusterError, DeniedError, NotFoundError, UnreachableError
from admitter.client.pages import pages

if TYPE_CHECKING:
    from admitter.client.transport import Transport

Json = dict[str, Any]


async def listed(
    transport: "Transport", path: str, query: Mapping[str, str] | None = None
) -> AsyncIterator[Json]:
    """All objects of a collection, by a query such as selectors.

    Raises:
        DeniedError: its user may not list them.
        ClusterError: the API server does not answer, or does not know the kind.
    """
    try:
        async for page in pages(transport, path, query):
            for item in page["items"]:
                yield item
    except ApiError as error:
        denied = error.status == HTTPStatus.FORBIDDEN
        raise (DeniedError if denied else ClusterError)(spelled(path, error)) from error


def spelled(path: str, error: ClusterError) -> str:
    """Why the collection at a path can't be read, and what to do about it."""
    if isinstance(error, UnreachableError):
        return f"No answer from the API server: {error}"
    if isinstance(error, NotFoundError):
        return f"There is no {path} in this cluster: is Admitter installed? admitter install does it."
    if isinstance(error, ApiError) and error.status == HTTPStatus.FORBIDDEN:
        return missing_right("list", path)
    if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
        return f"The API server does not know this user: {error}"
    return f"The API server says of {path}: {error}"


def without_right(plural: str, error: DeniedError) -> str:
    """What answers lack if a kind that they can do without may not be read."""
    lacks = "Objects of described kinds are left out, and their Workloads say what is to be known."
    if plural == "statefulsets":
        lacks = "What a StatefulSet is scaled to is not known, so its pods say how many it is to have."
    return f"{lacks} {error}"


def missing_right(verb: str, path: str) -> str:
    """Which right a user lacks for a path of the API server, and which role gives it."""
    *_, plural = parts = path.split("/")
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
    where = f"namespace {namespace}" if namespace else "the whole cluster"
    role = f"role view in {where}" if namespace else "ClusterRole admitter-reader"
    return f"A right is missing: to {verb} {plural} in {where}; {role} gives it."

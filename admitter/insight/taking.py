"""A snapshot of a cluster, read from its API server."""

import asyncio
from collections.abc import Callable, Container
from http import HTTPStatus
from typing import Any

import orjson

from admitter.cache.world import World
from admitter.client.errors import ApiError, ClusterError, DeniedError
from admitter.client.source import Source
from admitter.client.transport import Json, Transport
from admitter.convert.settings import Settings
from admitter.insight.pages import listed, spelled
from admitter.insight.snapshot_file import SnapshotFile, reduced, say_left_out
from admitter.policy.snapshot import plural_of


async def take(
    transport: Transport,
    settings: Settings,
    now: Callable[[], float],
    kinds: Container[str] | None = None,
) -> SnapshotFile:
    """Read the cluster, each kind at one moment.

    Of kinds of which the plural is not in `kinds` the snapshot has no objects; None: all are read.

    Raises:
        DeniedError: its user may not read a kind.
        ClusterError: the API server does not answer, or does not know a kind.
    """
    sources = World().sources
    taken = now()
    read = [source for source in sources if kinds is None or plural_of(source.path) in kinds]
    lists = await asyncio.gather(*(_listed(transport, source) for source in read))
    objects: dict[str, list[Json]] = {plural_of(source.path): [] for source in sources}
    objects.update(zip((plural_of(source.path) for source in read), lists, strict=True))
    return SnapshotFile(taken, settings, objects)


async def _listed(transport: Transport, source: Source[Any]) -> list[Json]:
    """The readable objects of a collection, reduced to what decisions depend on."""
    query = {"labelSelector": source.selector} if source.selector else {}
    plural, found = plural_of(source.path), []
    try:
        async for item in listed(transport, source.path, query):
            try:
                made = reduced(plural, item)
                orjson.dumps(made)
            except Exception as error:  # noqa: BLE001  # whatever is wrong with one object
                say_left_out(plural, item, f"{type(error).__name__}: {error}")
            else:
                found.append(made)
    except ApiError as error:
        denied = error.status == HTTPStatus.FORBIDDEN
        raise (DeniedError if denied else ClusterError)(spelled(source.path, error)) from error
    return found

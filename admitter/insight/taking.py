"""A snapshot of a cluster, read from its API server."""

import asyncio
import logging
from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

import orjson

from admitter.cache.world import World
from admitter.client.errors import DeniedError, NotFoundError
from admitter.client.source import Source
from admitter.client.transport import Json, Transport
from admitter.convert.settings import Settings
from admitter.insight.described import described
from admitter.insight.pages import listed, without_right
from admitter.insight.snapshot_file import SnapshotFile, reduced, say_left_out
from admitter.policy.snapshot import plural_of

log = logging.getLogger(__name__)


async def take(
    transport: Transport,
    settings: Settings,
    now: Callable[[], float],
    kinds: Container[str] | None = None,
    namespace: str = "",
) -> SnapshotFile:
    """Read the cluster, each kind at one moment.

    Of kinds of which the plural is not in `kinds` the snapshot has no objects; None: all are read. Of a
    namespace only kinds with objects in namespaces can be read; empty: the whole cluster.

    Raises:
        DeniedError: its user may not read a kind.
        ClusterError: the API server does not answer, or does not know a kind.
    """
    sources = World().sources
    taken = now()
    read = [
        replace(source, path=collection(source.path, namespace))
        for source in sources
        if kinds is None or plural_of(source.path) in kinds
    ]
    lists: list[list[Json]] = []
    denied: list[DeniedError] = []  # for kinds without which answers can be given
    answers = await asyncio.gather(*(_listed(transport, source) for source in read), return_exceptions=True)
    for source, found in zip(read, answers, strict=True):
        if source.optional and isinstance(found, DeniedError):
            denied.append(found)
            lists.append([])
        elif source.optional and isinstance(getattr(found, "__cause__", None), NotFoundError):
            lists.append([])
        elif isinstance(found, BaseException):  # the first in order, so that the same is said each time
            raise found
        else:
            lists.append(found)
    for error in denied:
        log.warning(without_right(error))
    objects: dict[str, list[Json]] = {plural_of(source.path): [] for source in sources}
    objects.update(zip((plural_of(source.path) for source in read), lists, strict=True))
    objects.update(await described(transport, objects["jobkinds"]))
    return SnapshotFile(taken, settings, objects)


def collection(path: str, namespace: str) -> str:
    """The path of the part of a collection that is in a namespace; if that is empty, of the whole."""
    above, _, plural = path.rpartition("/")
    return f"{above}/namespaces/{namespace}/{plural}" if namespace else path


async def _listed(transport: Transport, source: Source[Any]) -> list[Json]:
    """The readable objects of a collection, reduced to what decisions depend on."""
    query = {"labelSelector": source.selector} if source.selector else {}
    plural, found = plural_of(source.path), []
    async for item in listed(transport, source.path, query):
        try:
            made = reduced(plural, item)
            orjson.dumps(made)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one object
            say_left_out(plural, item, f"{type(error).__name__}: {error}")
        else:
            found.append(made)
    return found

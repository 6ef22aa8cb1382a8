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
from admitter.policy.snapshot import QUEUED_PODS, sources_of

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
    sources = sources_of(World())
    taken = now()
    read = {
        plural: replace(source, path=collection(source.path, namespace))
        for plural, source in sources.items()
        if kinds is None or plural in kinds
    }
    objects: dict[str, list[Json]] = {plural: [] for plural in sources}
    denied: dict[str, DeniedError] = {}  # for kinds without which answers can be given
    tried = (_listed(transport, plural, source) for plural, source in read.items())
    answers = await asyncio.gather(*tried, return_exceptions=True)
    for (plural, source), found in zip(read.items(), answers, strict=True):
        if source.optional and isinstance(found, DeniedError):
            denied[plural] = found
        elif source.optional and isinstance(getattr(found, "__cause__", None), NotFoundError):
            continue
        elif isinstance(found, BaseException):  # the first in order, so that the same is said each time
            raise found
        else:
            objects[plural] = found
    for plural, error in denied.items():
        log.warning(without_right(plural, error))
    if QUEUED_PODS not in read:
        del objects[QUEUED_PODS]  # nothing is known of them then
    objects.update(await described(transport, objects["jobkinds"]))
    return SnapshotFile(taken, settings, objects)


def collection(path: str, namespace: str) -> str:
    """The path of the part of a collection that is in a namespace; if that is empty, of the whole."""
    above, _, plural = path.rpartition("/")
    return f"{above}/namespaces/{namespace}/{plural}" if namespace else path


async def _listed(transport: Transport, plural: str, source: Source[Any]) -> list[Json]:
    """The readable objects of a collection, reduced to what decisions depend on."""
    query = {"labelSelector": source.selector} if source.selector else {}
    found = []
    async for item in listed(transport, source.path, query):
        try:
            made = reduced(plural, item)
            orjson.dumps(made)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one object
            say_left_out(plural, item, f"{type(error).__name__}: {error}")
        else:
            found.append(made)
    return found

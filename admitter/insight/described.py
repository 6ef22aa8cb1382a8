"""Reads the objects of described kinds for a snapshot, and what their JobKinds find in them."""

import logging
from typing import TYPE_CHECKING, Any

from admitter.cache.declared_kinds import declared_kinds
from admitter.cache.described_views import source_of_kind
from admitter.cache.job_resources import resource_of
from admitter.cache.related_views import RelatedRoom, RelatedView, source_of_related
from admitter.client.errors import ApiError, ClusterError, UnreadableError
from admitter.client.store import Key
from admitter.client.transport import Json, Transport
from admitter.insight.pages import listed, spelled
from admitter.insight.snapshot_file import LONGEST_LINE, readable, record, say_left_out
from admitter.visible import visible

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind
    from admitter.kinds.registry import Kinds

log = logging.getLogger(__name__)


async def described(transport: Transport, job_kinds: list[Json]) -> dict[str, list[Json]]:
    """The objects of each described kind that works, by plural and group, as snapshots keep them.

    A kind that can't be read is logged and left out: its Workloads say what is to be known.
    """
    working = [each.kind for each in declared_kinds(readable(job_kinds, "jobkinds")) if each.problem == ""]
    if not working:
        return {}
    from admitter.kinds.registry import Kinds  # noqa: PLC0415  # slow to load, and needed for this alone

    kinds = Kinds([{"metadata": raw["metadata"], "spec": raw.get("spec")} for raw in job_kinds], {})
    made, related = {}, _Related(transport)
    for kind in working:
        resource = resource_of(kind)
        if kinds.find(resource.api_version, resource.kind) is None:
            continue
        try:
            made[resource.collection] = await _objects(transport, kind, kinds, related)
        except ClusterError as error:
            words = f"left out: objects of JobKind {kind.metadata.name}: {error}"
            log.warning(visible(words[:LONGEST_LINE]))
    return made


async def _objects(transport: Transport, kind: "JobKind", kinds: "Kinds", related: "_Related") -> list[Json]:
    await related.read(kind)
    source = source_of_kind(kind, kinds, related.find)
    found, plural = [], kind.spec.resource.plural
    async for raw in listed(transport, source.path):
        try:
            found.append(record(raw, source.read(raw)))
        except UnreadableError as error:
            say_left_out(plural, raw, str(error))
    return found


class _Related:
    """What JobKinds name as related, and no more of it than the controller keeps."""

    def __init__(self, transport: Transport) -> None:
        self._transport, self._room = transport, RelatedRoom()
        self._known: dict[str, dict[Key, RelatedView]] = {}  # by the path of a collection
        self._paths: dict[tuple[str, str], str] = {}  # those, by version and kind

    async def read(self, kind: "JobKind") -> None:
        """Read all objects of the API groups that a JobKind names, but for those of its own kind."""
        for version in sorted({each.api_version for each in kind.spec.related}):
            path = f"/apis/{version}"
            try:
                served: list[Any] = (await self._transport.get(path))["resources"]
            except ApiError as error:
                raise ClusterError(spelled(path, error)) from error
            for each in served:
                own = "/" in each["name"] or each["kind"] == kind.spec.resource.kind
                if not own and "list" in each["verbs"]:
                    self._paths[version, each["kind"]] = f"{path}/{each['name']}"
                    await self._read(f"{path}/{each['name']}")

    async def _read(self, path: str) -> None:
        if path in self._known:
            return
        source, known = source_of_related(path), self._known.setdefault(path, {})
        async for raw in listed(self._transport, path):
            try:
                view = self._room.keep(path, source.read(raw))
            except UnreadableError as error:
                say_left_out(path.rpartition("/")[2], raw, str(error))
            else:
                known[view.key] = view

    def find(self, namespace: str, version: str, kind: str, name: str) -> Json | None:
        """An object in a namespace, or in none.

        Raises:
            KindError: it is not kept.
        """
        known = self._known.get(self._paths.get((version, kind), ""), {})
        view = known.get((namespace, name)) or known.get(("", name))
        return view.content(kind) if view is not None else None

"""Reads the objects of described kinds for a snapshot, and what their JobKinds find in them."""

import logging
from typing import TYPE_CHECKING, Any

from admitter.cache.declared_kinds import declared_kinds
from admitter.cache.described_views import RelatedIn, source_of_kind
from admitter.cache.job_resources import resource_of
from admitter.client.errors import ApiError, ClusterError, UnreadableError
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
    made = {}
    for kind in working:
        resource = resource_of(kind)
        if kinds.find(resource.api_version, resource.kind) is None:
            continue
        try:
            made[resource.collection] = await _objects(transport, kind, kinds)
        except ClusterError as error:
            words = f"left out: objects of JobKind {kind.metadata.name}: {error}"
            log.warning(visible(words[:LONGEST_LINE]))
    return made


async def _objects(transport: Transport, kind: "JobKind", kinds: "Kinds") -> list[Json]:
    source = source_of_kind(kind, kinds, await _related(transport, kind))
    found, plural = [], kind.spec.resource.plural
    async for raw in listed(transport, source.path):
        try:
            found.append(record(raw, source.read(raw)))
        except UnreadableError as error:
            say_left_out(plural, raw, str(error))
    return found


async def _related(transport: Transport, kind: "JobKind") -> RelatedIn:
    """Finds what a JobKind names as related: all objects of its API group, but for the kind's own."""
    found: dict[tuple[str, ...], Json] = {}
    for version in sorted({each.api_version for each in kind.spec.related}):
        path = f"/apis/{version}"
        try:
            served: list[Any] = (await transport.get(path))["resources"]
        except ApiError as error:
            raise ClusterError(spelled(path, error)) from error
        for each in served:
            if "/" in each["name"] or each["kind"] == kind.spec.resource.kind or "list" not in each["verbs"]:
                continue
            async for raw in listed(transport, f"{path}/{each['name']}"):
                metadata = raw["metadata"]
                found[metadata.get("namespace", ""), version, each["kind"], metadata["name"]] = raw

    def find(namespace: str, version: str, kind: str, name: str) -> Json | None:
        return found.get((namespace, version, kind, name)) or found.get(("", version, kind, name))

    return find

"""The objects of a simulation, with what an API server would have added to each."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from admitter.cache.namespace_views import parse_namespace, parse_resource_quota
from admitter.cache.views import ObjectView, parse_object
from admitter.cache.world import World
from admitter.client.store import Store, View
from admitter.quotas.namespaces import NAME_LABEL
from admitter.simulate.items import Key

Json = dict[str, Any]

_PARSERS: Final = {"Namespace": parse_namespace, "ResourceQuota": parse_resource_quota}
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


class Objects:
    """Definitions as they come and go, in the stores that the controllers read."""

    def __init__(self, world: World) -> None:
        self._world = world
        versions = (source.store.version for source in world.sources)
        self._serial = max(*versions, world.queued_pods.version)
        self._lives: Counter[str] = Counter()
        self._numbers: dict[str, int] = {}
        self._uids: dict[str, str] = {}
        self._births: dict[str, str] = {}
        self._stores: dict[str, Store[Any]] = {
            "Namespace": world.namespaces,
            "ResourceQuota": world.resource_quotas,
            "LimitRange": world.limit_ranges,
            "PriorityClass": world.priority_classes,
            "WorkloadPriorityClass": world.workload_classes,
            "RuntimeClass": world.runtime_classes,
            "ResourceFlavor": world.flavors,
            "Cohort": world.cohorts,
            "ClusterQueue": world.cluster_queues,
            "LocalQueue": world.local_queues,
            "PlacementPolicy": world.placement_policies,
            "ElasticQuota": world.elastic_quotas,
            "CompositeElasticQuota": world.composite_elastic_quotas,
            "JobKind": world.job_kinds,
            "Job": world.jobs,
            "Pod": world.queued_pods,
            "Workload": world.workloads,
            "Node": world.nodes,
        }

    @property
    def version(self) -> str:
        """The version of the object that came last."""
        return str(self._serial)

    def next_version(self) -> str:
        """A version for an object that changes."""
        self._serial += 1
        return self.version

    def find(self, kind: str, key: Key) -> ObjectView | None:
        found: ObjectView | None = self._stores[kind].get(key)
        return found

    def put(self, kind: str, raw: Json) -> None:
        self._stores[kind].apply(_PARSERS.get(kind, parse_object)(raw))

    def remove(self, kind: str, key: Key, raw: Json) -> None:
        self._stores[kind].delete(key, raw["metadata"]["uid"])

    def completed(self, metadata: Json, kind: str, time: float, *, gone: bool) -> Json:
        """Metadata with what an API server would have added; it changes with each version."""
        version = self.next_version()
        base = "/".join((kind, metadata.get("namespace", ""), metadata["name"]))
        number = self._numbers.setdefault(base, self._serial)
        known: View | None = self._stores[kind].get((metadata.get("namespace", ""), metadata["name"]))
        made = f"{number:08}/{base}#{self._lives[base]}"  # equal ages: written first, served first
        uid = self._uids.get(base) or (known.uid if known is not None else made)
        self._uids[base] = "" if gone else uid
        self._lives[base] += gone
        born = self._births.setdefault(uid, timestamp(time))  # an update is no new object
        created = metadata.get("creationTimestamp") or born
        completed: Json = {"uid": uid, "resourceVersion": version, "creationTimestamp": created}
        if kind == "Namespace":
            completed["labels"] = {**metadata.get("labels", {}), NAME_LABEL: metadata["name"]}
        return {**metadata, **completed}

    def namespace(self, name: str, now: float) -> None:
        """Make a namespace exist that is used."""
        if self._world.namespaces.get(("", name)) is None:
            labels = {NAME_LABEL: name}
            metadata = {
                "name": name,
                "uid": f"Namespace//{name}",
                "resourceVersion": self.next_version(),
                "creationTimestamp": timestamp(now),
            }
            self._world.namespaces.apply(parse_namespace({"metadata": metadata | {"labels": labels}}))


def timestamp(time: float) -> str:
    """A time as the API writes it, with fractions of a second if it has any; years end with 9999."""
    if time > _LAST:
        return "9999-12-31T23:59:59Z"
    moment = datetime.fromtimestamp(time, UTC)
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds").replace(
        "+00:00", "Z"
    )

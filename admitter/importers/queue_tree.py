"""A tree of queues without flavors, as Cohorts and ClusterQueues of one flavor: any node.

Volcano and YuniKorn have such trees, with maps of quantities by resource. Jobs name the LocalQueue of one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from admitter.api.base import is_resource
from admitter.importers.translation import Json, ManifestSource, Translation, below, own, said
from admitter.quantities.amounts import InvalidQuantityError, parse_quantity, rounded_up, to_quantity

FLAVOR: Final = "default"
"""The flavor that stands for any node."""

FOR_EVER: Final = "365000d"
"""The longest time there is: as minRuntime, no Job is ever evicted for others."""

ALWAYS: Final = ("cpu", "memory")
"""Resources that any Job requests."""


@dataclass(slots=True, eq=False)
class QueueNode:
    """A queue. Amounts are by resource, and of the queue together with all below it."""

    name: str
    inner: bool = False  # whether queues may be below it
    guaranteed: dict[str, str] = field(default_factory=dict)  # what it is promised
    most: dict[str, str] = field(default_factory=dict)  # the most that it may use
    reserved: dict[str, str] = field(default_factory=dict)  # the part of `guaranteed` that it does not lend
    # what else its object has in these
    spec: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    below: list["QueueNode"] = field(default_factory=list)

    @property
    def limited(self) -> bool:
        return bool(self.guaranteed or self.most)

    def all(self) -> Iterator["QueueNode"]:
        """It, and all below it."""
        yield self
        for child in self.below:
            yield from child.all()

    def promised(self, resource: str) -> Fraction:
        """What it and all below it are promised: its own word, or theirs if these add up to more."""
        own = parse_quantity(self.guaranteed.get(resource, "0"))
        return max(own, sum((child.promised(resource) for child in self.below), Fraction(0)))


def manifests(root: QueueNode, requested: Iterable[str] = ()) -> list[Json]:
    """The flavor if any queue has quota, the Cohorts, and the ClusterQueues.

    The root follows the nodes. Where any queue has quota, the root lists all resources that are named
    anywhere, or requested by Jobs, and so does each queue with quota, since it refuses what it does not list;
    the others inherit.
    """
    nodes = list(root.all())
    known = {resource for node in nodes for resource in (*node.guaranteed, *node.most)}
    resources = sorted({*known, *ALWAYS, *requested}) if known else []
    listed = [{"name": name, "flavors": [{"name": FLAVOR}]} for name in resources]
    top = {"capacityFrom": "Nodes", **root.spec, **({"resources": listed} if known else {})}
    made = [_manifest("ResourceFlavor", QueueNode(FLAVOR), {})] if known else []
    made.append(_manifest("Cohort", root, top))
    for parent in nodes:
        made += [_queue(child, parent.name, resources) for child in parent.below]
    return made


def _queue(node: QueueNode, above: str, resources: list[str]) -> Json:
    listed = [{"name": name, "flavors": [_quota(node, name)]} for name in resources]
    quota: Json = {"resources": listed} if node.limited else {}
    if node.inner:
        return _manifest("Cohort", node, {"parent": above, **node.spec, **quota})
    spec = {"cohort": above, "namespaceSelector": {}, **node.spec, **quota}
    return _manifest("ClusterQueue", node, spec)


def _quota(node: QueueNode, resource: str) -> Json:
    """What a queue has of a resource: an inner one only what is promised beyond those below it."""
    own = node.guaranteed.get(resource, "0")
    below = sum((child.promised(resource) for child in node.below), Fraction(0))
    quota: Json = {"min": _minus(resource, own, below)}
    if resource in node.most:
        quota["max"] = node.most[resource]
    if resource in node.reserved:
        quota["lendingLimit"] = _minus(resource, own, parse_quantity(node.reserved[resource]))
    return {"name": FLAVOR, "quota": quota}


def _minus(resource: str, quantity: str, less: Fraction) -> str:
    """What is left of a quantity; as it was written if it is all."""
    if not less:
        return quantity
    return to_quantity(resource, rounded_up(resource, max(Fraction(0), parse_quantity(quantity) - less)))


def _manifest(kind: str, node: QueueNode, spec: Json) -> Json:
    return own(kind, {**node.metadata, "name": node.name}, spec)


def quantities(source: ManifestSource, path: str, names: dict[str, str] | None = None) -> dict[str, str]:
    """Quantities by resource, as they are written; what is none is refused, the rest is left to the caller.

    `names` has our names of resources that have other names there.
    """
    found: dict[str, str] = {}
    for theirs, quantity in source.mapping(path).items():
        name = (names or {}).get(theirs, theirs)
        text = "".join(str(quantity).split())
        why = _wrong(name, quantity, text)
        if why:
            source.refused(below(path, theirs), why)
        else:
            found[name] = text
    return found


def cut(
    source: ManifestSource,
    path: str,
    least: dict[str, str],
    most: dict[str, str],
    names: dict[str, str] | None = None,
) -> None:
    """Cut what is promised at a path to what may be used at most, and refuse it by name where it is more."""
    theirs = {ours: name for name, ours in (names or {}).items()}
    for name, quantity in least.items():
        if name in most and parse_quantity(most[name]) < parse_quantity(quantity):
            place = below(path, theirs.get(name, name))
            source.refused(place, f"is more than the most that may be used, {most[name]}, which counts")
            least[name] = most[name]


def _wrong(name: str, quantity: object, text: str) -> str | None:
    if not is_resource(name):
        return "this is no name of a resource"
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        return f"must be a quantity, not {quantity!r}"
    try:
        parse_quantity(text)
    except InvalidQuantityError as error:
        return str(error)
    return None


@dataclass(slots=True)
class LocalQueues:
    """LocalQueues made so far, each called after its ClusterQueue, and all resources that pods request."""

    into: Translation
    requested: set[str] = field(default_factory=set)
    _made: set[tuple[str, str]] = field(default_factory=set)

    def lead(self, source: ManifestSource, queue: str) -> None:
        """Make the LocalQueue in the namespace of an object that leads to a queue, unless there is one."""
        namespace = source.text("metadata.namespace")
        if (namespace, queue) not in self._made:
            self._made.add((namespace, queue))
            metadata = said(name=queue, namespace=namespace)
            self.into.add(own("LocalQueue", metadata, {"clusterQueue": queue}), source.title)

    def count(self, source: ManifestSource, pod: str) -> None:
        """Note what a pod requests, by the path of its spec."""
        self.requested |= {
            name
            for part in ("containers", "initContainers")
            for container in source.items(f"{pod}.{part}")
            for kind in ("requests", "limits")
            for name in source.mapping(f"{container}.resources.{kind}")
            if is_resource(name)
        }

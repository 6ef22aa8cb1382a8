"""A tree of queues without flavors, as Cohorts and ClusterQueues of one flavor: any node."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from admitter.importers.translation import Json, own
from admitter.quantities.amounts import parse_quantity, rounded_up, to_quantity

FLAVOR: Final = "default"
"""The flavor that stands for any node."""

FOR_EVER: Final = "365000d"
"""The longest time there is: as minRuntime, no Job is ever evicted for others."""

ALWAYS: Final = ("cpu", "memory")
"""Resources that any Job requests."""


@dataclass(slots=True, eq=False)
class QueueNode:
    """A queue.

    Attributes:
        name: the name of its Cohort or ClusterQueue.
        inner: whether queues may be below it.
        guaranteed: by resource, what it is promised together with all below it.
        most: by resource, the most that it may use together with all below it.
        reserved: by resource, how much of what it is promised no other queue may borrow.
        spec: what else is in its spec.
        metadata: what else is in its metadata.
        below: the queues below it.
    """

    name: str
    inner: bool = False
    guaranteed: dict[str, str] = field(default_factory=dict)
    most: dict[str, str] = field(default_factory=dict)
    reserved: dict[str, str] = field(default_factory=dict)
    spec: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    below: list["QueueNode"] = field(default_factory=list)

    @property
    def limited(self) -> bool:
        """Whether it has quota of its own."""
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
    anywhere, and so does each queue with quota, since it refuses what it does not list; the others inherit.

    Args:
        root: the top of the tree.
        requested: resources that Jobs are known to ask for.
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

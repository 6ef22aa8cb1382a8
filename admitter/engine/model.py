"""What the policy decides about: flavors and workloads, as immutable values.

Everything is hashable, so that workloads of equal shape can be recognised as one equivalence class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from admitter.names import GPU_MEMORY, PODS

FlavorResource = tuple[str, str]  # a flavor's name and a resource's name: the unit in which quota is counted

Usage = tuple[tuple[FlavorResource, int], ...]  # amounts, each flavor and resource once


@dataclass(frozen=True, slots=True)
class Taint:
    """A node taint: pods stay away unless they tolerate it."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"

    @property
    def repels(self) -> bool:
        """Whether it keeps pods away, rather than only making the node less liked."""
        return self.effect in {"NoSchedule", "NoExecute"}


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with `Exists` tolerates every taint, an empty effect every effect.

    With `seconds` a pod leaves that long after a `NoExecute` taint has come.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether pods with it may run on nodes with the taint (Kubernetes' own rule)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.operator == "Exists":
            return not self.key or self.key == taint.key
        return self.key == taint.key and self.value == taint.value


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @property
    def impossible(self) -> bool:
        """Whether no node whatever satisfies it."""
        return self.operator == "In" and not self.values

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether nodes with these labels satisfy it (Kubernetes' own rule)."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        try:
            left, right = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return left > right if self.operator == "Gt" else left < right


Term = tuple[Requirement, ...]  # a node selector term: all of its requirements must match

GPU_MEMORY_GB: Final = 32  # memory of a whole GPU of which nothing else is known (docs/elastic-quota.md)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Nodes that are alike."""

    labels: tuple[tuple[str, str], ...]  # those of them that flavors name
    allocatable: tuple[tuple[str, int], ...]  # how much of each resource one of them has for pods


@dataclass(frozen=True, slots=True)
class Flavor:
    """One kind of hardware: the labels and taints of its nodes, and the tolerations it brings along.

    `gpu_memory` is what one whole GPU of it has, in GB. `shapes` are its largest nodes: a pod that fits none
    of them never starts. Empty: nothing is known of its nodes, or they come on demand.
    """

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    gpu_memory: int = GPU_MEMORY_GB
    shapes: tuple[NodeShape, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that one pod requests, in whichever form."""

    whole: int = 0  # how many whole ones
    sliced: int = 0  # the memory of parts of one, in GB
    resources: frozenset[str] = frozenset()  # the names under which they are requested


NO_GPUS: Final = Gpus()


@dataclass(frozen=True, slots=True)
class PodSet:
    """Pods that are alike: what one of them requests, and which nodes they accept."""

    name: str  # unique within the workload
    count: int  # number of pods
    # amount by resource, of one pod; that each pod is one of `pods` is not among them
    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...] = ()  # labels that nodes must have
    terms: tuple[Term, ...] = ()  # required node affinity; one of the terms must match. None: any node
    tolerations: tuple[Toleration, ...] = ()  # of its pods
    min_count: int | None = None  # with how many pods it can do; None: with `count` alone
    gpus: Gpus = NO_GPUS  # those among the requests of one pod

    def request(self, resource: str, flavor: Flavor) -> int:
        """What one pod uses of a resource; of GPU memory, how much depends on the flavor."""
        if resource == PODS:
            return 1
        if resource == GPU_MEMORY:
            return self.gpus.whole * flavor.gpu_memory + self.gpus.sliced
        return dict(self.requests).get(resource, 0)

    def asks_for(self, resource: str) -> bool:
        """Whether it uses any of a resource."""
        if resource == PODS:
            return self.count > 0
        if resource == GPU_MEMORY:
            return bool(self.count and (self.gpus.whole or self.gpus.sliced))
        return bool(self.count and dict(self.requests).get(resource))


@dataclass(frozen=True, slots=True)
class Workload:
    """Work that asks for admission."""

    uid: str  # unique; the last key of every order
    queue: str  # the ClusterQueue it waits in
    priority: int  # higher goes first
    created: float  # seconds since the epoch; earlier goes first among equals
    pod_sets: tuple[PodSet, ...]  # all of them are admitted together
    namespace: str = ""  # that counts it in its share of the queue
    tried_last: tuple[str, ...] = ()  # flavors that it gets only where no other of a group would do now
    # when it was evicted for others, in seconds since the epoch, the oldest first: as many as limits look at
    evictions: tuple[float, ...] = ()
    # its place in the queue, smallest first (design: priority, creation time, UID)
    rank: tuple[int, float, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", (-self.priority, self.created, self.uid))


@dataclass(frozen=True, slots=True)
class Assignment:
    """The flavors that a pod set got and what all of its pods use."""

    name: str
    count: int
    flavors: tuple[tuple[str, str], ...]
    usage: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """A reservation of quota in a queue."""

    queue: str  # of the quota
    pod_sets: tuple[Assignment, ...]
    pool: str = ""  # if there is one, use counts under that name, whatever the flavor
    # what it holds, as sums by flavor and resource
    usage: Usage = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sums: dict[FlavorResource, int] = {}
        for assignment in self.pod_sets:
            flavors = dict(assignment.flavors)
            for resource, amount in assignment.usage:
                key = (self.pool or flavors[resource], resource)
                sums[key] = sums.get(key, 0) + amount
        object.__setattr__(self, "usage", tuple(sums.items()))

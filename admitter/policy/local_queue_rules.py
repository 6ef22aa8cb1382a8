"""LocalQueues by rule: those that ClusterQueues ask for in the namespaces that they select.

The world is read here; the controller and the simulator do what is said. A LocalQueue is only changed or
deleted if it was made by a rule, and deleted only while nothing is in it (docs/design/people.md).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from admitter.api.cluster_queue import ClusterQueue
from admitter.api.conditions import ActiveReason
from admitter.cache.namespace_views import NamespaceView
from admitter.cache.views import ObjectView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.convert.definitions import requirements
from admitter.engine.model import Requirement
from admitter.policy.defects import Defect
from admitter.policy.generated import Generated, Origin, is_generated, owner
from admitter.quotas.namespaces import local_queue

PLURAL: Final = "localqueues"
MOST_NAMED: Final = 3
"""So many LocalQueues that are others' are named in a condition."""


@dataclass(frozen=True, slots=True)
class LocalQueueRule:
    """Which namespaces get a LocalQueue to a ClusterQueue, and how it is called.

    `namespaces` are what a namespace's labels must satisfy.
    """

    name: str
    namespaces: tuple[Requirement, ...]

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels gets one."""
        return bool(self.name) and all(each.matches(labels) for each in self.namespaces)


UNKNOWN: Final = LocalQueueRule("", ())
"""That of a ClusterQueue of which the spec is invalid: what it has made stays as it is."""


def rule_of(queue: ClusterQueue) -> LocalQueueRule | None:
    """The rule of a ClusterQueue; None if it has none. It is only for namespaces that the queue selects."""
    spec = queue.spec
    selecting = requirements(spec.namespace_selector)
    if spec.local_queues is None or selecting is None:
        return None
    more = requirements(spec.local_queues.namespace_selector) or ()
    return LocalQueueRule(spec.local_queues.name, (*selecting, *more))


@dataclass(frozen=True, slots=True)
class LocalQueuePlan:
    """What has to be done in a namespace."""

    put: tuple[Generated, ...] = ()  # LocalQueues to make or set right
    delete: tuple[ObjectView, ...] = ()  # LocalQueues to delete
    taken: Mapping[str, str] = field(
        default_factory=dict
    )  # by ClusterQueue, the LocalQueue that is another's
    leaving: frozenset[Key] = frozenset()  # LocalQueues to delete once nothing is in them


def plan(
    world: World,
    rules: Mapping[str, LocalQueueRule],
    namespace: str,
    is_empty: Callable[[Key], bool] | None = None,
) -> LocalQueuePlan:
    """What the rules of ClusterQueues, by their names, ask for in a namespace.

    One that is going away is left alone. Of several ClusterQueues that ask for the same name the one has it
    to which it leads, or else the oldest. `is_empty` says whether nothing is in a LocalQueue; by default what
    is known of Workloads and Jobs says so.
    """
    empty = is_empty or partial(nothing_in, world)
    view = world.namespaces.get(("", namespace))
    if view is None or view.terminating:
        return LocalQueuePlan()
    asking: defaultdict[str, list[ObjectView]] = defaultdict(list)
    for queue, rule in rules.items():
        found = world.cluster_queues.get(("", queue))
        if found is not None and not found.terminating and rule.selects(view.labels):
            asking[rule.name].append(found)
    put, delete = list[Generated](), list[ObjectView]()
    taken, leaving = dict[str, str](), set[Key]()
    for name, queues in asking.items():
        known = world.local_queues.get((namespace, name))
        holder = _holder(known, queues, empty)
        taken |= {each.name: f"{namespace}/{name}" for each in queues if each is not holder}
        if holder is not None and not (known is not None and _is_right(known, holder)):
            put.append(_wanted(holder.name, view, name))
        elif holder is None and known is not None and _is_by_rule(known):
            leaving.add(known.key)
    for made in _made(world, namespace):
        if made.name not in asking and rules.get(str(made.spec["clusterQueue"])) is not UNKNOWN:
            if empty(made.key):
                delete += [made] if not made.terminating else []
            else:
                leaving.add(made.key)
    return LocalQueuePlan(tuple(put), tuple(delete), taken, frozenset(leaving))


def _holder(
    known: ObjectView | None, queues: Iterable[ObjectView], empty: Callable[[Key], bool]
) -> ObjectView | None:
    """Which ClusterQueue of some that ask for a LocalQueue has it, or gets it; None: it is another's."""
    oldest = sorted(queues, key=lambda queue: (queue.created, queue.name))
    if known is None:
        return oldest[0]
    leads = next((queue for queue in oldest if queue.name == known.spec["clusterQueue"]), None)
    free = _is_by_rule(known) and not known.terminating and empty(known.key)
    return leads or (oldest[0] if free else None)


def _is_by_rule(view: ObjectView) -> bool:
    return is_generated(view, view.namespace, Origin.CLUSTER_QUEUE)


def _is_right(known: ObjectView, queue: ObjectView) -> bool:
    """Whether a LocalQueue leads to a ClusterQueue; all else of it is for administrators to say."""
    return known.terminating or bool(known.spec["clusterQueue"] == queue.name)


def _wanted(queue: str, namespace: NamespaceView, name: str) -> Generated:
    """A LocalQueue; it goes with its namespace, and not with the ClusterQueue: something may be in it."""
    goes_with = owner("Namespace", namespace.name, namespace.uid)
    key, spec = (namespace.name, name), local_queue(queue)
    return Generated(PLURAL, key, spec, namespace.name, Origin.CLUSTER_QUEUE, goes_with)


def _made(world: World, namespace: str) -> Iterator[ObjectView]:
    """The LocalQueues of a namespace that rules have made."""
    for key in world.local_queues_by_namespace.get(namespace):
        view = world.local_queues.get(key)
        if view is not None and _is_by_rule(view):
            yield view


def nothing_in(world: World, local_queue: Key) -> bool:
    """Whether nothing waits or runs by a LocalQueue: no Workload names it, nor what is to get one."""
    workloads = map(world.workloads.get, world.workloads_by_queue.get(local_queue))
    if any(workload is not None and not workload.finished for workload in workloads):
        return False
    jobs = map(world.jobs.get, world.jobs_by_namespace.get(local_queue[0]))
    return not any(job is not None and job.queue == local_queue[1] and not job.finished for job in jobs)


def told(taken: Iterable[str]) -> Defect | None:
    """What the condition of a ClusterQueue says of LocalQueues that lead elsewhere; None without any."""
    names = sorted(taken)
    if not names:
        return None
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    verb = "leads" if len(names) == 1 else "lead"
    words = (
        f"spec.localQueues: LocalQueue {', '.join(names[:MOST_NAMED])}{more} {verb} to another ClusterQueue"
    )
    return ActiveReason.LOCAL_QUEUE_TAKEN, words


def conflicts(world: World, rules: Mapping[str, LocalQueueRule]) -> dict[str, list[str]]:
    """The LocalQueues that lead elsewhere, by the ClusterQueue that asks for them, in all namespaces."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for namespace in world.namespaces if rules else ():
        for queue, taken in plan(world, rules, namespace.name).taken.items():
            found[queue].append(taken)
    return found

"""What has to be made so that a namespace has the queues of its annotations, and a Job the queue of a rule.

The rules are in `admitter.quotas.namespaces` and `admitter.quotas.placement`; the world is read here, and the
controller and the simulator do what is said. A namespace has the queues that its annotations ask for, and no
others. An annotation that can't be followed changes nothing: the spec of what was made before is the memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from admitter.api.conditions import ActiveReason
from admitter.cache.namespace_views import NamespaceView
from admitter.cache.views import ObjectView
from admitter.cache.world import World
from admitter.names import API_VERSION, ELASTIC_QUOTA_QUEUE, GENERATED_BY_LABEL, GENERATED_LABEL
from admitter.policy.catalog import Catalog
from admitter.policy.defects import Defect
from admitter.policy.generated import ANY_NAMESPACE, Generated, Origin, is_generated, owner, store_of
from admitter.policy.placement_policies import ReadPolicy
from admitter.quotas import namespaces
from admitter.quotas.namespaces import AnnotationError, Json
from admitter.quotas.placement import Placed, Surroundings


@dataclass(frozen=True, slots=True)
class NamespacePlan:
    """What has to be done."""

    put: tuple[Generated, ...] = ()  # objects to make or set right, in this order
    delete: tuple[tuple[str, ObjectView], ...] = ()  # objects to delete, by the plural of their kind
    defect: Defect | None = None  # why the annotations are not followed


def plan(world: World, namespace: str) -> NamespacePlan:
    """What has to be done for a namespace; one that is going away is left alone until it is gone."""
    view = world.namespaces.get(("", namespace))
    if view is not None and view.terminating:
        return NamespacePlan()
    spec, defect = _asked(world, view)
    places = {"clusterqueues": ("", namespace), "localqueues": (namespace, namespace)}
    found = {plural: store_of(world, plural).get(key) for plural, key in places.items()}
    if view is None or (spec is None and defect is None):
        made = ((plural, known) for plural, known in found.items() if known is not None)
        ours = ((p, known) for p, known in made if is_generated(known, namespace, Origin.ANNOTATIONS))
        return NamespacePlan(delete=tuple((p, known) for p, known in ours if not known.terminating))
    if namespace == ELASTIC_QUOTA_QUEUE:
        return NamespacePlan(defect=(ActiveReason.QUEUE_NAME_TAKEN, namespaces.NO_QUEUE))
    queue = found["clusterqueues"]
    own = queue is not None and is_generated(queue, namespace)
    if queue is not None and not own and not is_generated(queue, ANY_NAMESPACE):
        words = f"ClusterQueue {namespace} was not made for this namespace, and stays as it is"
        return NamespacePlan(defect=(ActiveReason.QUEUE_NAME_TAKEN, words))
    if spec is None:
        spec = queue.spec if queue is not None and own else namespaces.held(namespace)
    specs = {"clusterqueues": spec, "localqueues": namespaces.local_queue(namespace)}
    put = []
    goes_with = owner("Namespace", namespace, view.uid)
    for plural, key in places.items():
        wanted = Generated(plural, key, specs[plural], namespace, Origin.ANNOTATIONS, goes_with)
        known = found[plural]
        if plural == "localqueues" and known is not None and not is_generated(known, namespace):
            words = f"LocalQueue {namespace} was not made for this namespace, and stays as it is"
            defect = defect or (ActiveReason.QUEUE_NAME_TAKEN, words)
        elif known is None or not wanted.is_right(known):
            put.append(wanted)
    return NamespacePlan(tuple(put), defect=defect)


def defect_of(world: World, queue: ObjectView) -> Defect | None:
    """What is wrong with the annotations that a ClusterQueue was made from; None of one made otherwise."""
    if not is_generated(queue, queue.name, Origin.ANNOTATIONS):
        return None
    return _asked(world, world.namespaces.get(("", queue.name)))[1]


def _asked(world: World, view: NamespaceView | None) -> tuple[Json | None, Defect | None]:
    """The spec that a namespace asks for, or why its annotations give none."""
    if view is None:
        return None, None
    try:
        spec = namespaces.cluster_queue(
            view.name, view.annotations, lambda cohort: world.cohorts.get(("", cohort)) is not None
        )
    except AnnotationError as error:
        return None, (error.reason, str(error))
    return spec, None


def generated(world: World, policy: ReadPolicy, namespace: str, placed: Placed) -> Iterator[Generated]:
    """Cohorts, a ClusterQueue and a LocalQueue, in this order, of those that are missing.

    What is a namespace's own goes with the namespace, all else with the policy.
    """
    view = world.namespaces.get(("", namespace))
    theirs = owner("PlacementPolicy", policy.name, policy.uid, API_VERSION)
    own = owner("Namespace", namespace, view.uid if view is not None else "")
    for name, parent in placed.cohorts:
        yield Generated("cohorts", ("", name), {"parent": parent}, ANY_NAMESPACE, Origin.PLACEMENT, theirs)
    if placed.spec is not None:
        whose, goes_with = (namespace, own) if placed.of_namespace else (ANY_NAMESPACE, theirs)
        key = ("", placed.cluster_queue)
        origin = Origin.PERSON if placed.personal else Origin.PLACEMENT
        yield Generated("clusterqueues", key, placed.spec, whose, origin, goes_with)
    if not placed.leads:
        key, spec = (namespace, placed.queue), namespaces.local_queue(placed.cluster_queue)
        yield Generated("localqueues", key, spec, namespace, Origin.PLACEMENT, own)


def surroundings(world: World, catalog: Catalog, namespace: str) -> Surroundings:
    """What there is for the Jobs of a namespace."""
    view = world.namespaces.get(("", namespace))
    labels = world.labels_of(namespace)
    local_queues = (world.local_queues.get(key) for key in world.local_queues_by_namespace.get(namespace))

    def selected_by(queue: str) -> bool | None:
        exists = world.cluster_queues.get(("", queue)) is not None
        return catalog.selects(queue, labels) if exists else None

    def is_kept(queue: str) -> bool:
        known = world.cluster_queues.get(("", queue))
        free = known is None or GENERATED_LABEL in known.labels
        return free and world.namespaces.get(("", queue)) is not None

    def is_personal(queue: str) -> bool:
        known = world.cluster_queues.get(("", queue))
        return known is not None and known.labels.get(GENERATED_BY_LABEL) == Origin.PERSON

    return Surroundings(
        namespace,
        view.annotations if view is not None else {},
        selected_by,
        {queue.name: str(queue.spec["clusterQueue"]) for queue in local_queues if queue is not None},
        lambda cohort: world.cohorts.get(("", cohort)) is not None,
        is_kept,
        is_personal,
    )

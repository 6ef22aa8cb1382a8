"""What rules look at, and what has to be made so that a Job can go where one sends it.

The controller and the simulator both read and make it from here.
"""

from collections.abc import Iterator

from admitter.cache.world import World
from admitter.names import API_VERSION, GENERATED_BY_LABEL, GENERATED_LABEL
from admitter.policy.catalog import Catalog
from admitter.policy.generated import ANY_NAMESPACE, Generated, Origin, Owner, owning_namespace
from admitter.policy.placement_policies import ReadPolicy
from admitter.quotas.namespaces import local_queue
from admitter.quotas.placement import Placed, Surroundings


def generated(world: World, policy: ReadPolicy, namespace: str, placed: Placed) -> Iterator[Generated]:
    """Cohorts, a ClusterQueue and a LocalQueue, in this order, of those that are missing.

    What is a namespace's own goes with the namespace, all else with the policy.
    """
    view = world.namespaces.get(("", namespace))
    theirs = Owner(API_VERSION, "PlacementPolicy", policy.name, policy.uid)
    own = owning_namespace(namespace, view.uid if view is not None else "")
    for name, parent in placed.cohorts:
        yield Generated("cohorts", ("", name), {"parent": parent}, ANY_NAMESPACE, Origin.PLACEMENT, theirs)
    if placed.spec is not None:
        whose, owner = (namespace, own) if placed.of_namespace else (ANY_NAMESPACE, theirs)
        key = ("", placed.cluster_queue)
        origin = Origin.PERSON if placed.personal else Origin.PLACEMENT
        yield Generated("clusterqueues", key, placed.spec, whose, origin, owner)
    if not placed.leads:
        key, spec = (namespace, placed.queue), local_queue(placed.cluster_queue)
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

"""Probable mistakes in pods that name a queue. Each rule checks one thing; docs/lint.md says why."""

from collections.abc import Iterator
from typing import Protocol

from admitter.cache.pod_groups import MOST_SHAPES, PodGroup
from admitter.cache.queued_pods import pod_job
from admitter.cache.world import World
from admitter.names import ELASTIC_QUOTA_QUEUE, MAX_RUNTIME_ANNOTATION, POD_GROUP_SIZE_ANNOTATION
from admitter.policy.catalog import Catalog
from admitter.policy.run_time import asked_of
from admitter.quantities.durations import written_duration

Found = tuple[str, str]
"""Kind and name of an object, and the mistake in a sentence."""


class Checked(Protocol):
    """What these rules look at."""

    world: World
    catalog: Catalog


def no_such_queue(given: Checked) -> Iterator[Found]:
    """Pods, or a group, name a LocalQueue that does not exist."""
    for pod in given.world.queued_pods:
        if not pod.queued or given.world.local_queues.get((pod.namespace, pod.queue)) is not None:
            continue
        if pod.queue == ELASTIC_QUOTA_QUEUE:
            if given.catalog.elastic.governing(pod.namespace) is None:
                words = f"names the elastic quota of namespace {pod.namespace}, which has none"
                yield f"Pod {pod.namespace}/{pod.name}", words
        else:
            yield (
                f"Pod {pod.namespace}/{pod.name}",
                f"names LocalQueue {pod.queue}, which does not exist: it waits for ever",
            )


def no_such_class(given: Checked) -> Iterator[Found]:
    """A pod names a WorkloadPriorityClass that does not exist."""
    for pod in given.world.queued_pods:
        name = pod.priority_class
        if pod.queued and name and given.world.workload_classes.get(("", name)) is None:
            words = f"names WorkloadPriorityClass {name}, which does not exist: it waits until it does"
            yield f"Pod {pod.namespace}/{pod.name}", words


def unreadable_maximum(given: Checked) -> Iterator[Found]:
    """A pod asks for a maximum run time that can't be read."""
    for pod in given.world.queued_pods:
        asked = asked_of(pod_job(pod)) if pod.queued else None
        if isinstance(asked, str):
            words = f"asks in annotation {MAX_RUNTIME_ANNOTATION} for a time that can't be read: {asked}"
            yield f"Pod {pod.namespace}/{pod.name}", words


def more_than_maximum(given: Checked) -> Iterator[Found]:
    """A pod asks for a longer run time than its queue allows: it gets what the queue allows."""
    for pod in given.world.queued_pods:
        asked = asked_of(pod_job(pod)) if pod.queued else None
        rules = given.catalog.lifecycle(given.catalog.queue_of((pod.namespace, pod.queue)) or "").run_time
        if isinstance(asked, int) and rules.cap is not None and asked > rules.cap:
            own, cap = written_duration(asked), written_duration(rules.cap)
            words = f"asks for {own} in annotation {MAX_RUNTIME_ANNOTATION}, and {rules.source} allows {cap}"
            yield f"Pod {pod.namespace}/{pod.name}", words


def group_without_size(given: Checked) -> Iterator[Found]:
    """A pod of a group does not say how many pods that has: the API server refuses it."""
    for pod in given.world.queued_pods:
        if pod.queued and pod.group and not pod.size:
            words = (
                f"is of group {pod.group}, without a whole number in annotation {POD_GROUP_SIZE_ANNOTATION}"
            )
            yield f"Pod {pod.namespace}/{pod.name}", words


def group_sizes_differ(given: Checked) -> Iterator[Found]:
    """Pods of a group say different sizes: it waits until they agree."""
    for group in _groups(given):
        sizes = [str(size) for size in group.sizes if size]
        if len(sizes) > 1:
            words = f"its pods say that it has {' pods, and '.join(sizes)}: it waits until they agree"
            yield f"PodGroup {group.namespace}/{group.name}", words


def too_many_shapes(given: Checked) -> Iterator[Found]:
    """A group has pods of more shapes than a Workload has pod sets."""
    for group in _groups(given):
        if len(group.alive) > MOST_SHAPES:
            shapes = f"{len(group.alive)} shapes (requests, node selectors, tolerations)"
            words = f"its pods have {shapes}, and at most {MOST_SHAPES} are counted"
            yield f"PodGroup {group.namespace}/{group.name}", words


def _groups(given: Checked) -> Iterator[PodGroup]:
    for job in given.world.pod_groups.jobs:
        group = given.world.pod_groups.get(job.uid)
        if group is not None:
            yield group

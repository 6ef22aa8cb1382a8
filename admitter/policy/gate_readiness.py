"""What readiness means for an admission: the deadline that comes with it, and when it is not tried yet."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from admitter.api.conditions import ConditionType
from admitter.cache.job_resources import JOB
from admitter.cache.readiness_status import written
from admitter.cache.stated import READY_TIMEOUT
from admitter.cache.views import JobView, Json, WorkloadView, at, timestamp
from admitter.cache.world import World
from admitter.policy.catalog import Catalog
from admitter.policy.messages import queue_title
from admitter.policy.pod_readiness import has_default_limit, has_limit
from admitter.policy.readiness import admitted_anew, asked_limit, deadline


class Limit(NamedTuple):
    """The part of an admission's status that readiness adds, and what its user is to be told, or empty."""

    fields: Json
    words: str


def at_admission(
    world: World, catalog: Catalog, workload: WorkloadView, job: JobView | None, queue: str, now: float
) -> Limit:
    """The deadline of a Workload that a queue admits now."""
    limit, words = limit_of(world, catalog, job, queue)
    known = admitted_anew(workload.readiness, deadline(now, limit) if limit else None)
    body = written(known)
    told = body is not None or workload.status.get("readiness") is not None
    return Limit({"readiness": body} if told else {}, words)


def limit_of(world: World, catalog: Catalog, job: JobView | None, queue: str) -> tuple[float, str]:
    """How many seconds a queue gives the pods of a Workload to be ready, 0 for no limit.

    And what its user is to be told of that, or empty.
    """
    if job is None or not has_limit(world, job):
        return 0.0, ""
    by_queue = catalog.lifecycle(queue).ready.limit(by_default=has_default_limit(job))
    return asked_limit(job.spec.get(READY_TIMEOUT), by_queue, queue_title(queue), _title(job))


def _title(job: JobView) -> str:
    name = job.name.rpartition("/")[2]
    kind = "Job" if job.resource is JOB else job.resource.kind
    return f"{kind} {job.namespace}/{name}"


def backing_off(clock: Callable[[], datetime], workload: WorkloadView) -> str:
    """Why a Workload that was not ready in time is not tried again yet; empty if it may be."""
    if not workload.status.get("readiness"):
        return ""
    known = workload.readiness
    if known.next_try is None or clock().timestamp() >= known.next_try:
        return ""
    return f"{_evictions(workload)}; next try at {timestamp(at(known.next_try))}"


def gave_up(workload: WorkloadView) -> str:
    """Why a paused Workload is not tried again; empty if its user has paused it."""
    known = workload.readiness
    if not known.gave_up:
        return ""
    return f"given up: {known.gave_up}; {_evictions(workload)}. To try again, set its spec.active to true"


def _evictions(workload: WorkloadView) -> str:
    """How often it was evicted for readiness, and why the last time."""
    attempts = workload.readiness.attempts
    times = "once" if attempts == 1 else f"{attempts} times"
    why = str(workload.condition(ConditionType.EVICTED).get("message", ""))
    return f"evicted {times} for readiness" + (f": {why}" if why else "")

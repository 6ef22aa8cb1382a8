"""What a Job asks for, as the spec of its Workload."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import orjson

from admitter.api import weights
from admitter.cache.pod_views import usage_of
from admitter.cache.request_rules import NONE
from admitter.cache.views import LONGEST_TEMPLATE, POD_SET, JobView, Json, WorkloadView
from admitter.cache.world import World
from admitter.client.sharing import remembered
from admitter.convert import workloads
from admitter.convert.pod_sets import pod_set
from admitter.engine.model import Admission, Assignment, PodSet
from admitter.names import (
    JOB_LABEL,
    KIND_ANNOTATION,
    OBJECT_ANNOTATION,
    POD_GROUP_LABEL,
    RETRIABLE_ANNOTATION,
)
from admitter.policy.catalog import Catalog
from admitter.policy.fewer_pods import fewest, least_wanted
from admitter.policy.growing import living, most
from admitter.policy.held import held
from admitter.policy.injection import original_template
from admitter.policy.priorities import CLASS_FIELD, pods_class, priority_of
from admitter.policy.replicas import is_bounded
from admitter.quantities.amounts import InvalidQuantityError


def workload_spec(job: JobView, world: World) -> Json:
    """The Workload spec that a queued Job asks for now.

    Raises:
        InvalidQuantityError: a request can't be counted, or it says more than a Workload may.
    """
    assert job.queue is not None
    spec: Json = {"queueName": job.queue, "podSets": _pod_sets(job, world)}
    spec["priority"] = priority_of(job, world)
    named = {"priorityClassName": pods_class(job, world), CLASS_FIELD: job.priority_class}
    return spec | {field: name for field, name in named.items() if name}


def is_up_to_date(workload: WorkloadView, job: JobView, world: World) -> bool:
    """Whether a Workload waits in the queue that its Job names now, and asks for the same pods.

    Raises:
        InvalidQuantityError: as `workload_spec`.
    """
    asked = _pod_sets(job, world)
    return bool(workload.queue == (job.queue or "") and workload.spec["podSets"] == asked)


def metadata_for(job: JobView, world: World) -> Json:
    """The metadata of the Workload that is made for a job object.

    That of a group has no owner: it outlives its pods, of which an eviction may delete all until others are
    made in their places.
    """
    kind, name = job.resource, job.name.rpartition("/")[2]
    labels, annotations = {JOB_LABEL: job.uid}, {KIND_ANNOTATION: kind.kind, OBJECT_ANNOTATION: name}
    metadata = {
        "name": job.workload,
        "namespace": job.namespace,
        "labels": labels,
        "annotations": annotations,
    }
    group = world.pod_groups.get(job.uid)
    if group is not None:
        labels[POD_GROUP_LABEL] = name
        if not group.retriable:
            annotations[RETRIABLE_ANNOTATION] = "false"
        return metadata
    owner = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": job.uid}
    return metadata | {"ownerReferences": [{**owner, "controller": True}]}


def covers(workload: WorkloadView, job: JobView, world: World, catalog: Catalog) -> bool:
    """Whether what was admitted is enough for what the Job asks now.

    The template of a Job that runs can't change, so then only its number of pods counts.
    """
    assert workload.admission is not None
    if job.problem:
        return False
    admitted = {each.name: each for each in workload.admission.pod_sets}
    counts, least, extra = held(workload), least_wanted(job), living(workload)
    if any(name not in counts or n > counts[name] + extra.get(name, 0) for name, n in least.items()):
        return False
    if not is_bounded(workload, job):
        return False
    if not job.suspended or job.selects_itself:
        return not job.suspended
    try:
        asked = _pod_sets(job, world)
        asking = [workloads.pod_set(each, catalog.gpus) for each in asked]
    except InvalidQuantityError:
        return False
    asked_for = {each["name"]: each["count"] for each in workload.spec["podSets"]}
    same = [each | {"count": asked_for.get(each["name"])} for each in asked]
    # The spec may have been another one when it was admitted: what counts is what is reserved.
    return same == list(workload.spec["podSets"]) and all(
        _pays(workload.admission, admitted[each.name], each, catalog) for each in asking
    )


def covers_made(workload: WorkloadView, made: Iterable[JobView], catalog: Catalog) -> bool:
    """Whether what was admitted is enough for what Jobs request that an operator has made.

    Each has the flavors of a pod set that was admitted, and requests nothing that no such pod set does.
    """
    assert workload.admission is not None
    left: Counter[tuple[str, str]] = Counter()
    named: defaultdict[frozenset[tuple[str, str]], set[str]] = defaultdict(set)
    specs = {each["name"]: workloads.pod_set(each, catalog.gpus) for each in workload.spec["podSets"]}
    for each in workload.admission.pod_sets:
        flavors = dict(each.flavors)
        left.update({(flavors[resource], resource): amount for resource, amount in each.usage})
        requests = specs[each.name].requests if each.name in specs else ()
        named[frozenset(each.flavors)] |= flavors.keys() | dict(requests).keys()
    try:
        for job in made:
            flavors = {r: name for each in usage_of(job).pod_sets for r, name in each.flavors}
            template = _derived(POD_SET, orjson.dumps(job.template), job.count(), b"[]", b"{}")
            asking = workloads.pod_set(template, catalog.gpus)
            known = named.get(frozenset(flavors.items()))
            if known is None or not job.is_started_by(workload) or job.oversized:
                return False
            if not dict(asking.requests).keys() <= known:
                return False
            for resource, name in flavors.items():
                flavor = catalog.flavor(name)
                if flavor is not None:
                    left[name, resource] -= asking.request(resource, flavor) * asking.count
    except InvalidQuantityError:
        return False
    return all(amount >= 0 for amount in left.values())


def lacks(workload: WorkloadView, found: Iterable[JobView]) -> bool:
    """Whether job objects have fewer pods of a pod set, all together, than were admitted of it."""
    assert workload.admission is not None
    counts: Counter[str] = Counter()
    for each in (each for job in found for each in job.sets):
        counts[each.name] += each.count
    return any(counts[each.name] < each.count for each in workload.admission.pod_sets)


def _pays(admission: Admission, assignment: Assignment, asking: PodSet, catalog: Catalog) -> bool:
    """Whether what is reserved for a pod set is what it asks for."""
    if any(catalog.flavor(name) is None for _, name in assignment.flavors):
        return True  # nothing to compare with: the start of the Job reports it
    lenient = catalog.lenient(admission.queue)
    return workloads.pays(admission, assignment, asking, catalog.flavor, lenient=lenient)


def _pod_sets(job: JobView, world: World) -> list[Json]:
    """What a Job's pods ask for; none of it may be changed."""
    if job.problem:
        raise InvalidQuantityError(job.problem)
    if job.oversized:
        words = f"its pod template says so in {job.oversized} bytes, and at most {LONGEST_TEMPLATE} are read"
        raise InvalidQuantityError(words)
    rules = world.request_rules
    # of pods that are there the API server has filled in what LimitRanges say
    limits = NONE if job.resource.is_pods else rules.limits_in(job.namespace)
    made = [
        _derived(each.name, orjson.dumps(original_template(job, each)), each.count, limits, rules.classes)
        for each in job.sets
    ]
    most(job)
    least = fewest(job)
    if least is not None:
        made = [each | {"minCount": least} for each in made]
    if len(made) > 1 and weights.weight(made) > weights.HEAVIEST:
        raise InvalidQuantityError(weights.MESSAGE)
    return made


@remembered
def _derived(name: str, template: bytes, count: int, limits: bytes, classes: bytes) -> Json:
    """The same for the same: most Jobs differ in nothing that counts."""
    made = pod_set(name, orjson.loads(template), count, orjson.loads(limits), orjson.loads(classes))
    if weights.weight([made]) > weights.HEAVIEST:
        raise InvalidQuantityError(weights.MESSAGE)
    return made

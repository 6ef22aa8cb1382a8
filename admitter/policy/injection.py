"""What an admission puts into pod templates of a Job, and how the next one takes it out again.

The Job remembers in an annotation what was put in. So the pods of a Job that is admitted a second
time, to another flavor, carry nothing of the first, and what the user wrote is never touched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import orjson

from admitter import names
from admitter.api.job_kind import Injection
from admitter.cache import pod_set_infos, runtime_patches
from admitter.cache.job_resources import PodSetView
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.engine.model import Admission, Assignment, Flavor, Toleration
from admitter.kinds.paths import Change, merge_patch, merged
from admitter.policy.fewer_pods import lowering
from admitter.policy.replicas import bounding


def original_template(job: JobView, pod_set: PodSetView) -> Json:
    """A pod template's spec as its user wrote it, without what the last admission put in."""
    injected = injected_in(job, pod_set)
    if not injected:
        return pod_set.template
    template = dict(pod_set.template)
    selector = {
        key: value
        for key, value in (template.get("nodeSelector") or {}).items()
        if injected["nodeSelector"].get(key) != value
    }
    tolerations = [t for t in template.get("tolerations") or () if t not in injected["tolerations"]]
    template["nodeSelector"], template["tolerations"] = selector, tolerations
    return template


def start_patch(
    job: JobView,
    workload: WorkloadView,
    admission: Admission,
    flavors: Mapping[str, Flavor],
    capacity: str | None,
    raw: Json | None = None,
) -> Json:
    """The merge patch that starts a job object on the flavors that it was admitted to.

    It names the resource version that the Workload was compared with: a Job that changed since is
    not started on what it asked for before. `raw` is the object, if `needs_object` says so.

    The pod sets of the admission are the Job's. `capacity` says whether its pods will be in quota or over
    it; None outside of elastic quotas.
    Of a pod only the scheduling gates of others stay.

    Raises:
        NotSaidError: its operator has not told its pods yet.
        PlaceError: there is no place for what its pods get.
    """
    assigned = {each.name: each for each in admission.pod_sets}
    told: Json = job.resource.told(stop=False)
    if job.resource.is_pods:
        told = {"spec": {"schedulingGates": job.spec.get("schedulingGates")}}
    changes: list[Change] = [((), told)]
    if job.resource.start:
        changes.append((("spec",), dict(job.resource.start)))
    records: Json = {}
    templates: dict[str, Json] = {}
    for each in job.sets:
        # what stands beside templates is written as a whole, whatever was there
        present = each if job.resource.injection is Injection.TEMPLATES else replace(each, marks={})
        marks = _marks(present, workload, admission, assigned[each.name], capacity)
        spec, records[each.name] = _injection(job, each, assigned[each.name], flavors)
        # an operator that adds to a template gets no more than what is to be added
        adds = job.resource.injection is Injection.POD_SET_INFOS
        templates[each.name] = {"metadata": marks, "spec": records[each.name] if adds else spec}
    changes += into_templates(job, templates, raw)
    record = records if job.pod_sets else next(iter(records.values()))
    annotations: dict[str, str | None] = {names.INJECTED_ANNOTATION: _json(record)}
    if job.spec.get("least") is not None:
        noted, fields = lowering(job, sum(each.count for each in admission.pod_sets))
        annotations |= noted
        changes.append((("spec",), fields))
    if job.eviction_time:
        annotations[names.EVICTION_TIME_ANNOTATION] = None
    noted, bounds = bounding(job, admission)
    return patch_of(job, annotations | noted, [*changes, *bounds], raw)


def needs_object(job: JobView) -> bool:
    """Whether patches of an object need all of it: a list in it is written as a whole."""
    if job.resource.injection is not Injection.TEMPLATES:
        return True
    places = (place for each in job.sets for place in (each.place or (), *(at for _, at in each.outside)))
    fields = (place for each in job.sets if each.replicas is not None for place in each.replicas.places)
    return any(isinstance(step, int) for place in (*places, *fields) for step in place)


def patch_of(job: JobView, annotations: Json, changes: list[Change], raw: Json | None) -> Json:
    metadata = {"resourceVersion": str(job.version), "annotations": annotations}
    return merge_patch([((), {"metadata": metadata}), *changes], raw)


def into_templates(job: JobView, templates: Mapping[str, Json], raw: Json | None) -> Iterator[Change]:
    """Changes of the pod templates of some pod sets, or of what stands beside them for that purpose.

    What stands beside them is written as a whole: without pod sets nothing of it is left.
    """
    sets = [each for each in job.sets if each.name in templates]
    match job.resource.injection:
        case Injection.RUNTIME_PATCH:
            yield from runtime_patches.changes(raw, {name: merged({}, templates[name]) for name in templates})
        case Injection.POD_SET_INFOS:
            parts = {each.place: merged({}, templates[each.name]) for each in sets if each.place is not None}
            yield from pod_set_infos.changes(raw, parts)
        case Injection.TEMPLATES:
            for each in sets:
                yield from _into_template(each, templates[each.name])


def _into_template(pod_set: PodSetView, patch: Json) -> Iterator[Change]:
    """A change of a pod template, where it and its fields stand in the object."""
    outside, spec = dict(pod_set.outside), dict(patch["spec"])
    for name in [each for each in spec if each in outside]:
        yield outside[name], spec.pop(name)
    parts = {name: part for name, part in (("metadata", patch["metadata"]), ("spec", spec)) if part}
    if pod_set.place is not None and parts:
        yield pod_set.place, parts


def _injection(
    job: JobView, pod_set: PodSetView, assignment: Assignment, flavors: Mapping[str, Flavor]
) -> tuple[Json, Json]:
    """What becomes of a pod template's spec by an admission: the patch, and the record of what is put in."""
    original = original_template(job, pod_set)
    chosen = [flavors[name] for name in dict.fromkeys(flavor for _, flavor in assignment.flavors)]
    own_selector, own_tolerations = original.get("nodeSelector") or {}, original.get("tolerations") or []
    added_labels = {k: v for flavor in chosen for k, v in flavor.labels if k not in own_selector}
    tolerations_of_flavors = [_toleration(t) for flavor in chosen for t in flavor.tolerations]
    added_tolerations = [t for t in tolerations_of_flavors if t not in own_tolerations]
    present = pod_set.template
    taken_out = {key: None for key in present.get("nodeSelector") or {} if key not in own_selector}
    spec: Json = {"nodeSelector": {**taken_out, **added_labels}}
    tolerations = [*own_tolerations, *added_tolerations]
    if tolerations != (present.get("tolerations") or []):
        spec["tolerations"] = tolerations
    return spec, {"nodeSelector": added_labels, "tolerations": added_tolerations}


def _marks(
    pod_set: PodSetView,
    workload: WorkloadView,
    admission: Admission,
    assignment: Assignment,
    capacity: str | None,
) -> Json:
    """The labels and annotations by which pods of a template are counted."""
    capacities = dict.fromkeys((names.CAPACITY_LABEL, names.CAPACITY_ALIAS_LABEL), capacity)
    counted = {names.COUNTED_ANNOTATION: _counted(admission, assignment)}
    return {
        "labels": {names.WORKLOAD_LABEL: workload.name, names.CLUSTER_QUEUE_LABEL: admission.queue}
        | _where_differing(pod_set, "labels", capacities),
        "annotations": {
            names.WORKLOAD_UID_ANNOTATION: workload.uid,
            names.FLAVORS_ANNOTATION: _json(dict(assignment.flavors)),
        }
        | _where_differing(pod_set, "annotations", counted),
    }


def _where_differing(
    pod_set: PodSetView, part: str, wanted: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Those of some labels or annotations that a pod template does not have as they should be."""
    present = pod_set.marks.get(part) or {}
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _counted(admission: Admission, assignment: Assignment) -> str | None:
    """What a pod's own requests do not tell of its use; None if they tell all."""
    memory = dict(assignment.usage).get(names.GPU_MEMORY)
    fields = {"pool": admission.pool} if admission.pool else {}
    if memory is not None and assignment.count:
        fields[names.GPU_MEMORY] = str(memory // assignment.count)
    return _json(fields) if fields else None


def injected_in(job: JobView, pod_set: PodSetView) -> Json | None:
    """The record of the last injection into a template; an invalid one counts as none.

    A template that stands in another object has nothing in it, nor one beside which it stands.
    """
    inside = job.resource.injection is Injection.TEMPLATES and pod_set.place is not None
    return recorded(job).get(pod_set.name) if job.injected and inside else None


def recorded(job: JobView) -> dict[str, Json]:
    """The records of the last injection, by pod set."""
    try:
        record = orjson.loads(job.injected) if job.injected else None
    except orjson.JSONDecodeError:
        return {}
    by_name = record if job.pod_sets or job.problem else {each.name: record for each in job.sets}
    if not isinstance(by_name, dict):
        return {}
    return {str(name): each for name, each in by_name.items() if _is_record(each)}


def _is_record(record: object) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("nodeSelector"), dict):
        return False
    return isinstance(record.get("tolerations"), list)


def _toleration(toleration: Toleration) -> Json:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.seconds,
    }
    return {name: value for name, value in fields.items() if value not in {"", None}}


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()

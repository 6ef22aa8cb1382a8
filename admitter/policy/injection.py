"""What an admission puts into a Job's pod template, and how the next one takes it out again.

The Job remembers in an annotation what was put in. So the pods of a Job that is admitted a second
time, to another flavor, carry nothing of the first, and what the user wrote is never touched.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from admitter import names
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.engine.model import Admission, Flavor, Toleration


def original_template(job: JobView) -> Json:
    """The pod template's spec as its user wrote it, without what the last admission put in."""
    injected = _injected(job)
    if not injected:
        return job.template
    template = dict(job.template)
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
) -> Json:
    """The merge patch that unsuspends a Job on the flavors it was admitted to.

    It names the resource version that the Workload was compared with: a Job that changed since is
    not started on what it asked for before. A pod is replaced when it has ended, and not while it takes
    its time to end: both together would use more than was admitted.

    The only pod set of the admission is the Job's. `capacity` says whether its pods will be in quota or over
    it; None outside of elastic quotas.
    """
    original = original_template(job)
    assignment = admission.pod_sets[0]
    chosen = [flavors[name] for name in dict.fromkeys(flavor for _, flavor in assignment.flavors)]
    own_selector, own_tolerations = original.get("nodeSelector") or {}, original.get("tolerations") or []
    added_labels = {k: v for flavor in chosen for k, v in flavor.labels if k not in own_selector}
    tolerations_of_flavors = [_toleration(t) for flavor in chosen for t in flavor.tolerations]
    added_tolerations = [t for t in tolerations_of_flavors if t not in own_tolerations]
    taken_out = {key: None for key in job.template.get("nodeSelector") or {} if key not in own_selector}
    injected = {"nodeSelector": added_labels, "tolerations": added_tolerations}
    spec: Json = {"nodeSelector": {**taken_out, **added_labels}}
    tolerations = [*own_tolerations, *added_tolerations]
    if tolerations != (job.template.get("tolerations") or []):
        spec["tolerations"] = tolerations
    capacities = dict.fromkeys((names.CAPACITY_LABEL, names.CAPACITY_ALIAS_LABEL), capacity)
    metadata = {
        "labels": {names.WORKLOAD_LABEL: workload.name, names.CLUSTER_QUEUE_LABEL: admission.queue}
        | _where_differing(job, "labels", capacities),
        "annotations": {
            names.WORKLOAD_UID_ANNOTATION: workload.uid,
            names.FLAVORS_ANNOTATION: _json(dict(assignment.flavors)),
        }
        | _where_differing(job, "annotations", {names.COUNTED_ANNOTATION: _counted(admission)}),
    }
    annotations: dict[str, str | None] = {names.INJECTED_ANNOTATION: _json(injected)}
    if job.eviction_time:
        annotations[names.EVICTION_TIME_ANNOTATION] = None
    return {
        "metadata": {
            "resourceVersion": str(job.version),
            "annotations": annotations,
        },
        "spec": {
            "suspend": False,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def _where_differing(job: JobView, part: str, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """Those of some labels or annotations that a pod template does not have as they should be."""
    present = job.template_metadata.get(part) or {}
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def _counted(admission: Admission) -> str | None:
    """What a pod's own requests do not tell of its use; None if they tell all."""
    assignment = admission.pod_sets[0]
    memory = dict(assignment.usage).get(names.GPU_MEMORY)
    fields = {"pool": admission.pool} if admission.pool else {}
    if memory is not None:
        fields[names.GPU_MEMORY] = str(memory // assignment.count)
    return _json(fields) if fields else None


def _injected(job: JobView) -> dict[str, Any] | None:
    """The record of the last injection; an invalid one counts as none."""
    try:
        record = orjson.loads(job.injected) if job.injected else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("nodeSelector"), dict):
        return None
    return record if isinstance(record.get("tolerations"), list) else None


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

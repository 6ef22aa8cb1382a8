"""How what an admission has put into a stopped object is taken out again, before its quota is free.

Of a Job the next start does that, in one write with what it puts in (`policy.injection`).
"""

from typing import Any

from admitter import names
from admitter.api.job_kind import Injection
from admitter.cache.views import JobView, Json
from admitter.policy.injection import into_templates, original_template, patch_of, recorded
from admitter.policy.replicas import unbounding


def restoration(job: JobView, raw: Json | None) -> Json:
    """The merge patch that takes all of an admission out of an object; `raw` as of a start."""
    templates: dict[str, Json] = {}
    for each in job.sets if job.resource.injection is Injection.TEMPLATES else ():
        original = original_template(job, each)
        own = original.get("nodeSelector") or {}
        taken_out = {key: None for key in each.template.get("nodeSelector") or {} if key not in own}
        spec: Json = {"nodeSelector": taken_out} if taken_out else {}
        if original.get("tolerations") != each.template.get("tolerations"):
            spec["tolerations"] = original["tolerations"] or None
        marks = {part: dict.fromkeys(found) for part, found in each.marks.items() if found}
        templates[each.name] = {"metadata": marks, "spec": spec}
    noted, bounds = unbounding(job)
    changes = [*into_templates(job, templates, raw), *bounds]
    return patch_of(job, {names.INJECTED_ANNOTATION: None, **noted}, changes, raw)


def child_restoration(job: JobView, child: JobView) -> Json:
    """The same for a suspended Job that the operator of an object has made; empty if it has nothing of it.

    The operator merges what its object says later into what the Job has.
    """
    selector, tolerations = child.template.get("nodeSelector") or {}, child.template.get("tolerations") or []
    records = recorded(job).values()
    old = {
        key: None
        for each in records
        for key, value in each["nodeSelector"].items()
        if selector.get(key) == value
    }
    kept = [each for each in tolerations if not any(each in record["tolerations"] for record in records)]
    marks = {part: dict.fromkeys(found) for part, found in child.template_metadata.items() if found}
    spec: Json = {"nodeSelector": old} if old else {}
    if kept != tolerations:
        spec["tolerations"] = kept or None
    template: dict[str, Any] = {"metadata": marks} if marks else {}
    template |= {"spec": spec} if spec else {}
    if not template:
        return {}
    return {"metadata": {"resourceVersion": str(child.version)}, "spec": {"template": template}}

"""What a Workload's own status says: all that some users may read, and the first answer for the others."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from admitter.cache.declared_kinds import described_by
from admitter.cache.job_resources import OF_PODS, sort_of
from admitter.cache.views import JobView, WorkloadView
from admitter.client.store import Key
from admitter.insight.listing import job_name, meant
from admitter.names import QUEUE_LABEL
from admitter.policy.snapshot import QUEUED_PODS, Facts, jobs_in

Json = dict[str, Any]

_CONDITIONS: Final = {"Finished": "Finished", "Evicted": "Evicted", "Admitted": "QuotaReserved"}
"""By state, the condition with the message to show."""


def find(known: Facts, namespace: str, name: str, kind: str | None = None) -> WorkloadView | None:
    """The Workload of a name, or that of the job object of that name; None if there is none.

    With a kind only what has the name as that kind: a Workload of the same name may be that of no Job.

    Raises:
        ManifestError: it may be any of several job objects.
    """
    views: Mapping[Key, WorkloadView] = known.views.get("workloads", {})
    own = views.get((namespace, name))
    if kind == "Workload" or (own is not None and kind is None):
        return own
    title = meant(
        (view.job[0] for key, view in views.items() if key[0] == namespace and view.job), kind, name
    )
    return _titled(views, namespace, title) if title is not None else None


def _titled(views: Mapping[Key, WorkloadView], namespace: str, title: str) -> WorkloadView | None:
    """The Workload of a job object; of several the one that has not finished."""
    here = (view for key, view in views.items() if key[0] == namespace)
    found = (view for view in here if view.job is not None and view.job[0] == title)
    return min(found, key=lambda view: view.finished, default=None)


def title_or_name(known: Facts, namespace: str, name: str, kind: str | None) -> str | None:
    """How a snapshot finds what a user means: a Workload's own name, or a job object's title.

    A pod of a group stands for its group. None if it has nothing of the kind that is named, nor a JobKind
    that describes it.

    Raises:
        ManifestError: it may be any of several job objects.
    """
    workloads, jobs = known.views.get("workloads", {}), jobs_in(known)
    if kind in {None, "Workload"} and (namespace, name) in workloads:
        return name
    titles = [view.job[0] for key, view in workloads.items() if key[0] == namespace and view.job]
    title = meant([*titles, *(job.name for key, job in jobs.items() if key[0] == namespace)], kind, name)
    pod = known.views.get(QUEUED_PODS, {}).get((namespace, name)) if kind in {None, "pod"} else None
    if title is None and pod is not None and (namespace, pod.workload) in workloads:
        return str(pod.workload)
    if title is None:
        sorts = {described_by(view)[1].lower() for view in known.views.get("jobkinds", {}).values()}
        sorts |= {sort_of(title) for title in titles} | OF_PODS.keys()
        asked = f"{kind}/{name}"
        if kind in {None, "Job", "Workload"}:
            return name
        return asked if sorts & {kind, kind.removesuffix("s")} else None
    job = jobs.get((namespace, title))
    return job.workload if job is not None and (namespace, title) in workloads else title


def summary(view: WorkloadView) -> Json:
    """What its status says, with the field names of a whole answer."""
    state = str(view.status.get("state") or "Pending")
    waits = view.admission is None and not view.finished
    condition = view.condition(_CONDITIONS.get(state, ""))
    return {
        "namespace": view.namespace,
        "name": job_name(view),
        "workload": view.name,
        "state": state,
        "reason": view.status.get("reason") if waits else condition.get("reason"),
        "message": view.status.get("message") if waits else condition.get("message"),
    }


def without_workload(job: JobView) -> str | None:
    """Why a Job has no Workload, as far as the Job itself tells; None if it may yet get one."""
    if job.queue is None:
        return f"Admitter has nothing to do with it: it has no label {QUEUE_LABEL}"
    return "it has finished, and its Workload is gone" if job.finished else None


def summary_without_workload(job: JobView) -> Json:
    """The same of a Job that has no Workload; it waits unless it says why it has none."""
    said = without_workload(job)
    state = "Pending" if said is None else None
    return {
        "namespace": job.namespace,
        "name": job.name,
        "workload": None,
        "state": state,
        "reason": None,
        "message": said,
    }


def summary_lines(answer: Json) -> Iterator[str]:
    """The same for people, a line at a time."""
    title = f"{answer['namespace']}/{answer['name']}"
    yield f"{title}: {answer['state']}" if answer["state"] else title
    yield f"  {answer['message'] or 'nothing is known yet: no controller has looked at it'}"


def summary_of(known: Facts, namespace: str, name: str) -> Json | None:
    """What the status says of a Workload, by its own name or its job object's; None if there is neither."""
    workloads, job = known.views.get("workloads", {}), jobs_in(known).get((namespace, name))
    view = workloads.get((namespace, name)) or _titled(workloads, namespace, name)
    if view is not None:
        return summary(view)
    return summary_without_workload(job) if job is not None else None

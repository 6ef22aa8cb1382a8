"""What a Workload's own status says: all that some users may read, and the first answer for the others."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.insight.listing import job_name
from admitter.policy.snapshot import Facts

Json = dict[str, Any]

_CONDITIONS: Final = {"Finished": "Finished", "Evicted": "Evicted", "Admitted": "QuotaReserved"}
"""By state, the condition with the message to show."""


def find(known: Facts, namespace: str, name: str, kind: str | None = None) -> WorkloadView | None:
    """The Workload of a name, or that of the Job of that name; None if there is none.

    With a kind only what has the name as that kind: a Workload of the same name may be that of no Job.
    """
    views: Mapping[Key, WorkloadView] = known.views.get("workloads", {})
    own = views.get((namespace, name))
    if kind == "Workload" or (own is not None and kind is None):
        return own
    of_job = (view for key, view in views.items() if key[0] == namespace and view.job and view.job[0] == name)
    return min(of_job, key=lambda view: view.finished, default=None)


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


def summary_lines(answer: Json) -> Iterator[str]:
    """The same for people, a line at a time."""
    yield f"{answer['namespace']}/{answer['name']}: {answer['state']}"
    yield f"  {answer['message'] or 'nothing is known yet: no controller has looked at it'}"


def summary_of(known: Facts, namespace: str, name: str) -> Json | None:
    """What the status says of a Workload, by its own name or that of its Job; None if there is neither."""
    workloads, job = known.views.get("workloads", {}), known.views.get("jobs", {}).get((namespace, name))
    view = workloads.get((namespace, name)) or (workloads.get((namespace, job.workload)) if job else None)
    if view is not None:
        return summary(view)
    return {"namespace": namespace, "name": name, "state": "Pending", "message": None} if job else None

"""What a Workload's own status says: for those who may read their namespace, and not the whole cluster."""

from typing import Final

from admitter.cluster.transport import Json, Transport
from admitter.controllers.views import WorkloadView, parse_workload
from admitter.controllers.world import OWN
from admitter.insight.pages import listed

_CONDITIONS: Final = {"Finished": "Finished", "Evicted": "Evicted", "Admitted": "QuotaReserved"}
"""By state, the condition whose message says more."""


async def find(transport: Transport, namespace: str, name: str) -> WorkloadView | None:
    """The Workload of a name, or that of the Job of that name; None if there is none.

    Raises:
        ClusterError: the API server does not answer, or its user may not list Workloads in that namespace.
    """
    found: WorkloadView | None = None
    async for raw in listed(transport, f"{OWN}/namespaces/{namespace}/workloads"):
        view = parse_workload(raw)
        if view.name == name:
            return view
        if view.job is not None and view.job[0] == name and (found is None or found.finished):
            found = view
    return found


def told(view: WorkloadView) -> Json:
    """What its status says, under the names that a whole answer has."""
    state = str(view.status.get("state") or "Pending")
    waits = view.admission is None and not view.finished
    condition = view.condition(_CONDITIONS.get(state, ""))
    return {
        "namespace": view.namespace,
        "name": (view.job[0] if view.job is not None else "") or view.name,
        "workload": view.name,
        "state": state,
        "reason": view.status.get("reason") if waits else condition.get("reason"),
        "message": view.status.get("message") if waits else condition.get("message"),
    }

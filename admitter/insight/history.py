"""What happened to Workloads, and why: from the controller's events and from the statuses.

The API server usually keeps events for an hour, and accepts few of them while it is busy. A Workload's
conditions stay, but each reports only its last change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from admitter.cache.job_resources import GROUP_SORT, POD, is_meant, titled
from admitter.cache.views import WorkloadView
from admitter.client.errors import ClusterError
from admitter.client.transport import Json, Transport
from admitter.insight.listing import job_name
from admitter.insight.pages import listed
from admitter.insight.snapshot_file import readable
from admitter.names import API_VERSION, CONTROLLER_NAME, GROUP, POD_GROUP_LABEL, QUEUE_LABEL

_REPORTED: Final = (
    ("Finished", "True", ""),
    ("Evicted", "True", ""),
    ("EvictionPending", "True", "EvictionPending"),
    ("Admitted", "True", ""),
    ("QuotaReserved", "False", ""),
)
"""Conditions to report, the status that reports something, and the word for it if not the reason."""


@dataclass(frozen=True, slots=True, order=True)
class HistoryEntry:
    """Something that happened."""

    time: str  # when, as the API server writes it
    namespace: str  # of the Workload
    name: str  # of its Job, or its own if it has none
    what: str  # in one word: the reason of the event or the condition
    why: str  # in a sentence


async def read(
    transport: Transport, namespace: str | None, named: tuple[str | None, str] | None
) -> list[HistoryEntry]:
    """What happened to one Workload, or to all of a namespace or of all of them; the oldest first.

    One is named by its own name or its job object's, with a kind or None.

    Raises:
        ClusterError: the API server does not answer, or its user may not list events or Workloads there.
    """
    scope = f"/namespaces/{namespace}" if namespace else ""
    selector = f"source={CONTROLLER_NAME}"
    raws = [raw async for raw in listed(transport, f"/apis/{API_VERSION}{scope}/workloads")]
    views = list(readable(raws, "workloads"))
    events = [raw async for raw in listed(transport, f"/api/v1{scope}/events", {"fieldSelector": selector})]
    names = {view.key: job_name(view) for view in views}
    found = {entry for event in events for entry in _of_event(event, names)}
    known = {(each.namespace, each.name, each.what, each.why) for each in found}
    for view in views:
        reported = _of_status(view)
        found |= {each for each in reported if (each.namespace, each.name, each.what, each.why) not in known}
    if named is None:
        return sorted(found)
    kind, name = named
    members = await _members(transport, scope, name) if kind in {None, GROUP_SORT} else set()
    wanted = members | {job for (_, workload), job in names.items() if workload == name}
    return sorted(each for each in found if each.name in wanted or is_meant(each.name, kind, name))


async def _members(transport: Transport, scope: str, group: str) -> set[str]:
    """The pods of a group that are there, as messages name them; none where its user may not list pods.

    Events on a group are about one of its pods: a group is no object.
    """
    path, selector = f"/api/v1{scope}/pods", f"{POD_GROUP_LABEL}={group},{QUEUE_LABEL}"
    try:
        found = [raw["metadata"] async for raw in listed(transport, path, {"labelSelector": selector})]
    except ClusterError:
        return set()
    return {titled(POD.group, POD.kind, metadata["name"]) for metadata in found}


def _of_event(event: Json, names: dict[tuple[str, str], str]) -> Iterator[HistoryEntry]:
    about = event["involvedObject"]
    namespace, name, kind = (str(about.get(field, "")) for field in ("namespace", "name", "kind"))
    group = str(about.get("apiVersion", "")).rpartition("/")[0]
    if kind == "Workload":
        name = names.get((namespace, name), name)
    elif namespace and kind != "Job" and group != GROUP:
        name = titled(group, kind, name)
    elif kind != "Job":
        return
    time = event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]
    yield HistoryEntry(time, namespace, name, event.get("reason", ""), event.get("message", ""))


def _of_status(view: WorkloadView) -> Iterator[HistoryEntry]:
    """What the conditions report; a second condition with the same message adds nothing."""
    said = set()
    for kind, status, word in _REPORTED:
        found = view.condition(kind)
        words = found.get("message", "")
        if found.get("status") == status and words not in said:
            said.add(words)
            what = word or found.get("reason", "")
            yield HistoryEntry(found["lastTransitionTime"], view.namespace, job_name(view), what, words)

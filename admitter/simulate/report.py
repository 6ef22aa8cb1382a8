"""The result of a simulation, as JSON and as tables."""

from collections import Counter
from typing import Any

from rich.table import Table

from admitter.cache.timestamps import seconds
from admitter.convert import workloads
from admitter.engine.model import Admission, FlavorResource
from admitter.policy.lifecycle import Phase
from admitter.quantities.amounts import display, to_amount, to_quantity
from admitter.quantities.durations import written_duration
from admitter.simulate.growth import pods_beside
from admitter.simulate.items import Event, Item
from admitter.simulate.objects import timestamp
from admitter.simulate.simulator import Simulator
from admitter.visible import visible

Json = dict[str, Any]

_WORKLOAD_HEADINGS = (
    *("NAMESPACE", "NAME", "CLUSTERQUEUE", "STATUS", "QUEUED", "WAITED", "STARTED"),
    *("FLAVORS", "PODS", "EVICTIONS"),
)
_QUEUE_HEADINGS = (
    *("CLUSTERQUEUE", "COHORT", "FLAVOR", "RESOURCE"),
    *("USED", "BORROWED", "PENDING", "ADMITTED"),
)


def event_json(event: Event) -> Json:
    return {
        "time": timestamp(event.time),
        "type": event.kind,
        "namespace": event.key[0],
        "name": event.key[1],
        "clusterQueue": event.queue,
        "reason": event.reason,
        "preemptor": "/".join(event.preemptor) if event.preemptor else None,
    }


def result_json(simulator: Simulator, events: list[Event]) -> Json:
    items = sorted(simulator.items.values(), key=lambda item: item.view.key)
    positions, borrowing, real = _positions(simulator), _borrowing(simulator), simulator.engine.capacity.real
    extra = {uid: pods_beside(simulator.engine, item) for uid, item in simulator.items.items()}
    over = {holder for name in simulator.elastic_queue_names() for holder in real(name).holders()}
    return {
        "start": timestamp(simulator.start),
        "end": timestamp(simulator.now),
        "makespan": makespan(simulator),
        "workloads": [
            _workload_json(item, simulator.now, positions, borrowing, over)
            | {"extraPods": extra[item.view.uid]}
            for item in items
        ],
        "events": [event_json(event) for event in events],
        "clusterQueues": [_queue_json(simulator, name) for name in sorted(_shown(simulator))],
        "endless": _endless_json(simulator),
        "errors": [{"object": error.object, "message": error.message} for error in simulator.errors],
    }


def endless_message(simulator: Simulator) -> str:
    """Which workloads evict each other without end; empty if none do."""
    endless = simulator.endless
    if endless is None:
        return ""
    names = {item.view.key: f"{item.view.namespace}/{item.name}" for item in simulator.items.values()}
    turns = ", ".join(
        f"{names[victim]} goes for {names[preemptor]}" for victim, preemptor in endless.evictions
    )
    if endless.repeated:
        return f"workloads evict each other without end, though nothing comes, ends or changes: {turns}"
    last = f"; the last evictions: {turns}" if turns else ""
    return f"decisions come to no end, though nothing comes, ends or changes{last}"


def _endless_json(simulator: Simulator) -> Json | None:
    endless = simulator.endless
    if endless is None:
        return None
    pairs = [
        {"namespace": victim[0], "name": victim[1], "preemptor": "/".join(preemptor)}
        for victim, preemptor in endless.evictions
    ]
    return {"time": timestamp(endless.time), "message": endless_message(simulator), "evictions": pairs}


def _shown(simulator: Simulator) -> set[str]:
    """All queues, and the deleted ones with quota still in use."""
    held = {item.admission.queue for item in simulator.items.values() if item.admission is not None}
    return simulator.queue_names() | {name for name in held if simulator.engine.ledger.used(name)}


def makespan(simulator: Simulator) -> float | None:
    """Seconds from the first workload's creation to the last one's end; None if not all of them end."""
    items = [*simulator.items.values(), *simulator.gone]
    ends = [item.runs[-1].end for item in items if item.runs]
    if not ends or None in ends or any(item.phase is not Phase.FINISHED for item in simulator.items.values()):
        return None
    return max(end for end in ends if end is not None) - min(item.created for item in items)


def _held(item: Item) -> Admission | None:
    """What a workload holds, or held at its end; of one that had ended before the simulation began too."""
    if item.phase is Phase.PENDING:
        return None
    raw = item.view.status.get("admission") if item.admission is None and item.view.finished else None
    return item.admission if raw is None else workloads.admission(raw)


def _workload_json(
    item: Item, now: float, positions: dict[str, int], borrowing: set[str], over: set[str]
) -> Json:
    uid, admission = item.view.uid, _held(item)
    waiting = item.waiting if item.phase is Phase.PENDING else None
    last = item.runs[-1] if item.runs else None
    return {
        "namespace": item.view.namespace,
        "name": item.view.name,
        "job": item.job.name if item.job is not None else None,
        "state": "Preempted" if item.phase is Phase.EVICTED else str(item.phase.state),
        "clusterQueue": item.queue,
        "borrowing": uid in borrowing,
        "queued": timestamp(item.created),
        "waited": sum(end - start for start, end in item.waits(now)),
        "started": timestamp(last.start) if last is not None else None,
        "ended": timestamp(last.end) if last is not None and last.end is not None else None,
        "pods": sum(each.count for each in admission.pod_sets)
        if admission is not None
        else sum(each["count"] for each in item.view.spec["podSets"]),
        "evictions": sum(run.evicted for run in item.runs),
        "capacity": ("over-quota" if uid in over else "in-quota") if admission and admission.pool else None,
        "podSets": [
            {
                "name": pod_set.name,
                "count": pod_set.count,
                "flavors": dict(pod_set.flavors),
                "usage": {resource: to_quantity(resource, amount) for resource, amount in pod_set.usage},
            }
            for pod_set in (admission.pod_sets if admission is not None else ())
        ],
        "reason": waiting.reason if waiting is not None else "",
        "message": waiting.message if waiting is not None else "",
        "position": positions.get(uid),
    }


def _positions(simulator: Simulator) -> dict[str, int]:
    """The place of each waiting workload in its ClusterQueue, from 1."""
    waiting = [item for item in simulator.items.values() if item.phase is Phase.PENDING]
    queues = {item.queue for item in waiting if item.queue}
    return {uid: n for queue in queues for n, uid in enumerate(simulator.engine.line(queue), start=1)}


def _borrowing(simulator: Simulator) -> set[str]:
    """The UIDs of workloads on borrowed quota: those above the queue's own quota, in order of admission."""
    book = simulator.engine.ledger.real
    running = [item for item in simulator.items.values() if item.phase.runs]
    used: Counter[tuple[str, FlavorResource]] = Counter()
    found = set()
    for item in sorted(running, key=lambda item: item.order):
        assert item.admission is not None
        name, sums = item.admission.queue, item.admission.usage
        used.update({(name, key): amount for key, amount in sums})
        if any(amount and used[name, key] > book.cell(name, key).subtree_quota for key, amount in sums):
            found.add(item.view.uid)
    return found


def _queue_json(simulator: Simulator, name: str) -> Json:
    usage: dict[str, dict[str, Json]] = {}
    queue = simulator.engine.tree.queues.get(name)
    used = simulator.engine.ledger.used(name)
    for flavor, resource in [*(queue.keys() if queue is not None else ()), *used]:
        amount = used.get((flavor, resource), 0)
        cell = simulator.engine.ledger.real.cell(name, (flavor, resource))
        usage.setdefault(flavor, {})[resource] = {
            "used": to_quantity(resource, amount),
            "borrowed": to_quantity(resource, max(0, amount - cell.subtree_quota)),
        }
    phases = Counter(item.phase for item in simulator.items.values() if item.queue == name)
    return {
        "name": name,
        "cohort": queue.cohort or None if queue is not None else None,
        "usage": usage,
        "pending": phases[Phase.PENDING] + phases[Phase.EVICTED],
        "admitted": phases[Phase.ADMITTED] + phases[Phase.EVICTION_PENDING],
    }


def workload_table(result: Json) -> Table:
    """Workloads, one a line; times are since the start of the simulation."""
    table = Table(box=None, header_style="bold")
    for heading in _WORKLOAD_HEADINGS:
        right = heading in {"QUEUED", "WAITED", "STARTED", "PODS", "EVICTIONS"}
        table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    start = seconds(result["start"])
    for row in result["workloads"]:
        flavors = dict.fromkeys(f for pod_set in row["podSets"] for f in pod_set["flavors"].values())
        over = row["capacity"] == "over-quota"
        state = row["state"] + (", over quota" if over else ", borrowing" if row["borrowing"] else "")
        cells = (
            *_named(row),
            state,
            written_duration(seconds(row["queued"]) - start),
            written_duration(row["waited"]),
            written_duration(seconds(row["started"]) - start) if row["started"] else "",
            ", ".join(flavors),
            row["pods"] + row["extraPods"],
            row["evictions"] or "",
        )
        table.add_row(*map(visible, cells))
    return table


def waiting_table(result: Json) -> Table | None:
    """Workloads that wait, with their place in line and the reason; None if none does."""
    rows = [row for row in result["workloads"] if row["state"] == Phase.PENDING]
    table = Table(box=None, header_style="bold")
    for heading in ("NAMESPACE", "NAME", "CLUSTERQUEUE", "POSITION"):
        table.add_column(heading, no_wrap=True)
    table.add_column("WHY IT WAITS", overflow="fold")
    for row in rows:
        table.add_row(*map(visible, (*_named(row), row["position"] or "", row["message"])))
    return table if rows else None


def _named(row: Json) -> tuple[str, str, str]:
    return row["namespace"], row["job"] or row["name"], row["clusterQueue"] or ""


def summary(result: Json) -> str:
    """How long all of it takes, or what is left at the end."""
    counts = Counter(row["state"] for row in result["workloads"])
    if result["makespan"] is not None:
        lasted = written_duration(result["makespan"])
        return f"Makespan: {lasted}, until all of {counts.total()} workloads have finished"
    lasted = written_duration(seconds(result["end"]) - seconds(result["start"]))
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    why = "no workload ran" if counts.keys() <= {Phase.FINISHED} else "not all workloads finish"
    return f"No makespan: {why}; after {lasted}: {states or 'no workloads'}"


def queue_table(result: Json) -> Table:
    """ClusterQueues with their use, one flavor and resource a line."""
    table = Table(box=None, header_style="bold")
    for heading in _QUEUE_HEADINGS:
        table.add_column(heading, no_wrap=True)
    for row in result["clusterQueues"]:
        first = (row["name"], row["cohort"] or "", str(row["pending"]), str(row["admitted"]))
        for flavor, resources in row["usage"].items() or [("", {"": {"used": "", "borrowed": ""}})]:
            for resource, use in resources.items():
                name, cohort, pending, admitted = first
                used, borrowed = (_shown_use(resource, use[field]) for field in ("used", "borrowed"))
                cells = (name, cohort, flavor, resource, used, borrowed, pending, admitted)
                table.add_row(*map(visible, cells))
                first = ("", "", "", "")
    return table


def _shown_use(resource: str, quantity: str) -> str:
    """A quantity as people read it; empty for a queue without resources."""
    return display(resource, to_amount(resource, quantity)) if quantity else ""

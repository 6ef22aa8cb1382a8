"""Scenes at any time, for histories."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from admitter.insight.forecast.deadline import NO_LIMIT
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.web.history import History
from admitter.web.scene import WebScene
from admitter.web.turns import Limits
from tests.insight.states import NOW, State, moment
from tests.web.pages import LEADS

Json = dict[str, Any]


def scene(state: State, second: float = 0.0) -> WebScene:
    """What a state shows so many seconds after midnight."""
    known = replace(facts(state.snapshot()), taken=NOW + second)
    return WebScene(known, Snapshot(known), 1, Limits(NO_LIMIT), lambda: LEADS)


def cluster(*queues: str) -> State:
    """Queues of 8 CPUs, each with a namespace of its name."""
    state = State()
    for queue in queues:
        state.queue(queue, {"cpu": {"default": {"min": "8"}}})
        state.namespace(f"team-{queue}", queue)
    return state


def evicted(
    second: float,
    reason: str = "Preempted",
    *,
    released: float | None = None,
    by: Mapping[str, str] | None = None,
) -> Json:
    """The status of a Workload that had to stop at a second; `released`: since when its quota is free."""
    admission = {"clusterQueue": "a", "podSets": [{"name": "main", "count": 1}]}
    state: Json = {
        "state": "Evicted" if released is None else "Pending",
        "reason": reason,
        "conditions": [
            _condition(
                "QuotaReserved", released is None, reason, second - 100 if released is None else released
            ),
            _condition("Evicted", True, reason, second),
        ],
    }
    if by is not None:
        state["preemption"] = {"admission": admission, "uid": "p", "generation": 1, **by}
    return state


def _condition(kind: str, status: bool, reason: str, second: float) -> Json:
    return {
        "type": kind,
        "status": str(status),
        "reason": reason,
        "message": "",
        "lastTransitionTime": moment(second),
    }


def change(made: Json, status: Json, *, drop: tuple[str, ...] = ()) -> None:
    """Give an object another status, as a later version of it."""
    made["metadata"]["resourceVersion"] = str(int(made["metadata"]["resourceVersion"]) + 1000)
    made["status"] = {key: each for key, each in (made["status"] | status).items() if key not in drop}


def shown(history: History, state: State, second: float) -> None:
    history.add(scene(state, second))

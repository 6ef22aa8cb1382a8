"""What the page of a workload gets: times in seconds since the epoch, amounts as a number and in words."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Final

from admitter.api.conditions import ConditionType, WorkloadState
from admitter.cache.job_resources import GROUP_SORT, sort_of
from admitter.cache.resize_status import resize_of
from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import JobView, WorkloadView
from admitter.engine.refusal import Reason
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.explain.account import Holding, Tried, holdings, is_never, last_holdings, tried
from admitter.insight.explain.advice import advice
from admitter.insight.explain.explainer import Answer, Other
from admitter.insight.explain.life import WILL, Happening
from admitter.insight.explain.pods import Pods, PodState
from admitter.insight.explain.text import headline, start, start_line
from admitter.insight.forecast.estimates import CONFIDENCE, Estimate
from admitter.names import POD_GROUP_LABEL
from admitter.policy.growing import admitted_pods
from admitter.policy.growing import words as resize_words
from admitter.policy.messages import node_title, pod_set_title, queue_title
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import CPU, display
from admitter.visible import visible

Json = dict[str, Any]

MOST_AHEAD: Final = 50
"""Workloads ahead that are named; the queue's page has all of them."""
MOST_BLOCKING: Final = 200
MOST_PODS: Final = 500
"""Pods that are named: those with trouble come first."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a user may see of a workload."""

    answer: Answer
    life: list[Happening]
    pods: Pods | None
    may_see_pods: bool  # whether the names of its pods, and their nodes
    node_key: Callable[[PodState], str | None]  # by which the map knows a pod's node for the user
    text: Callable[[str], str]  # makes a message one without names that the user may not see
    more_ahead: int = 0  # than the answer names
    told: bool = True  # whether the user may know the use and the line of its queue


@dataclass(frozen=True, slots=True)
class More:
    """How many Workloads an answer does not name."""

    ahead: int
    blocking: int


def shortened(answer: Answer) -> tuple[Answer, More]:
    """An answer with as many Workloads as are named; what a user may see is asked about these alone."""
    ahead, blocking = answer.ahead[:MOST_AHEAD], answer.blocking[:MOST_BLOCKING]
    more = More(len(answer.ahead) - len(ahead), len(answer.blocking) - len(blocking))
    return replace(answer, ahead=ahead, blocking=blocking), more


def answer_json(
    shown: Shown, snapshot: Snapshot, deciding: ControllerStatus | None, waiting: int | None
) -> Json:
    """All that is known at once; `waiting` is how many workloads wait in its queue."""
    answer, workload = shown.answer, shown.answer.workload
    lines = [shown.text(line) for line in headline(answer, snapshot, deciding)]
    if workload is None:
        lines = list(answer.hints)
    decides = deciding is not None and (workload is None or not workload.finished)
    return _about(shown, job_of(snapshot, answer), snapshot.now) | {
        "complete": True,
        "waits": answer.explanation is not None,
        "reason": answer.waiting.reason if answer.waiting is not None else _reason(workload),
        "sentences": lines,
        "position": answer.position,
        "inLine": waiting,
        "never": is_never(answer),
        "advice": advice(answer),
        "hints": [shown.text(hint) for hint in answer.hints] if workload is not None else [],
        "controller": deciding.as_json() if decides and deciding is not None else None,
        "flavors": [_tried_json(each, answer) for each in tried(answer)],
        "ahead": [_other_json(other) for other in answer.ahead],
        "moreAhead": shown.more_ahead,
        "expectedEnd": answer.ends,
    }


def stated_json(shown: Shown, job: JobView | None, now: float, stated: Json) -> Json:
    """What the status of a workload says, with the field names of a whole answer."""
    return _about(shown, job, now) | {
        "complete": False,
        "waits": False,
        "reason": stated["reason"],
        "sentences": [shown.text(str(stated["message"]))] if stated["message"] else [],
        "position": None,
        "inLine": None,
        "never": False,
        "advice": "",
        "hints": [],
        "controller": None,
        "flavors": [],
        "ahead": [],
        "moreAhead": 0,
        "expectedEnd": None,
    }


def gone_json(shown: Shown, now: float) -> Json:
    """What is known of a workload that is gone, with the field names of a whole answer."""
    nothing = stated_json(shown, None, now, {"reason": None, "message": None})
    return nothing | {"complete": True, "state": "Gone"}


def job_of(snapshot: Snapshot, answer: Answer) -> JobView | None:
    """The job object that an answer is about, if it is there."""
    job = snapshot.world.job_titled(*answer.key)
    if job is None and answer.workload is not None:
        return snapshot.world.job_of(answer.workload.key)
    return job


def _about(shown: Shown, job: JobView | None, now: float) -> Json:
    """What is known of a workload without an explanation."""
    answer, workload = shown.answer, shown.answer.workload
    namespace, name = answer.key
    return {
        "taken": now,
        "namespace": namespace,
        "name": name,
        "workload": workload.name if workload is not None else None,
        "state": str(workload.status.get("state") or WorkloadState.PENDING) if workload is not None else None,
        "queue": {"name": answer.queue, "title": queue_title(answer.queue)} if answer.queue else None,
        "told": shown.told,
        "localQueue": workload.queue if workload is not None else job.queue if job is not None else None,
        "priority": int(workload.spec.get("priority") or 0) if workload is not None else None,
        "priorityClass": _class(workload),
        "evicting": workload is not None and workload.evicting,
        "jobEnd": job.finished if job is not None else None,
        "jobEndMessage": job.finish_message if job is not None else "",
        "holds": [_holding_json(each) for each in holdings(workload)] if workload is not None else [],
        "held": [_holding_json(each) for each in last_holdings(workload)] if workload is not None else [],
        **_running(workload),
        "checkpoint": (job.checkpoint or None) if job is not None else None,
        "timeline": [_happening_json(each) for each in shown.life],
        "pods": _pods_json(shown.pods, shown) if shown.pods is not None else None,
        "commands": commands(answer),
    }


def _class(workload: WorkloadView | None) -> str | None:
    spec = workload.spec if workload is not None else {}
    found = spec.get("workloadPriorityClass") or spec.get("priorityClassName")
    return str(found) if found else None


def _reason(workload: WorkloadView | None) -> str | None:
    """Why one that does not wait is where it is, in one word."""
    if workload is None:
        return None
    kind = ConditionType.FINISHED if workload.finished else ConditionType.EVICTED
    found = workload.condition(kind)
    return str(found.get("reason", "")) or None if found.get("status") == "True" else None


def _running(workload: WorkloadView | None) -> Json:
    """Its limits of time and its growth."""
    if workload is None:
        return {"runTime": None, "readiness": None, "resize": None}
    run_time, known, resize = run_time_of(workload.status), workload.readiness, resize_of(workload)
    base = admitted_pods(workload.admission) if workload.admission is not None else 0
    return {
        "runTime": {
            "used": run_time.used,
            "deadline": run_time.deadline,
            "limit": run_time.limit,
            "requeues": run_time.requeues,
        }
        if workload.status.get("runTime")
        else None,
        "readiness": {
            "deadline": known.deadline,
            "readyAt": known.ready_at,
            "recoverBy": known.recover_by,
            "attempts": known.attempts,
            "nextTry": known.next_try,
            "gaveUp": known.gave_up,
        }
        if workload.status.get("readiness")
        else None,
        "resize": {
            "admitted": base,
            "granted": resize.granted,
            "wanted": resize.wanted,
            "words": resize_words(resize, base),
        }
        if resize is not None
        else None,
    }


def amount_json(resource: str, amount: int) -> Json:
    """An amount in cores, bytes or devices, and as users write it."""
    return {
        "value": amount / 1000 if resource == CPU else amount,
        "words": display(resource, amount) if amount else "0",
    }


def _holding_json(each: Holding) -> Json:
    return {
        "podSet": pod_set_title(each.pod_set),
        "count": each.count,
        "of": each.whole,
        "admitted": each.admitted,
        "usage": [
            {"resource": resource, "flavor": flavor, "amount": amount_json(resource, amount)}
            for resource, flavor, amount in each.usage
        ],
    }


def _tried_json(each: Tried, answer: Answer) -> Json:
    made: Json = {
        "podSet": pod_set_title(each.pod_set),
        "flavor": each.flavor,
        "mismatch": each.mismatch or None,
    }
    amounts = each.amounts
    if amounts is None:
        return made
    resource = amounts.resource

    def amount(value: int) -> Json:
        return amount_json(resource, value)

    return made | {
        "resource": resource,
        "binding": each.binding,
        "possible": amounts.possible,
        "asked": amount(amounts.asked),
        "free": amount(amounts.free),
        "borrowable": amount(amounts.borrowable),
        "short": amount(max(0, amounts.lacking)),
        "most": amount(amounts.most),
        "cutByMax": amount(amounts.cut_by_max),
        "claimed": amount(amounts.claimed),
        "kept": [
            {"title": node_title(*node), "kind": node[0], "name": node[1], "amount": amount(value)}
            for node, value in amounts.keepers
        ],
        "claims": [
            {
                **_named(answer.owners.get(uid, ("", ""))),
                "owner": node_title(*node),
                "amount": amount(min(value, amounts.claimed)),
            }
            for uid, node, value in amounts.claims
        ],
    }


def _named(key: tuple[str, str]) -> Json:
    """A workload by namespace and name, unless it is hidden or not known."""
    shown = bool(key[0])
    return {"visible": shown, "namespace": key[0] if shown else None, "name": key[1] if shown else None}


def _other_json(other: Other) -> Json:
    named = _named(other.key)
    return {
        **named,
        "priority": other.priority if named["visible"] else None,
        "ends": other.ends,
        "unproven": other.unproven,
        "notEvicted": other.not_evicted or None,
        "extra": other.extra,
        "podSet": other.pod_set,
    }


def _happening_json(each: Happening) -> Json:
    by = each.preemptor
    return {
        "at": each.at,
        "what": each.what,
        "coming": each.what in WILL,
        "reason": each.reason or None,
        "message": each.message or None,
        "preemptor": {**_named(by.key), "queue": by.queue, "rule": by.rule} if by is not None else None,
    }


def _pods_json(pods: Pods, shown: Shown) -> Json:
    named = shown.may_see_pods
    return {
        "wanted": pods.wanted,
        "ready": pods.ready,
        "words": pods.words,
        "states": [{"state": state, "count": count} for state, count in pods.counts],
        "named": named,
        "pods": [
            {
                "name": each.name,
                "state": each.state,
                "detail": each.detail or None,
                "node": each.node or None,
                "nodeKey": shown.node_key(each),
                "created": each.created,
            }
            for each in pods.pods[:MOST_PODS]
        ]
        if named
        else [],
        "more": max(0, len(pods.pods) - MOST_PODS) if named else 0,
    }


def outlook_json(
    answer: Answer | None,
    estimate: Estimate | None,
    now: float,
    deciding: ControllerStatus | None,
    more_blocking: int = 0,
) -> Json:
    """What would let it in and when it starts; an answer of None: that was not worked out in time.

    `more_blocking` Workloads are in the way besides those that the answer names.
    """
    blocking = answer.blocking if answer is not None else ()
    return {
        "taken": now,
        "sought": answer is not None and answer.sought,
        "never": answer is not None and is_never(answer),
        "preempting": answer is not None and _preempts(answer),
        "blocking": [_other_json(other) for other in blocking],
        "moreBlocking": more_blocking,
        "start": _start_json(estimate, now, deciding) if estimate is not None else None,
    }


def _preempts(answer: Answer) -> bool:
    """Whether others are being evicted for it."""
    refusal = answer.explanation.refusal if answer.explanation is not None else None
    return refusal is not None and refusal.reason is Reason.PREEMPTING


def _start_json(estimate: Estimate, now: float, deciding: ControllerStatus | None) -> Json:
    def moment(after: float | None) -> float | None:
        return now + after if after is not None else None

    return {
        "earliest": moment(estimate.earliest),
        "median": moment(estimate.median),
        "latest": moment(estimate.latest),
        "sentence": start_line(start(estimate), deciding),
        "inTime": not estimate.late,
        "told": estimate.told,
        "of": estimate.runs,
        "confidence": CONFIDENCE if estimate.told == estimate.runs else None,
        "coming": estimate.coming,
        "sources": list(estimate.sources),
        "unproven": estimate.unproven,
        "playedUntil": moment(estimate.reached),
        "fromController": deciding is not None and deciding.lacks_decisions,
    }


def commands(answer: Answer) -> list[Json]:
    """Commands for a shell that give the same answers."""
    namespace, title = answer.key
    workload = answer.workload
    by_hand = workload is not None and workload.job is None
    form = title if sort_of(title) else f"wl/{title}" if by_hand else f"job/{title}"
    found = [("explain", ["admitter", "explain", form]), ("history", ["admitter", "history", form])]
    if sort_of(title) == GROUP_SORT:
        group = title.rpartition("/")[2]
        found.append(("pods", ["kubectl", "get", "pods", "-l", f"{POD_GROUP_LABEL}={group}"]))
    elif not by_hand:
        found.append(("describe", ["kubectl", "describe", form]))
    if workload is not None:
        found.append(("workload", ["kubectl", "describe", "workloads.admitter.dev", workload.name]))
    return [{"what": what, "command": _shell([*words, "-n", namespace])} for what, words in found]


def _shell(words: Iterable[str]) -> str:
    """A command in which no name is anything but a name, and nothing is hidden."""
    return " ".join(quote(visible(word)) for word in words)

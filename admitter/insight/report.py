"""Answers as JSON, for programs."""

from typing import Any

from admitter.engine.explain.explanation import Amounts
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.explain.account import tried
from admitter.insight.explain.advice import advice
from admitter.insight.explain.explainer import Answer, Other, is_hopeless
from admitter.insight.explain.life import Happening, life
from admitter.insight.explain.pods import Pods, pods_of
from admitter.insight.explain.text import sentence
from admitter.insight.forecast.estimates import CONFIDENCE, Estimate
from admitter.insight.listing import Row
from admitter.insight.stamps import stamp
from admitter.policy.messages import node_title, queue_title
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import to_quantity

Json = dict[str, Any]


def answer_json(
    answer: Answer,
    estimate: Estimate | None,
    snapshot: Snapshot,
    controllers: ControllerStatus | None = None,
) -> Json:
    workload, explanation = answer.workload, answer.explanation
    waits = workload is not None and workload.admission is None and not workload.finished
    return {
        "namespace": answer.key[0],
        "name": answer.key[1],
        "workload": workload.name if workload is not None else None,
        "state": (workload.status.get("state") or "Pending") if workload is not None else None,
        "queue": queue_title(answer.queue) if answer.queue is not None else None,
        "position": answer.position,
        "reason": answer.waiting.reason if answer.waiting is not None else None,
        "message": sentence(answer, snapshot, controllers) if waits else None,
        "never": is_hopeless(explanation.refusal) if explanation is not None else False,
        "advice": advice(answer) or None,
        "flavors": _flavors(answer),
        "ahead": [_other(other) for other in answer.ahead],
        "wouldLetIn": [_other(other) for other in answer.blocking] if answer.sought else None,
        "hints": list(answer.hints),
        "ends": _time(answer.ends),
        "start": estimate_json(estimate, snapshot.now) if estimate is not None else None,
        "controller": controllers.as_json() if controllers is not None else None,
        "timeline": [happening_json(each) for each in life(snapshot.world, workload, snapshot.now)]
        if workload is not None
        else [],
        "pods": pods_json(pods_of(snapshot.world, workload)) if workload is not None else None,
    }


def row_json(row: Row) -> Json:
    return {
        "namespace": row.workload.namespace,
        "name": row.job,
        "workload": row.workload.name,
        "localQueue": row.workload.queue,
        "queue": queue_title(row.queue) if row.queue else None,
        "priority": row.workload.spec.get("priority", 0),
        "state": row.state,
        "position": row.position,
        "reason": row.reason or None,
        "created": _time(row.workload.created),
    }


def _flavors(answer: Answer) -> list[Json]:
    return [
        _amounts(each.pod_set, each.amounts, answer, binding=each.binding)
        if each.amounts is not None
        else {"podSet": each.pod_set, "flavor": each.flavor, "mismatch": each.mismatch}
        for each in tried(answer)
    ]


def _amounts(pod_set: str, amounts: Amounts, answer: Answer, *, binding: bool) -> Json:
    def quantity(amount: int) -> str:
        return to_quantity(amounts.resource, amount)

    return {
        "podSet": pod_set,
        "flavor": amounts.flavor,
        "resource": amounts.resource,
        "asked": quantity(amounts.asked),
        "free": quantity(amounts.free),
        "borrowable": quantity(amounts.borrowable),
        "short": quantity(max(0, amounts.lacking)),
        "cutByMax": quantity(amounts.cut_by_max),
        "kept": {node_title(*node): quantity(amount) for node, amount in amounts.keepers},
        "claimed": quantity(amounts.claimed),
        "claims": [
            {**_owner(answer, uid), "owner": node_title(*node), "amount": quantity(amount)}
            for uid, node, amount in amounts.claims
        ],
        "possible": amounts.possible,
        "binding": binding,
    }


def _owner(answer: Answer, uid: str) -> Json:
    """The Workload with a claim, as users know it."""
    namespace, name = answer.owners.get(uid, (None, None))
    return {"namespace": namespace, "name": name}


def happening_json(each: Happening) -> Json:
    by = each.preemptor
    return {
        "time": _time(each.at),
        "what": each.what,
        "reason": each.reason or None,
        "message": each.message or None,
        "preemptor": {"namespace": by.key[0], "name": by.key[1], "queue": by.queue, "rule": by.rule or None}
        if by is not None
        else None,
    }


def pods_json(pods: Pods) -> Json:
    """The pods of a Workload: those in each state, and each one."""
    return {
        "wanted": pods.wanted,
        "ready": pods.ready,
        "message": pods.words or None,
        "states": dict(pods.counts),
        "pods": [
            {
                "name": each.name,
                "state": each.state,
                "message": each.detail or None,
                "node": each.node or None,
                "created": _time(each.created),
            }
            for each in pods.pods
        ],
    }


def _other(other: Other) -> Json:
    return {
        "namespace": other.key[0],
        "name": other.key[1],
        "priority": other.priority,
        "ends": _time(other.ends),
        "unproven": other.unproven,
        "notEvicted": other.not_evicted or None,
        "extra": {"count": other.extra, "podSet": other.pod_set or None} if other.extra else None,
    }


def estimate_json(estimate: Estimate, now: float) -> Json:
    def moment(after: float | None) -> str | None:
        return _time(now + after) if after is not None else None

    return {
        "earliest": moment(estimate.earliest),
        "median": moment(estimate.median),
        "latest": moment(estimate.latest),
        "confidence": CONFIDENCE if estimate.told == estimate.runs else None,
        "sources": list(estimate.sources),
        "unknown": estimate.unknown,
        "unprovenWords": estimate.unproven,
        "coming": estimate.coming,
        "futures": {"told": estimate.told, "of": estimate.runs},
        "inTime": not estimate.late,
        "playedUntil": moment(estimate.reached),
    }


def _time(moment: float | None) -> str | None:
    return stamp(moment) if moment is not None else None

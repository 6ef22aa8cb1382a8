"""Answers in words, for people: the binding rule first, then everything else."""

from collections.abc import Iterable, Iterator
from typing import Final

from admitter.api.conditions import WorkloadState
from admitter.cache.resize_status import resize_of
from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import WorkloadView
from admitter.engine.explain.explanation import Amounts, Explanation
from admitter.engine.policy import Queue
from admitter.engine.refusal import Reason
from admitter.insight.controller_status import ControllerState, ControllerStatus
from admitter.insight.explain.account import holdings
from admitter.insight.explain.explainer import Answer, Other, binding, is_hopeless
from admitter.insight.forecast.estimates import CONFIDENCE, Estimate
from admitter.insight.stamps import spell
from admitter.names import ANY_NODE
from admitter.policy.growing import admitted_pods
from admitter.policy.growing import words as resize_words
from admitter.policy.messages import flavor_sentence, node_title, pod_set_title, queue_title
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import display

SHOWN: Final = 5
"""Items of a list that are shown; the others are counted."""


def opening(answer: Answer, snapshot: Snapshot, controllers: ControllerStatus | None = None) -> Iterator[str]:
    """What is known at once, a line at a time: why it waits, the flavors tried, the workloads ahead of it.

    Without `controllers` the snapshot is of no cluster that is there.
    """
    title = "/".join(answer.key)
    state = _state(answer)
    yield f"{title}: {state}" if state else title
    yield from (f"  {line}" for line in headline(answer, snapshot, controllers))
    finished = answer.workload is not None and answer.workload.finished
    if controllers is not None and controllers.lacks_decisions and not finished:
        yield f"  {controllers.sentence()}"
    yield from (f"  hint: {hint}" for hint in answer.hints)
    if answer.explanation is not None:
        yield ""
        yield from _tried(answer.explanation)
        yield from _ahead(answer)


def has_start(answer: Answer) -> bool:
    return answer.explanation is not None and not is_hopeless(answer.explanation.refusal)


def _state(answer: Answer) -> str:
    if answer.workload is None:
        return ""
    state = WorkloadState(answer.workload.status.get("state") or WorkloadState.PENDING)
    place = f" in {queue_title(answer.queue)}" if answer.queue is not None else ""
    if answer.position is not None:
        place += f", number {answer.position} in line"
    return f"{state}{place}"


def headline(answer: Answer, snapshot: Snapshot, controllers: ControllerStatus | None) -> Iterator[str]:
    """What counts most, a sentence each: the rule that stops it, what it holds and for how long, its end."""
    workload = answer.workload
    if workload is None:
        return
    if workload.finished:
        yield str(workload.condition("Finished").get("message", "it has finished"))
    elif workload.admission is not None:
        for each in holdings(workload):
            used = _joined(f"{display(r, a)} {r} of {flavor}" for r, flavor, a in each.usage)
            since = spell(snapshot.now - workload.since)
            pods = f"{each.count} of " if each.fewer else ""
            pods += f"{each.whole} {'pod' if each.whole == 1 else 'pods'}"
            yield f"holds {used or 'nothing that is limited'} for {pods}, since {since}"
        resize = resize_of(workload)
        if resize is not None:
            yield resize_words(resize, admitted_pods(workload.admission))
        if workload.evicting:
            yield str(workload.condition("Evicted").get("message", ""))
        elif answer.ends is not None:
            yield f"expected to end {within(answer.ends - snapshot.now)}"
        yield from _latest_end(workload, snapshot.now)
    else:
        yield sentence(answer, snapshot, controllers)


def _latest_end(workload: WorkloadView, now: float) -> Iterator[str]:
    """When a Workload that runs has to end, if it may not go on for ever."""
    status = run_time_of(workload.status)
    if status.deadline is None or workload.evicting:
        return
    then = "; then it is requeued" if status.requeues else ""
    yield f"ends at the latest {within(status.deadline - now)}: {status.limit}{then}"


def sentence(answer: Answer, snapshot: Snapshot, controllers: ControllerStatus | None = None) -> str:
    """Why it waits, in one sentence: the rule that refuses it."""
    explanation, waiting = answer.explanation, answer.waiting
    if waiting is None:
        return f"nothing stands in its way: it is admitted {_soon(controllers)}"
    if explanation is None or explanation.refusal is None:
        return waiting.message
    if is_hopeless(explanation.refusal):
        return f"can never run here: {waiting.message}"
    found = binding(explanation)
    if found is None or explanation.refusal.reason is not Reason.INSUFFICIENT_QUOTA:
        return waiting.message
    pod_set, amounts = found
    queue = snapshot.engine.tree.queues[explanation.workload.queue]
    several = len(explanation.amounts) > 1
    return (f"{pod_set_title(pod_set)} " if several else "") + _shortage(amounts, queue, answer)


def _soon(controllers: ControllerStatus | None) -> str:
    """When a Workload is admitted that nothing but the absence of a controller delays."""
    if controllers is None or controllers.state is ControllerState.LEADING:
        return "at once"
    return "at once if a controller runs" if not controllers.lacks_decisions else "once a controller decides"


def _shortage(amounts: Amounts, queue: Queue, answer: Answer) -> str:
    """What is missing of one resource in one flavor, and which queue has it."""
    resource = amounts.resource
    place = "" if amounts.flavor == ANY_NODE else f" in flavor {amounts.flavor}"
    words = [f"{_amount(resource, amounts.free)} free in {queue_title(queue.name)}"]
    if queue.cohort and not queue.pool:
        words.append(f"{_amount(resource, amounts.borrowable)} more can be borrowed from {queue.cohort}")
    elif amounts.borrowable:
        words.append(f"{_amount(resource, amounts.borrowable)} more can be borrowed")
    words.append(f"{_amount(resource, amounts.lacking)} short")
    made = f"waits for {_amount(resource, amounts.asked)} × {resource}{place}: {', '.join(words)}"
    if amounts.cut_by_max:
        made += f"; max keeps {_amount(resource, amounts.cut_by_max)} from it"
    for (kind, name), amount in amounts.keepers[:SHOWN]:
        made += f"; {node_title(kind, name)}'s lendingLimit keeps {_amount(resource, amount)} home"
    for uid, node, amount in amounts.claims[:SHOWN]:
        owner = "/".join(answer.owners.get(uid, ("", "another Workload"))).removeprefix("/")
        kept = _amount(resource, min(amount, amounts.claimed))
        made += f"; {kept} {resource} are kept for {owner}, as {node_title(*node)} owns them"
    return made


def _amount(resource: str, amount: int) -> str:
    return display(resource, amount) if amount else "0"


def _tried(explanation: Explanation) -> Iterator[str]:
    """Every flavor, and why it is not taken."""
    yield "Flavors:"
    several = len(explanation.amounts) > 1
    for pod_set, amounts in explanation.amounts.items():
        of = f" for {pod_set_title(pod_set)}" if several else ""
        for each in amounts:
            flavor = "any node" if each.flavor == ANY_NODE else each.flavor
            asked, free = _amount(each.resource, each.asked), _amount(each.resource, each.free)
            had = f"{free} free, {_amount(each.resource, each.borrowable)} to borrow"
            short = f": {_amount(each.resource, each.lacking)} short" if each.lacking > 0 else ": enough"
            yield f"  {flavor}{of}: {asked} {each.resource} asked for, {had}{short}"
        for refused in explanation.mismatches[pod_set]:
            yield f"  {refused.flavor}{of}: {flavor_sentence(refused)}"


def _ahead(answer: Answer) -> Iterator[str]:
    if not answer.ahead:
        return
    yield f"Ahead of it ({len(answer.ahead)}):"
    yield from (f"  {'/'.join(other.key)}, priority {other.priority}" for other in answer.ahead[:SHOWN])
    if len(answer.ahead) > SHOWN:
        yield f"  and {len(answer.ahead) - SHOWN} more"


def would_let_in(answer: Answer, now: float) -> Iterator[str]:
    """The blocking workloads, a line at a time; `now` is in seconds since the epoch."""
    explanation = answer.explanation
    if explanation is None:
        return
    if not answer.sought:
        yield "Blocking workloads: not found in time"
        return
    if not answer.blocking:
        if is_hopeless(explanation.refusal):
            yield "Nothing that ends would let it in: what it asks, the quota or the flavors must change."
        return
    preempting = explanation.refusal is not None and explanation.refusal.reason is Reason.PREEMPTING
    yield "It starts when these have ended:" if preempting else "It could start if these ended:"
    yield from (f"  {_other(other, now, preempting=preempting)}" for other in answer.blocking[:SHOWN])
    if len(answer.blocking) > SHOWN:
        yield f"  and {len(answer.blocking) - SHOWN} more"


def _other(other: Other, now: float, *, preempting: bool) -> str:
    if other.extra:
        noun, of = ("replica", f" ({other.pod_set})") if other.pod_set else ("pod", "")
        ending = f"{other.extra} extra {noun}{'s' if other.extra > 1 else ''}"
        return f"{ending} of {'/'.join(other.key)}{of}, which goes on"
    ends = f", expected to end {within(other.ends - now)}" if other.ends is not None else ""
    not_evicted = f"; not evicted: {other.not_evicted}" if other.not_evicted and not preempting else ""
    word = " by its own word" if ends and other.unproven else ""
    return f"{'/'.join(other.key)}, priority {other.priority}{ends}{word}{not_evicted}"


def start_line(words: str, controllers: ControllerStatus | None = None) -> str:
    """The last line: when it starts, in some words."""
    waits = controllers is not None and controllers.lacks_decisions
    return f"Start, counted from when a controller runs: {words}" if waits else f"Start: {words}"


def start(estimate: Estimate) -> str:
    if estimate.late:
        return "no estimate in time" + _at_least(estimate)
    if estimate.median is None or estimate.earliest is None:
        unknown = f"{estimate.unknown} Workloads" if estimate.unknown > 1 else "a Workload"
        return f"can't be told: nothing is known of the runtime of {unknown} in its cohort"
    alone, crowded = ("", "")
    if estimate.coming:
        alone, crowded = (" if no more Jobs come", " if they keep coming as they did")
    median = f"{within(estimate.median)}{alone}"
    fewer = f", from {_playouts(estimate)}" if estimate.told < estimate.runs else ""
    words = f"; {resting_on(estimate.unproven, ' of other namespaces')}" if estimate.unproven else ""
    if estimate.latest is None:
        return f"not before {within(estimate.earliest)}, probably {median}, or later{crowded}{fewer}{words}"
    sure = "" if fewer else f" with {CONFIDENCE:.0%} confidence"
    bounds = f"; between {within(estimate.earliest)} and {within(estimate.latest)}{sure}{crowded}"
    one_playout = estimate.told == 1 < estimate.runs and not estimate.coming
    if one_playout or _alike(estimate):
        median, bounds = within(estimate.median), sure  # there is no range
    by = f", by {_joined(estimate.sources)}" if estimate.sources else ""
    return f"{median}{bounds}{fewer}{by}{words}"


def _alike(estimate: Estimate) -> bool:
    """Whether both ends of a range are written as its median is, so that there is one number to tell."""
    known = (each for each in (estimate.earliest, estimate.median, estimate.latest) if each is not None)
    return len(set(map(within, known))) == 1


def resting_on(words: int, of: str = "") -> str:
    """That an answer depends on the unproven stated runtimes of so many Workloads."""
    if words == 1:
        return f"rests on what 1 Workload{of} says of itself"
    return f"rests on what {words} Workloads{of} say of themselves"


def _at_least(estimate: Estimate) -> str:
    """What playouts say that ended before its start."""
    known = [each for each in (estimate.earliest, estimate.reached) if each is not None]
    return f"; probably not within {spell(min(known))}" if known and min(known) >= 1 else ""


def _playouts(estimate: Estimate) -> str:
    """The number of playouts that an estimate is made of."""
    return f"{estimate.told} of {estimate.runs} playouts"


def short(estimate: Estimate) -> str:
    if estimate.late:
        return "no estimate in time"
    if estimate.median is None:
        return "unknown"
    fewer = f"from {_playouts(estimate)}" if estimate.told < estimate.runs else ""
    if estimate.earliest is None or estimate.latest is None:
        return f"{within(estimate.median)} or later" + (f" ({fewer})" if fewer else "")
    bounds = "" if _alike(estimate) else f"{spell(estimate.earliest)} to {spell(estimate.latest)}"
    words = "by unproven words" if estimate.unproven else ""
    notes = ", ".join(filter(None, (bounds, fewer, words)))
    return within(estimate.median) + (f" ({notes})" if notes else "")


def within(seconds: float) -> str:
    """A time from now, in words."""
    return "at once" if seconds < 1 else f"in {spell(seconds)}"


def _joined(words: Iterable[str]) -> str:
    return ", ".join(words)

"""What the history of the console knows of one Workload beyond what its status says."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from admitter.insight.explain.life import SAME_SECONDS, Happening, Preemptor, What
from admitter.policy.messages import queue_title
from admitter.web.admissions import Ending, Eviction, Span


def with_earlier(
    known: list[Happening], spans: Iterable[Span], evictions: Iterable[Eviction], uid: str
) -> list[Happening]:
    """What a status tells of the Workload with a UID, and what came before, in order of time.

    A status tells the last admission only, and of most evictions only when they were.
    """
    found = list(known)
    for eviction in (each for each in evictions if each.uid == uid):
        happening = _eviction(eviction)
        same = _near(found, happening)
        if same is None:
            found.append(happening)
        elif same.preemptor is None and not same.message:
            found[found.index(same)] = replace(happening, at=same.at)
    for span in (each for each in spans if each.uid == uid):
        found += [each for each in _span(span) if _near(found, each) is None]
    order = list(What)
    return sorted(found, key=lambda each: (each.at, order.index(each.what)))


def _near(found: list[Happening], other: Happening) -> Happening | None:
    """The same, as it is known already: times are rounded in different ways."""
    alike = (each for each in found if each.what is other.what and abs(each.at - other.at) <= SAME_SECONDS)
    return next(alike, None)


def _eviction(each: Eviction) -> Happening:
    by = Preemptor((each.for_namespace, each.for_name), "", each.rule) if each.for_name else None
    return Happening(each.time, What.EVICTED, each.reason, preemptor=by)


def _span(span: Span) -> Iterator[Happening]:
    yield Happening(span.admitted, What.ADMITTED, message=f"admitted by {queue_title(span.queue)}")
    if span.ended is None:
        return
    match span.how:
        case Ending.EVICTED:
            yield Happening(span.ended, What.REQUEUED, span.reason)
        case Ending.DELETED:
            yield Happening(span.ended, What.DELETED)
        case Ending.SUCCEEDED | Ending.FAILED | Ending.OUT_OF_TIME:
            yield Happening(span.ended, What.FINISHED, span.reason)


def last_life(spans: list[Span], evictions: Iterable[Eviction]) -> list[Happening]:
    """The same of a Workload that is gone: of the last one with its name; nothing if there was none."""
    if not spans:
        return []
    uid = max(spans, key=lambda span: span.admitted).uid
    first = min(span.queued for span in spans if span.uid == uid)
    return with_earlier([Happening(first, What.QUEUED)], spans, evictions, uid)

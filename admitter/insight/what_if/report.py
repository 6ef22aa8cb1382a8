"""What a change would do, as tables and as JSON."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from rich.console import Group, RenderableType
from rich.table import Column, Table

from admitter.insight.explain.text import resting_on, within
from admitter.insight.forecast.playout import ExcessUse
from admitter.insight.stamps import spell, stamp
from admitter.insight.what_if.compare import Difference, Outcome, Shift
from admitter.names import ANY_NODE
from admitter.policy.messages import node_title, queue_title
from admitter.quantities.amounts import display, to_quantity
from admitter.visible import visible

Json = dict[str, Any]
T = TypeVar("T")

SHOWN: Final = 20
"""Rows of a table that are shown; the others are counted."""


def tables(difference: Difference) -> Iterator[RenderableType]:
    yield _table("At once", ("NAMESPACE", "NAME", "EFFECT", "WHY"), difference.outcomes, _at_once, "nothing")
    where = ("WHERE", "FLAVOR", "RESOURCE", "USED", "ALLOWED")
    yield _table("Quota that is over", where, difference.excesses, _over, "none")
    shifts = sorted(difference.shifts, key=lambda shift: (-_by(shift), shift.key))
    starts = ("NAMESPACE", "NAME", "BEFORE", "AFTER", "CHANGE")
    until = difference.until
    played = "" if until is None else f" within {spell(until)}, as far as there was time to look"
    yield _table(f"Other starts{played}", starts, shifts, _moved, "none")
    if shifts and difference.unproven:
        yield f"  This {resting_on(difference.unproven)}"


def _table(
    title: str,
    headings: tuple[str, ...],
    rows: Sequence[T],
    cells: Callable[[T], tuple[str, ...]],
    nothing: str,
) -> RenderableType:
    if not rows:
        return f"{title}: {nothing}"
    short = (Column(heading, no_wrap=True) for heading in headings[:-1])
    table = Table(*short, Column(headings[-1], overflow="fold"), box=None, header_style="bold")
    for row in rows[:SHOWN]:
        table.add_row(*map(visible, cells(row)))
    more = f"  and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return Group(f"{title}: {len(rows)}", table, *([more] if more else []))


def _at_once(outcome: Outcome) -> tuple[str, ...]:
    return *outcome.key, outcome.effect, outcome.why


def _over(excess: ExcessUse) -> tuple[str, ...]:
    flavor = "" if excess.flavor == ANY_NODE else excess.flavor
    used, allowed = (display(excess.resource, amount) for amount in (excess.used, excess.allowed))
    return node_title(*excess.node), flavor, excess.resource, used, allowed


def _moved(shift: Shift) -> tuple[str, ...]:
    return *shift.key, _before(shift), _start(shift.after), _change(shift)


def _by(shift: Shift) -> float:
    """By how much a start moves; one that is lost or gained counts most."""
    if shift.before is None or shift.after is None:
        return float("inf")
    return abs(shift.after - shift.before)


def _before(shift: Shift) -> str:
    return "new" if shift.new else _start(shift.before)


def _start(after: float | None) -> str:
    return "unknown" if after is None else within(after)


def _change(shift: Shift) -> str:
    if shift.new:
        return ""
    if shift.before is None or shift.after is None:
        return "later" if shift.later else "sooner"
    return f"{spell(abs(shift.after - shift.before))} {'later' if shift.later else 'sooner'}"


def difference_json(difference: Difference, now: float) -> Json:
    def moment(after: float | None) -> str | None:
        return stamp(now + after) if after is not None else None

    return {
        "workloads": [
            {
                "namespace": outcome.key[0],
                "name": outcome.key[1],
                "queue": queue_title(outcome.queue) if outcome.queue else None,
                "effect": outcome.effect,
                "message": outcome.why,
            }
            for outcome in difference.outcomes
        ],
        "over": [
            {
                "where": node_title(*each.node),
                "flavor": each.flavor,
                "resource": each.resource,
                "used": to_quantity(each.resource, each.used),
                "allowed": to_quantity(each.resource, each.allowed),
            }
            for each in difference.excesses
        ],
        "starts": [
            {
                "namespace": shift.key[0],
                "name": shift.key[1],
                "new": shift.new,
                "before": moment(shift.before),
                "after": moment(shift.after),
            }
            for shift in difference.shifts
        ],
        "startsUntil": moment(difference.until),
        "unprovenWords": difference.unproven,
    }

"""Calls of the engine as lines of JSON, and back: what was called, with what, and what a cycle decided."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from math import inf
from typing import Annotated, Any, Final, get_type_hints

import orjson
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from admitter.engine import commands
from admitter.engine.model import Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.quota.eviction_limits import LimitOf, LimitReached
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import FlavorRefusal, Refusal
from admitter.engine.tree_cycle import Plan

Json = dict[str, Any]

VERSION: Final = 1  # of the format of lines
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS


class JournalError(ValueError):
    """A line is none of a journal, or can't be read."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Which trees were looked at: what was answered for each root that was asked about."""

    roots: tuple[tuple[Node, bool], ...] = ()

    def decides(self) -> Callable[[Node], bool]:
        """The same answers again; about others it was not asked, since nothing was to be decided there."""
        answers = dict(self.roots)
        return lambda root: answers.get(root, False)


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle: when it was, in seconds since the epoch, and its trees."""

    now: float
    looks: Looks


@dataclass(frozen=True, slots=True)
class Resume:
    """`Engine.resume`, with its trees."""

    looks: Looks


@dataclass(frozen=True, slots=True)
class AbandonTrees:
    """`Engine.abandon_trees`, with its trees."""

    looks: Looks


Call = commands.Command | Cycle | Resume | AbandonTrees  # what an engine was told, or asked to do


def _paired(written: object) -> object:
    """Amounts by flavor and resource come as a list of pairs: JSON has only words as keys."""
    if not isinstance(written, dict):
        return written
    quotas = {tuple(key): quota for key, quota in written.get("quotas", ())}
    terms = written.get("victim_terms") or written["patience"]  # as journals of before have it
    terms = {name: inf if value is None else value for name, value in terms.items()}
    kept = {name: value for name, value in written.items() if name != "patience"}
    return {**kept, "quotas": quotas, "victim_terms": terms}


_Queue = Annotated[Queue, BeforeValidator(_paired)]
_Cohort = Annotated[Cohort, BeforeValidator(_paired)]

_CALLS: Final[Mapping[str, type[Call]]] = {
    "set_flavor": commands.SetFlavor,
    "remove_flavor": commands.RemoveFlavor,
    "define": commands.Define,
    "set_weight": commands.SetWeight,
    "submit": commands.Submit,
    "withdraw": commands.Withdraw,
    "reserve": commands.Reserve,
    "set_pods": commands.SetPods,
    "extra": commands.SetExtra,
    "release": commands.Release,
    "evict": commands.Evict,
    "displaced": commands.Displace,
    "goes": commands.StartEviction,
    "spare": commands.CancelEviction,
    "give_back": commands.ReturnReservation,
    "use": commands.UseReservation,
    "gain": commands.GainReservation,
    "back_off": commands.SetBackOff,
    "evictions": commands.SetEvictions,
    "cycle": Cycle,
    "resume": Resume,
    "forsake": AbandonTrees,
}
"""By its name in files: what a call is now. The names are those that journals had first."""

_NAMES: Final = {kind: name for name, kind in _CALLS.items()}


@cache
def _adapter(name: str, count: int) -> TypeAdapter[tuple[Any, ...]]:
    """Reads so many fields of a call, in their order: journals of before have fewer, and mean the default."""
    hints: Mapping[str, Any] = get_type_hints(_CALLS[name])
    if name == "define":
        hints = {**hints, "queues": tuple[_Queue, ...], "cohorts": tuple[_Cohort, ...]}
    kinds: Any = tuple[tuple(hints.values())[:count]]  # type: ignore[misc]  # known at run time only
    return TypeAdapter(kinds)


def written(call: Call, plan: Json | None = None) -> bytes:
    """A line, with its end; `plan` is what a cycle decided, as `plan_record` says."""
    arguments = [getattr(call, name) for name in call.__match_args__]
    line: Json = {"call": _NAMES[type(call)], "with": arguments}
    if plan is not None:
        line["plan"] = plan
    return orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE | _OPTIONS)


def parsed(line: Json) -> Call:
    """The call that a line tells of.

    Raises:
        JournalError: it tells of none that there is.
    """
    name, told = str(line.get("call")), line.get("with")
    if name not in _CALLS:
        raise JournalError(f"tells of {name!r}, which is no call of the engine")
    kind = _CALLS[name]
    try:
        return kind(*_adapter(name, len(told) if isinstance(told, list) else 0).validate_python(told))
    except (ValidationError, KeyError, TypeError) as error:
        raise JournalError(f"has arguments that {name} does not take: {error}") from error


def plan_record(plan: Plan) -> Json:
    """A plan as JSON: admissions, evictions with preemptors and reasons, and what each workload waits for."""
    found: Json = {
        "admissions": [(workload.uid, admission) for workload, admission in plan.admissions],
        "evictions": [
            (each.victim.holder, each.preemptor.uid, each.admission, each.receipt, each.grace)
            for each in plan.evictions
        ],
        "reassigned": [(each.victim, each.preemptor.uid, each.admission) for each in plan.reassigned],
        "taken_over": {uid: [each.uid for each in former] for uid, former in plan.taken_over.items()},
        "restored": plan.restored,
        "passed": {uid: (passed.workload.uid, passed.rule) for uid, passed in plan.passed.items()},
        "planned": plan.planned,
        "resized": [
            (each.holder, each.extra.granted, each.extra.kept, *filter(None, (each.part,)))
            for each in plan.resized
        ],
        "refusals": plan.refusals,
    }
    recorded: Json = orjson.loads(
        orjson.dumps({k: v for k, v in found.items() if v}, default=_plain, option=_OPTIONS)
    )
    return recorded


def _plain(value: object) -> object:
    """What JSON has no word for."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    names = [each.name for each in fields(value) if each.init]  # type: ignore[arg-type]  # a dataclass
    made = {name: getattr(value, name) for name in names}
    if isinstance(value, Refusal) and value.back_off is None:
        del made["back_off"]  # journals of before have none
    if isinstance(value, Workload) and not value.tried_last:
        del made["tried_last"]  # journals of before have none
    if isinstance(value, Refusal) and value.limited is None:
        del made["limited"]  # likewise
    if isinstance(value, LimitReached) and value.of is LimitOf.WORKLOAD:
        del made["of"]  # likewise
    if isinstance(value, FlavorRefusal):
        del made["beside"]  # for words only; journals of before have none
    if isinstance(value, Queue | Cohort):
        made["quotas"] = list(value.quotas.items())
    return made

"""Calls of the engine as lines of JSON, and back: what was called, with what, and what a cycle decided."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from math import inf
from typing import Annotated, Any, Final

import orjson
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Flavor, Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.preemption.back_off import BackOff
from admitter.engine.quota.ledger import Pod
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import Refusal
from admitter.engine.tree_cycle import Plan

Json = dict[str, Any]

VERSION: Final = 1
"""Of the format of lines."""
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS


class JournalError(ValueError):
    """A line is none of a journal, or can't be read."""


@dataclass(frozen=True, slots=True)
class Call:
    """What was done to the engine.

    Attributes:
        name: of the method.
        arguments: all of it, in order; of `cycle`, `resume` and `forsake` see `Looks`.
        plan: of a cycle, what it decided, as `plan_record` says.
    """

    name: str
    arguments: tuple[Any, ...]
    plan: Json | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """Which trees were looked at: what was answered for each root that was asked about."""

    roots: tuple[tuple[Node, bool], ...] = ()

    def decides(self) -> Callable[[Node], bool]:
        """The same answers again; about others it was not asked, since nothing was to be decided there."""
        answers = dict(self.roots)
        return lambda root: answers.get(root, False)


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

_ARGUMENTS: Final[Mapping[str, Any]] = {
    "set_flavor": tuple[Flavor],
    "remove_flavor": tuple[str],
    "define": tuple[list[_Queue], list[_Cohort], list[str], list[str]],
    "set_weight": tuple[str, int],
    "submit": tuple[Workload],
    "withdraw": tuple[str],
    "reserve": tuple[str, Admission, Workload | None, float, str],
    "set_pods": tuple[str, tuple[Pod, ...], int],
    "release": tuple[str],
    "evict": tuple[str, Workload, Admission, bool],
    "displaced": tuple[str, str],
    "goes": tuple[str],
    "spare": tuple[str],
    "give_back": tuple[str],
    "use": tuple[str],
    "gain": tuple[str],
    "back_off": tuple[str, str, BackOff],
    "cycle": tuple[float, Looks],
    "resume": tuple[Looks],
    "forsake": tuple[Looks],
}
"""What each call takes; what is not here changes nothing that is decided by."""


_METHODS: Final = {"goes": "start_eviction", "spare": "cancel_eviction", "forsake": "abandon_trees"}
"""Calls of methods that have another name by now: in journals they keep the name that they had first."""


@cache
def _adapter(name: str) -> TypeAdapter[tuple[Any, ...]]:
    return TypeAdapter(_ARGUMENTS[name])


def written(call: Call) -> bytes:
    """A line, with its end."""
    line: Json = {"call": call.name, "with": call.arguments}
    if call.plan is not None:
        line["plan"] = call.plan
    return orjson.dumps(line, default=_plain, option=orjson.OPT_APPEND_NEWLINE | _OPTIONS)


def read(line: bytes) -> Json:
    """A line as JSON.

    Raises:
        JournalError: it is not one.
    """
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise JournalError(f"is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise JournalError("is no object")
    return found


def parsed(line: Json) -> Call:
    """The call that a line tells of.

    Raises:
        JournalError: it tells of none that there is.
    """
    name = str(line.get("call"))
    if name not in _ARGUMENTS:
        raise JournalError(f"tells of {name!r}, which is no call of the engine")
    try:
        return Call(name, _adapter(name).validate_python(line.get("with")), line.get("plan"))
    except (ValidationError, KeyError, TypeError) as error:
        raise JournalError(f"has arguments that {name} does not take: {error}") from error


def repeat(engine: Engine, call: Call) -> Plan | None:
    """Do to an engine what was done then; returns what a cycle decides."""
    match call.name:
        case "cycle":
            now, looks = call.arguments
            return engine.cycle(now, looks.decides())
        case "resume" | "forsake":
            getattr(engine, _METHODS.get(call.name, call.name))(call.arguments[0].decides())
        case "evict":
            *first, told = call.arguments
            engine.evict(*first, told=told)
        case name:
            getattr(engine, _METHODS.get(name, name))(*call.arguments)
    return None


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
    if isinstance(value, Queue | Cohort):
        made["quotas"] = list(value.quotas.items())
    return made

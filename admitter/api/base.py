"""What the kinds have in common: strict models, quantities, selectors, and problems in readable form."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from admitter.names import GPU_MEMORY, GPU_MEMORY_ALIASES
from admitter.quantities.amounts import parse_quantity
from admitter.quantities.durations import LONGEST_SECONDS, parse_duration

V = TypeVar("V")

LONGEST_NAME = 63
"""Names of queues, flavors and workloads become label values."""


class Model(BaseModel):
    """Fields in snake case, camelCase in manifests; unknown fields are refused by name.

    The text below a field is its description in the definitions (`admitter.api.crds`).
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_enum_values=False
    )


def checked_by(check: Callable[[Any], object]) -> AfterValidator:
    """Validates values by a function that raises ValueError for wrong ones."""

    def validated(value: V) -> V:
        check(value)
        return value

    return AfterValidator(validated)


_QUANTITY: Final = (
    r"^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
)
_LONGEST_QUANTITY: Final = 40

Quantity = Annotated[
    str | int,
    checked_by(parse_quantity),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": _QUANTITY,
            "maxLength": _LONGEST_QUANTITY,
            "minimum": 0,
        }
    ),
]
"""A Kubernetes quantity that is not negative, such as 2, 500m or 36Gi."""


def writable(quantity: str) -> bool:
    """Whether the API server takes a quantity in a spec: there it may have fewer digits than elsewhere."""
    return len(quantity) <= _LONGEST_QUANTITY and re.match(_QUANTITY, quantity) is not None


Duration = Annotated[
    str | int,
    checked_by(lambda value: parse_duration(str(value))),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": r"^([0-9]{1,9}(\.[0-9]{1,9})?|([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h|d)){1,5})$",
            "maxLength": 40,
            "minimum": 0,
            "maximum": LONGEST_SECONDS,
        }
    ),
]
"""A time span that is not negative: whole seconds, or a text such as 30s, 5m or 1h30m."""

Name = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
"""The name of an object, short enough for a label value."""

GeneratedName = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[a-z0-9]([-a-z0-9._]*[a-z0-9])?$")
]
"""A name in a status: of an object, or with underscores of what is none, such as an elastic quota's queue."""

NamespaceName = Annotated[
    str, Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]

_QUALIFIED = r"([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?/)?[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?"


def is_resource(name: str) -> bool:
    return re.fullmatch(_QUALIFIED, name) is not None


ResourceName = Annotated[str, Field(min_length=1, max_length=253, pattern=f"^{_QUALIFIED}$")]
"""The name of a resource, such as cpu or nvidia.com/gpu."""

LabelKey = Annotated[str, Field(min_length=1, max_length=317, pattern=f"^{_QUALIFIED}$")]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?)?$")]


Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


def map_list(*keys: str, most: int) -> dict[str, Any]:
    """Schema of a list with some fields as the key of its entries."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), "maxItems": most}


def atomic_list(most: int) -> dict[str, Any]:
    """Schema of a list that is replaced as a whole."""
    return {"x-kubernetes-list-type": "atomic", "maxItems": most}


SET_LIST: Final[dict[str, Any]] = {"x-kubernetes-list-type": "set"}
"""Schema of a list of different texts."""


def distinct(values: list[str]) -> list[str]:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value} is listed twice")
        seen.add(value)
    return values


PriorityClassNames = Annotated[
    list[Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]],
    AfterValidator(distinct),
    Field(max_length=64, json_schema_extra=SET_LIST),
]
"""PriorityClasses that a queue takes."""

Place = tuple[int | str, ...]
"""Where in a model a value is: names as in manifests, and indices."""


def refuse(wrong: Iterable[tuple[Place, str]]) -> None:
    """In a model's validator: refuse values that are deeper in the model, each by its own path.

    Raises:
        ValidationError: there are any.
    """
    errors = [
        InitErrorDetails(type=PydanticCustomError("rule", text), loc=place, input=None)
        for place, text in wrong
    ]
    if errors:
        raise ValidationError.from_exception_data("rules", errors)


_WHOLE = re.compile(r"\+?[0-9]+")


def in_parts(resource: str, quantity: str | int | None) -> str | None:
    """Why a quantity of GPU memory can't be; None if it can, or is of another resource.

    With a suffix it would be a number of bytes in the eyes of some readers, and of GB in those of others.
    """
    if quantity is None or own_name(resource) != GPU_MEMORY or _WHOLE.fullmatch(str(quantity)):
        return None
    return f"{resource} is in whole GB: write a number like 40, not {quantity}"


def named_twice(resources: Iterable[str]) -> str | None:
    """Why resources can't stand side by side that are the same under different names; None if none are."""
    names: dict[str, str] = {}
    for resource in resources:
        other = names.setdefault(own_name(resource), resource)
        if other != resource:
            return f"{other} and {resource} are two names of the same resource: use one of them"
    return None


def own_name(resource: str) -> str:
    """A resource by Admitter's own name; GPU memory is known under others too."""
    return GPU_MEMORY if resource in GPU_MEMORY_ALIASES else resource


class PreemptionTerms(Model):
    """What Workloads are granted before they are evicted for others."""

    grace_period: Duration = 0
    """How long the eviction of a preempted Workload is pending, such as 30s, 5m or 1h30m."""
    min_runtime: Duration = 0
    """How long a Workload has to have run before it may be preempted, such as 30s, 5m or 1h30m."""


class Expression(Model):
    """A requirement on a label."""

    key: LabelKey
    """The label that the requirement is on."""
    operator: Annotated[str, Field(pattern="^(In|NotIn|Exists|DoesNotExist)$")]
    """In, NotIn: whether the value of the label is one of values. Exists, DoesNotExist: whether the label is
    there."""
    values: list[LabelValue] = Field(default=[], json_schema_extra=atomic_list(64))
    """The values, for In and NotIn."""


class LabelSelector(Model):
    """Selects objects by their labels; all requirements must hold, and an empty selector selects all."""

    match_labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=64)
    """Labels that must be there with these values."""
    match_expressions: list[Expression] = Field(default=[], json_schema_extra=atomic_list(64))
    """Further requirements on labels, of which all must hold."""


class Toleration(Model):
    """A toleration, as in a pod."""

    key: str | None = Field(default=None, max_length=317)
    """The taint's key; empty: any taint."""
    operator: Annotated[str, Field(pattern="^(Equal|Exists)$")] | None = None
    """Equal (if absent) or Exists."""
    value: str | None = Field(default=None, max_length=63)
    """The taint's value, for Equal."""
    effect: Annotated[str, Field(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")] | None = None
    """The taint's effect; empty: any effect."""
    toleration_seconds: Int64 | None = None
    """For NoExecute: how long the pod stays, in seconds; absent: for ever."""


class Condition(Model):
    """One aspect of an object's state."""

    type: str = Field(max_length=316)
    """What it is about: Active, or of a Workload QuotaReserved, Admitted, Evicted, Preempted, EvictionPending
    or Finished."""
    status: Annotated[str, Field(pattern="^(True|False|Unknown)$")]
    """Whether it holds: True, False or Unknown."""
    reason: str = Field(max_length=1024)
    """Why, in one CamelCase word."""
    message: str = Field(default="", max_length=32768)
    """Why, in a sentence."""
    last_transition_time: Moment
    """When status last became what it is."""
    observed_generation: Int64 | None = None
    """The generation of the spec that it is about."""


Conditions = Annotated[
    list[Condition],
    Field(
        default=[], description="What is true of the object now.", json_schema_extra=map_list("type", most=16)
    ),
]


class Metadata(BaseModel):
    """The part of an object's metadata that rules speak of."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: Name


@dataclass(frozen=True)
class PrinterColumn:
    """A printer column: its heading, type, path, and whether only `-o wide` shows it."""

    name: str
    kind: str
    path: str
    wide: bool = False


ACTIVE = PrinterColumn("Active", "string", '.status.conditions[?(@.type=="Active")].status')
REASON = PrinterColumn("Reason", "string", '.status.conditions[?(@.type=="Active")].reason')
MESSAGE = PrinterColumn("Message", "string", '.status.conditions[?(@.type=="Active")].message', wide=True)
AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")
STATE_COLUMNS = (ACTIVE, REASON, MESSAGE, AGE)
"""With which the columns of most kinds end: whether it works, why, and since when it is there."""


class Resource(Model):
    """A kind of the API."""

    plural: ClassVar[str]
    short_name: ClassVar[str] = ""
    namespaced: ClassVar[bool] = False
    columns: ClassVar[tuple[PrinterColumn, ...]]
    selectable: ClassVar[tuple[str, ...]] = ()

    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that an object breaks: the field's path and what is wrong with it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


R = TypeVar("R", bound=Resource)


def problems(kind: type[Resource], raw: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the `metadata` and `spec` of a manifest; nothing if they are valid."""
    return checked(kind, raw)[1]


def checked(kind: type[R], raw: Mapping[str, Any]) -> tuple[R | None, list[Problem]]:
    """An object by its manifest, and what is wrong with that: None and some problems, or no problem."""
    # As JSON: so the text of an enumeration is one of its words, and no text is a number or a truth value.
    text = json.dumps({"metadata": raw.get("metadata"), "spec": raw.get("spec") or {}})
    try:
        made = kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        return None, problems_of(error)
    return made, []


def problems_of(error: ValidationError) -> list[Problem]:
    """Each field that a model refuses, and why."""
    found: dict[str, list[str]] = {}
    for each in error.errors(include_url=False):
        text = f"{each['msg']}{_given(each['input'])}" if each["type"] in _OF_TYPE else each["msg"]
        found.setdefault(path_of(each["loc"]), []).append(text)
    return [Problem(path, _message(texts)) for path, texts in found.items()]


_OF_TYPE: Final = {"int_type", "bool_type", "string_type"}
"""Errors of fields that are easily written with quotes too many, or too few."""


def _given(value: object) -> str:
    """What stands there instead of a value of another type, if it is short."""
    if isinstance(value, dict | list):
        return ""
    shown = json.dumps(value, ensure_ascii=True)
    return f", not {shown}" if len(shown) <= 40 else ""


def path_of(location: Place) -> str:
    """Where something is wrong, as a path such as `spec.resources[0].name`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in {"str", "int", "float"} and not part.startswith(
            "function-"
        ):  # branches of a union, not fields
            path += f".{part}" if path else part
    return path


def _message(texts: list[str]) -> str:
    """One sentence on a field; of a quantity, a text or an integer, each branch has complained."""
    if len(texts) > 1 and texts[0].startswith("Input should be a valid string"):
        return "must be a whole number, or a text in quotes"
    if texts == ["Field required"]:
        return "is missing"
    return re.sub(r" or instance of \w+$", "", "; ".join(t.removeprefix("Value error, ") for t in texts))

"""Types of what is read of an object, as tables of fields; a field that is in no table may be anything.

The tables are TypedDicts: pydantic checks dictionaries by them, and makes no objects.
"""

from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Required

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

Json = dict[str, Any]
Texts = dict[str, str]
Word = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]

Type = Any
"""A type that is made at run time."""


def fields(**types: Type) -> Type:
    """The type of dictionaries in which each of these fields has its type, or is absent."""
    return TypedDict("Fields", types, total=False)  # type: ignore[operator]  # made at run time


def needed(kind: Type) -> Type:
    """The type of a field that may not be absent."""
    return Required[kind]


def several(kind: Type, least: int = 0, most: int | None = None) -> Type:
    """The type of a list of these."""
    return Annotated[GenericAlias(list, kind), Field(min_length=least, max_length=most)]


@cache
def checker(kind: Type) -> TypeAdapter[Any]:
    """Checks values of a type; made at its first use, as most commands use few of them."""
    return TypeAdapter(kind)


TOLERATION: Final = fields(key=str, operator=str, value=str, effect=str)
TAINT: Final = fields(key=needed(str), value=str, effect=needed(str))

_EXPRESSIONS: Final = several(fields(key=needed(str), operator=needed(str), values=list[str]))
_TERMS: Final = several(fields(matchExpressions=_EXPRESSIONS, matchFields=_EXPRESSIONS))
NODE_AFFINITY: Final = fields(
    requiredDuringSchedulingIgnoredDuringExecution=fields(nodeSelectorTerms=needed(_TERMS)) | None
)


def conditions(changed: Type, generation: Type) -> Type:
    """The type of conditions, of which the time of the last change and the generation have some types."""
    return several(
        fields(
            type=needed(str),
            status=needed(str),
            reason=str,
            message=str,
            lastTransitionTime=changed,
            observedGeneration=generation,
        )
    )


def requirements(quantities: Type) -> Type:
    """The type of a container's resources."""
    return fields(requests=quantities, limits=quantities)


def containers(quantities: Type, least: int = 0) -> Type:
    """The type of a pod's containers, or of its init containers."""
    return several(fields(resources=requirements(quantities), restartPolicy=str), least)


def limit_range(quantities: Type) -> Type:
    """The type of a LimitRange's spec."""
    kinds = dict.fromkeys(("default", "defaultRequest", "max", "min"), quantities)
    return fields(limits=several(fields(type=str, **kinds)))

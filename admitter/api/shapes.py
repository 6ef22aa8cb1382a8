"""The fields that a simulation reads and that no model of ours checks, so that a wrong one is named.

An API server checks these before anything reads them; files have not been through one. As there, a text is no
number and no truth value: a Job with `parallelism: "3"` would be refused.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, ValidationError

from admitter.api.base import checked_by, problems_of
from admitter.api.forms import (
    NODE_AFFINITY,
    TAINT,
    TOLERATION,
    Count,
    Json,
    Priority,
    Texts,
    Type,
    Word,
    checker,
    conditions,
    containers,
    fields,
    limit_range,
    needed,
    requirements,
    several,
)
from admitter.api.workload import Admission, Place, Preemption
from admitter.quantities.amounts import parse_quantity


def _time(value: str) -> str:
    try:
        datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{value!r} is no time") from error
    return value


def _pending(value: Preemption | None) -> Preemption | None:
    if value is not None and value.evict_at is not None:
        try:
            _time(value.evict_at)
        except ValueError as error:
            raise ValueError(f"evictAt: {error}") from error
    return value


_Quantities = dict[str, Annotated[str | int | float, checked_by(lambda value: parse_quantity(str(value)))]]
_Time = Annotated[str, AfterValidator(_time)]
_Annotations = dict[str, str | int | float]

_METADATA: Final = needed(
    fields(
        name=needed(Word),
        namespace=str,
        labels=Texts,
        annotations=_Annotations,
        creationTimestamp=_Time | None,
        generation=int,
        managedFields=several(fields(subresource=str, time=_Time | None)),
        ownerReferences=several(
            fields(apiVersion=str, kind=needed(str), name=needed(str), uid=needed(str), controller=bool)
        ),
    )
)
_CONDITIONS: Final = conditions(_Time | None, int)
_POD_FIELDS: Final[dict[str, Type]] = {
    "initContainers": containers(_Quantities),
    "resources": requirements(_Quantities),
    "overhead": _Quantities,
    "nodeSelector": Texts,
    "tolerations": several(TOLERATION),
    "affinity": fields(nodeAffinity=NODE_AFFINITY),
    "priorityClassName": str,
    "runtimeClassName": str,
    "nodeName": str,
    "activeDeadlineSeconds": int,
    "schedulingGates": several(fields(name=needed(str))),
}
_POD_SPEC: Final = fields(containers=needed(containers(_Quantities, least=1)), **_POD_FIELDS)
_POD_METADATA: Final = fields(labels=Texts, annotations=_Annotations)
_TEMPLATE: Final = fields(metadata=_POD_METADATA, spec=needed(_POD_SPEC))
_PART_OF_TEMPLATE: Final = fields(
    metadata=_POD_METADATA, spec=fields(containers=containers(_Quantities), **_POD_FIELDS)
)
_JOB: Final = fields(
    metadata=_METADATA,
    spec=needed(
        fields(
            parallelism=Count,
            completions=Count,
            activeDeadlineSeconds=int,
            template=needed(_TEMPLATE),
        )
    ),
    status=fields(
        active=Count, terminating=Count, succeeded=Count, startTime=_Time | None, conditions=_CONDITIONS
    ),
)
_NODE: Final = fields(
    metadata=_METADATA,
    spec=fields(unschedulable=bool, taints=several(TAINT)),
    status=fields(allocatable=_Quantities, capacity=_Quantities, conditions=_CONDITIONS),
)
_WORKLOAD: Final = fields(
    metadata=_METADATA,
    status=fields(
        admission=Admission | None,
        preemption=Annotated[Preemption | None, AfterValidator(_pending)],
        place=Place | None,
        conditions=_CONDITIONS,
    ),
)
_OTHERS: Final = fields(
    metadata=_METADATA,
    status=fields(conditions=_CONDITIONS, managedSince=dict[str, _Time], since=_Time | None),
)

_DESCRIBED: Final = fields(metadata=_METADATA)

_SHAPES: Final[dict[str, Type]] = {
    "Job": _JOB,
    "LimitRange": fields(metadata=_METADATA, spec=limit_range(_Quantities)),
    "ResourceQuota": fields(metadata=_METADATA, spec=fields(hard=dict[str, str | int | float])),
    "Node": _NODE,
    "Pod": fields(metadata=_METADATA, spec=needed(_POD_SPEC), status=fields(phase=str)),
    "PriorityClass": fields(metadata=_METADATA, value=needed(Priority), globalDefault=bool),
    "RuntimeClass": fields(metadata=_METADATA, overhead=fields(podFixed=_Quantities)),
    "Workload": _WORKLOAD,
}


def shape_problem(manifest: Json, *, described: bool = False) -> str | None:
    """What is wrong with the fields of an object that a simulation reads; None if nothing is.

    Of one that a JobKind describes only the metadata has a shape that is known here.
    """
    try:
        checker(_DESCRIBED if described else _SHAPES.get(manifest["kind"], _OTHERS)).validate_python(
            manifest, strict=True
        )
    except ValidationError as error:
        return "; ".join(str(problem) for problem in problems_of(error))
    return None


def template_problem(template: object, path: str, *, whole: bool) -> str | None:
    """What is wrong with a pod template; None if nothing is. One that is not whole may have no containers."""
    try:
        checker(_TEMPLATE if whole else _PART_OF_TEMPLATE).validate_python(template, strict=True)
    except ValidationError as error:
        found = (replace(each, field=f"{path}.{each.field}".rstrip(".")) for each in problems_of(error))
        return "; ".join(map(str, found))
    return None

"""The fields that a simulation reads and that no model of ours checks, so that a wrong one is named.

An API server checks these before anything reads them; files have not been through one. As there, a text is no
number and no truth value: a Job with `parallelism: "3"` would be refused.
"""

from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from admitter.api.base import problems_of
from admitter.api.workload import Admission, Place, Preemption
from admitter.quantities.amounts import parse_quantity

Json = dict[str, Any]
Texts = dict[str, str]


def _quantity(value: str | float) -> str | float:
    parse_quantity(str(value))
    return value


def _time(value: str) -> str:
    try:
        datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{value!r} is no time") from error
    return value


_Quantity = Annotated[str | int | float, AfterValidator(_quantity)]
_Time = Annotated[str, AfterValidator(_time)]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _ManagedField(_Shape):
    subresource: str = ""
    time: _Time | None = None


class _Owner(_Shape):
    kind: str
    name: str
    uid: str
    controller: bool = False


class _Metadata(_Shape):
    name: str = Field(min_length=1)
    namespace: str = ""
    labels: Texts = {}
    annotations: dict[str, str | int | float] = {}
    creation_timestamp: _Time | None = None
    generation: int = 0
    managed_fields: list[_ManagedField] = []
    owner_references: list[_Owner] = []


class _TemplateMetadata(_Shape):
    labels: Texts = {}
    annotations: dict[str, str | int | float] = {}


class _Requirements(_Shape):
    requests: dict[str, _Quantity] = {}
    limits: dict[str, _Quantity] = {}


class _Container(_Shape):
    resources: _Requirements = _Requirements()
    restart_policy: str = ""


class _Toleration(_Shape):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Expression(_Shape):
    key: str
    operator: str
    values: list[str] = []


class _Term(_Shape):
    match_expressions: list[_Expression] = []
    match_fields: list[_Expression] = []


class _Terms(_Shape):
    node_selector_terms: list[_Term]


class _NodeAffinity(_Shape):
    required_during_scheduling_ignored_during_execution: _Terms | None = None


class _Affinity(_Shape):
    node_affinity: _NodeAffinity = _NodeAffinity()


class _PodSpec(_Shape):
    containers: list[_Container] = Field(min_length=1)
    init_containers: list[_Container] = []
    resources: _Requirements = _Requirements()
    overhead: dict[str, _Quantity] = {}
    node_selector: Texts = {}
    tolerations: list[_Toleration] = []
    affinity: _Affinity = _Affinity()
    priority_class_name: str = ""
    runtime_class_name: str = ""


class _Template(_Shape):
    metadata: _TemplateMetadata = _TemplateMetadata()
    spec: _PodSpec


class _JobSpec(_Shape):
    parallelism: _Count = 1
    completions: _Count = 1
    active_deadline_seconds: int = 1
    template: _Template


class _Condition(_Shape):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: _Time | None = None
    observed_generation: int = 0


class _JobStatus(_Shape):
    active: _Count = 0
    terminating: _Count = 0
    succeeded: _Count = 0
    start_time: _Time | None = None
    conditions: list[_Condition] = []


class _Limit(_Shape):
    type: str = ""
    default: dict[str, _Quantity] = {}
    default_request: dict[str, _Quantity] = {}
    max: dict[str, _Quantity] = {}
    min: dict[str, _Quantity] = {}


class _Limits(_Shape):
    limits: list[_Limit] = []


class _Hard(_Shape):
    hard: dict[str, str | int | float] = {}


class _Overhead(_Shape):
    pod_fixed: dict[str, _Quantity] = {}


class _NamedShape(_Shape):
    metadata: _Metadata


class _Job(_NamedShape):
    spec: _JobSpec
    status: _JobStatus = _JobStatus()


class _LimitRange(_NamedShape):
    spec: _Limits = _Limits()


class _ResourceQuota(_NamedShape):
    spec: _Hard = _Hard()


class _PriorityClass(_NamedShape):
    value: int = Field(ge=-(2**31), le=2**31 - 1)
    global_default: bool = False


class _RuntimeClass(_NamedShape):
    overhead: _Overhead = _Overhead()


class _Taint(_Shape):
    key: str
    value: str = ""
    effect: str


class _NodeSpec(_Shape):
    unschedulable: bool = False
    taints: list[_Taint] = []


class _NodeStatus(_Shape):
    allocatable: dict[str, _Quantity] = {}
    capacity: dict[str, _Quantity] = {}
    conditions: list[_Condition] = []


class _Node(_NamedShape):
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class _Status(_Shape):
    """What is read of a definition's status."""

    conditions: list[_Condition] = []
    managed_since: dict[str, _Time] = {}
    since: _Time | None = None


class _Definition(_NamedShape):
    status: _Status = _Status()


class _WorkloadStatus(_Shape):
    admission: Admission | None = None
    preemption: Preemption | None = None
    place: Place | None = None
    conditions: list[_Condition] = []


class _Workload(_NamedShape):
    status: _WorkloadStatus = _WorkloadStatus()


_SHAPES: Final[dict[str, type[_NamedShape]]] = {
    "Job": _Job,
    "LimitRange": _LimitRange,
    "ResourceQuota": _ResourceQuota,
    "Node": _Node,
    "PriorityClass": _PriorityClass,
    "RuntimeClass": _RuntimeClass,
    "Workload": _Workload,
}


def shape_problem(manifest: Json) -> str | None:
    """What is wrong with the fields of an object that a simulation reads; None if nothing is."""
    try:
        _SHAPES.get(manifest["kind"], _Definition).model_validate(manifest, strict=True)
    except ValidationError as error:
        return "; ".join(str(problem) for problem in problems_of(error))
    return None

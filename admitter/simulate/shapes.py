"""The fields of other people's kinds that a simulation reads, so that a wrong one is named.

An API server checks these before anybody sees them; files have not been through one.
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from admitter.api.base import problems_of
from admitter.api.workload import Admission
from admitter.engine.amounts import parse_quantity

Json = dict[str, Any]
Texts = dict[str, str]


def _quantity(value: str | float) -> str | float:
    parse_quantity(str(value))
    return value


_Quantity = Annotated[str | int | float, AfterValidator(_quantity)]


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Metadata(_Shape):
    name: str = Field(min_length=1)
    namespace: str | None = None
    labels: Texts = {}
    annotations: dict[str, str | int | float] = {}
    creation_timestamp: str | None = None


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
    parallelism: int = Field(default=1, ge=0)
    completions: int = Field(default=1, ge=0)
    template: _Template


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


class _Named(_Shape):
    metadata: _Metadata


class _Job(_Named):
    spec: _JobSpec


class _LimitRange(_Named):
    spec: _Limits = _Limits()


class _ResourceQuota(_Named):
    spec: _Hard = _Hard()


class _PriorityClass(_Named):
    value: int
    global_default: bool = False


class _RuntimeClass(_Named):
    overhead: _Overhead = _Overhead()


class _Taint(_Shape):
    key: str
    value: str = ""
    effect: str


class _NodeSpec(_Shape):
    unschedulable: bool = False
    taints: list[_Taint] = []


class _NodeCondition(_Shape):
    type: str
    status: str


class _NodeStatus(_Shape):
    allocatable: dict[str, _Quantity] = {}
    capacity: dict[str, _Quantity] = {}
    conditions: list[_NodeCondition] = []


class _Node(_Named):
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class _AdmissionStatus(_Shape):
    admission: Admission | None = None


class _Workload(_Named):
    status: _AdmissionStatus = _AdmissionStatus()


_SHAPES: Final[dict[str, type[_Named]]] = {
    "Job": _Job,
    "LimitRange": _LimitRange,
    "ResourceQuota": _ResourceQuota,
    "Node": _Node,
    "PriorityClass": _PriorityClass,
    "RuntimeClass": _RuntimeClass,
    "Workload": _Workload,
}


def without_nulls(value: Any) -> Any:  # noqa: ANN401  # whatever YAML gives
    """A manifest as an API server takes it: a field that is null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def shape_problem(manifest: Json) -> str | None:
    """What is wrong with the fields of an object that a simulation reads; None if nothing is."""
    try:
        _SHAPES.get(manifest["kind"], _Named).model_validate(manifest)
    except ValidationError as error:
        return "; ".join(str(problem) for problem in problems_of(error))
    return None

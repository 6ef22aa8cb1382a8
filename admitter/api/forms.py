"""The fields of live objects that the controller reads, by type: one that has another can't be read.

An API server checks the schema of each kind, so nearly everything fits. What does not (a schema that was
loosened, an older or a newer version of a kind, a defect) is named by its field, before it gets to anything
that adds up or compares. Whether a value makes sense, such as a quantity, is for those that use it to say.
"""

from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Annotated, Any, Final, Required

import orjson
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from admitter.api.base import problems_of

Json = dict[str, Any]
Texts = dict[str, str]

LEVELS: Final = 20
"""How deep a field that is read may be."""
MOST_PROBLEMS: Final = 3
"""So many fields of an object are named."""


@lru_cache(maxsize=4096)  # the times of a status are read with each of its versions
def _time(value: str) -> str:
    try:
        datetime.fromisoformat(value).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{value[:40]!r} is no time of the years 1 to 9999") from error
    return value


_Time = Annotated[str, AfterValidator(_time)]
_Word = Annotated[str, Field(min_length=1)]
_Quantities = dict[str, str | int | float]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
_Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class _Owner(TypedDict, total=False):
    kind: Required[str]
    name: Required[Annotated[str, Field(max_length=253)]]  # it goes into the path of a request
    uid: Required[str]
    controller: bool


class _Metadata(TypedDict, total=False):
    name: Required[_Word]
    namespace: str
    uid: Required[_Word]
    resourceVersion: Required[Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]]
    generation: _Long
    labels: Texts
    annotations: Texts
    creationTimestamp: Required[_Time]
    ownerReferences: list[_Owner]


class _ManagedField(TypedDict, total=False):
    subresource: str
    time: _Time | None


class _DefinitionMetadata(_Metadata, total=False):
    """Of Jobs, Workloads, pods, nodes and namespaces it is not read when they were changed."""

    managedFields: list[_ManagedField]


class _TemplateMetadata(TypedDict, total=False):
    labels: Texts
    annotations: Texts


class _Requirements(TypedDict, total=False):
    requests: _Quantities
    limits: _Quantities


class _Container(TypedDict, total=False):
    resources: _Requirements
    restartPolicy: str


class _Toleration(TypedDict, total=False):
    key: str
    operator: str
    value: str
    effect: str


class _Expression(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: list[str]


class _Term(TypedDict, total=False):
    matchExpressions: list[_Expression]
    matchFields: list[_Expression]


class _Terms(TypedDict):
    nodeSelectorTerms: list[_Term]


class _NodeAffinity(TypedDict, total=False):
    requiredDuringSchedulingIgnoredDuringExecution: _Terms | None


class _Affinity(TypedDict, total=False):
    nodeAffinity: _NodeAffinity | None


class _PodSpec(TypedDict, total=False):
    containers: list[_Container]
    initContainers: list[_Container]
    resources: _Requirements
    overhead: _Quantities
    nodeSelector: Texts
    tolerations: list[_Toleration]
    affinity: _Affinity | None
    priorityClassName: str
    runtimeClassName: str
    nodeName: str
    schedulerName: str
    resourceClaims: list[Json]


class _Condition(TypedDict, total=False):
    type: Required[str]
    status: Required[str]
    reason: str
    message: str
    lastTransitionTime: _Time | None
    observedGeneration: _Long


class _OwnCondition(TypedDict, total=False):
    """A condition that the controller has written: it says since when it is so."""

    type: Required[str]
    status: Required[str]
    reason: str
    message: str
    lastTransitionTime: Required[_Time]
    observedGeneration: _Long


class _Named(TypedDict):
    metadata: _Metadata


class _Template(TypedDict, total=False):
    metadata: _TemplateMetadata
    spec: Required[_PodSpec]


class _JobSpec(TypedDict, total=False):
    suspend: bool
    manualSelector: bool
    parallelism: _Count
    completions: _Count | None
    template: Required[_Template]


class _JobStatus(TypedDict, total=False):
    conditions: list[_Condition]
    active: _Count
    terminating: _Count
    succeeded: _Count
    startTime: _Time | None


class _Job(_Named, total=False):
    spec: Required[_JobSpec]
    status: _JobStatus


class _PodStatus(TypedDict, total=False):
    phase: str
    conditions: list[_Condition]


class _Pod(_Named, total=False):
    spec: Required[_PodSpec]
    status: _PodStatus


class _PodSet(TypedDict, total=False):
    name: Required[str]
    count: Required[_Count]
    minCount: _Count | None
    requests: Annotated[_Quantities, Field(max_length=64)]
    nodeSelector: Annotated[Texts, Field(max_length=64)]
    tolerations: Annotated[list[_Toleration], Field(max_length=64)]
    affinity: _Affinity | None


class _WorkloadSpec(TypedDict, total=False):
    queueName: Required[_Word]
    priority: _Priority
    priorityClassName: str
    active: bool
    podSets: Required[Annotated[list[_PodSet], Field(min_length=1, max_length=8)]]


class _Assignment(TypedDict, total=False):
    name: Required[str]
    count: Required[_Count]
    flavors: Texts
    usage: _Quantities


class _Admission(TypedDict, total=False):
    clusterQueue: Required[_Word]
    pool: str
    podSets: Required[Annotated[list[_Assignment], Field(min_length=1, max_length=8)]]


class _Preemption(TypedDict, total=False):
    namespace: Required[str]
    name: Required[str]
    uid: Required[str]
    admission: Required[_Admission]
    generation: _Long | None
    message: str
    evictAt: _Time | None


class _Place(TypedDict, total=False):
    generation: Required[_Long]
    admission: _Admission | None


class _BackOff(TypedDict):
    count: _Count
    until: _Time


class _WorkloadStatus(TypedDict, total=False):
    state: str
    reason: str
    message: str
    conditions: list[_OwnCondition]
    admission: _Admission | None
    preemption: _Preemption | None
    place: _Place | None
    backOff: _BackOff | None


class _Workload(_Named, total=False):
    spec: Required[_WorkloadSpec]
    status: _WorkloadStatus


class _Limit(TypedDict, total=False):
    type: str
    default: _Quantities
    defaultRequest: _Quantities
    max: _Quantities
    min: _Quantities


class _LimitRangeSpec(TypedDict, total=False):
    limits: list[_Limit]


class _Dated(TypedDict):
    """An object of which it is read when it was changed last."""

    metadata: _DefinitionMetadata


class _LimitRange(_Dated, total=False):
    spec: _LimitRangeSpec


class _ResourceQuotaSpec(TypedDict, total=False):
    hard: _Quantities


class _ResourceQuota(_Named, total=False):
    spec: _ResourceQuotaSpec


class _PriorityClass(_Dated, total=False):
    value: Required[_Priority]
    globalDefault: bool


class _Overhead(TypedDict, total=False):
    podFixed: _Quantities


class _RuntimeClass(_Dated, total=False):
    overhead: _Overhead | None


class _Taint(TypedDict, total=False):
    key: Required[str]
    value: str
    effect: Required[str]


class _NodeSpec(TypedDict, total=False):
    unschedulable: bool
    taints: list[_Taint]


class _NodeStatus(TypedDict, total=False):
    conditions: list[_Condition]
    allocatable: _Quantities
    capacity: _Quantities


class _Node(_Named, total=False):
    spec: _NodeSpec
    status: _NodeStatus


class _DefinitionStatus(TypedDict, total=False):
    conditions: list[_OwnCondition]
    managedSince: dict[str, _Time]
    since: _Time | None


class _Declared(TypedDict, total=False):
    """A queue, quota, flavor or policy, as far as it is used though its own model refuses its spec."""

    metadata: Required[_DefinitionMetadata]
    status: _DefinitionStatus


class _Definition(_Declared, total=False):
    spec: Json


class _LocalQueueSpec(TypedDict, total=False):
    clusterQueue: Required[_Word]
    stopPolicy: str
    priorityClasses: list[str]


class _LocalQueue(_Declared, total=False):
    spec: Required[_LocalQueueSpec]


class _FlavorOfQueue(TypedDict, total=False):
    name: str


class _Resource(TypedDict, total=False):
    name: str
    flavors: list[_FlavorOfQueue]


class _ClusterQueueSpec(TypedDict, total=False):
    cohort: str
    priorityClasses: list[str]
    resources: list[_Resource]


class _ClusterQueue(_Declared, total=False):
    spec: _ClusterQueueSpec


class _CohortSpec(TypedDict, total=False):
    parent: str
    resources: list[_Resource]


class _Cohort(_Declared, total=False):
    spec: _CohortSpec


class _ElasticQuotaSpec(TypedDict, total=False):
    min: _Quantities
    max: _Quantities
    namespaces: list[str]
    flavors: list[str]
    manageAllJobs: bool


class _ElasticQuota(_Declared, total=False):
    spec: _ElasticQuotaSpec


class _LeaseMetadata(TypedDict, total=False):
    name: Required[_Word]
    resourceVersion: Required[str]
    labels: Texts
    annotations: Texts


class _LeaseSpec(TypedDict, total=False):
    holderIdentity: str
    leaseTransitions: _Long
    leaseDurationSeconds: _Long | float


class _Lease(TypedDict, total=False):
    metadata: Required[_LeaseMetadata]
    spec: _LeaseSpec


_FORMS: Final[dict[str, Any]] = {
    "leases": _Lease,
    "jobs": _Job,
    "workloads": _Workload,
    "pods": _Pod,
    "localqueues": _LocalQueue,
    "clusterqueues": _ClusterQueue,
    "cohorts": _Cohort,
    "elasticquotas": _ElasticQuota,
    "compositeelasticquotas": _ElasticQuota,
    "limitranges": _LimitRange,
    "resourcequotas": _ResourceQuota,
    "nodes": _Node,
    "priorityclasses": _PriorityClass,
    "runtimeclasses": _RuntimeClass,
    "namespaces": _Named,
}


@cache
def _form(declared: Any) -> TypeAdapter[Any]:  # noqa: ANN401  # a TypedDict
    return TypeAdapter(declared)


def is_admission(raw: object) -> bool:
    """Whether all fields of an admission of a Workload are what they have to be."""
    try:
        _form(_Admission).validate_python(raw, strict=True)
    except ValidationError:
        return False
    return True


def fitted(plural: str, raw: Json) -> Json:
    """An object of which all fields that are used are what they have to be; a field that is null is left out.

    Args:
        plural: of its kind.
        raw: the object.

    Raises:
        ValueError: it is not; the words name the fields.
    """
    try:
        orjson.dumps([part for name, part in raw.items() if name != "metadata"])
    except TypeError as error:
        raise ValueError("it is nested deeper than 254 levels") from error
    form = _form(_FORMS.get(plural, _Definition))
    try:
        form.validate_python(raw, strict=True)
    except ValidationError:
        return _without_nulls_fitted(form, raw)
    return raw


def _without_nulls_fitted(form: TypeAdapter[Any], raw: Json) -> Json:
    metadata = raw.get("metadata")
    if isinstance(metadata, dict) and metadata.get("namespace", "") is None:
        raise ValueError("metadata.namespace: it is null")
    made: Json = _without_nulls(raw)
    try:
        form.validate_python(made, strict=True)
    except ValidationError as error:
        found = [str(problem) for problem in problems_of(error)]
        more = f"; and {len(found) - MOST_PROBLEMS} more" if len(found) > MOST_PROBLEMS else ""
        raise ValueError("; ".join(found[:MOST_PROBLEMS]) + more) from error
    return made


def _without_nulls(value: Any, levels: int = LEVELS) -> Any:  # noqa: ANN401  # whatever JSON has
    """The same without fields that are null, as deep as any field is that is read."""
    if not levels:
        return value
    if isinstance(value, dict):
        return {name: _without_nulls(each, levels - 1) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each, levels - 1) for each in value]
    return value

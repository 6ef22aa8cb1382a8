"""The fields of live objects that the controller reads, by type: one that has another can't be read.

An API server checks the schema of each kind, so nearly everything fits. What does not (a schema that was
loosened, an older or a newer version of a kind, a defect) is named by its field, before it gets to anything
that adds up or compares. Whether a value makes sense, such as a quantity, is for those that use it to say.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from admitter.api.base import problems_of

Json = dict[str, Any]
Texts = dict[str, str]

LEVELS: Final = 20
"""How deep a field that is read may be."""
MOST_PROBLEMS: Final = 3
"""So many fields of an object are named."""


def _time(value: str) -> str:
    try:
        datetime.fromisoformat(value).astimezone(UTC).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{value[:40]!r} is no time of the years 1 to 9999") from error
    return value


_Time = Annotated[str, AfterValidator(_time)]
_Quantities = dict[str, str | int | float]
_Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
_Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class _Form(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _ManagedField(_Form):
    subresource: str = ""
    time: _Time | None = None


class _Owner(_Form):
    kind: str
    name: str
    uid: str
    controller: bool = False


class _Metadata(_Form):
    name: str = Field(min_length=1)
    namespace: str = ""
    uid: str = Field(min_length=1)
    resource_version: str = Field(pattern=r"^[0-9]{1,20}$")
    generation: _Long = 0
    labels: Texts = {}
    annotations: Texts = {}
    creation_timestamp: _Time
    managed_fields: list[_ManagedField] = []
    owner_references: list[_Owner] = []


class _TemplateMetadata(_Form):
    labels: Texts = {}
    annotations: Texts = {}


class _Requirements(_Form):
    requests: _Quantities = {}
    limits: _Quantities = {}


class _Container(_Form):
    resources: _Requirements = _Requirements()
    restart_policy: str = ""


class _Toleration(_Form):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class _Expression(_Form):
    key: str
    operator: str
    values: list[str] = []


class _Term(_Form):
    match_expressions: list[_Expression] = []
    match_fields: list[_Expression] = []


class _Terms(_Form):
    node_selector_terms: list[_Term]


class _NodeAffinity(_Form):
    required_during_scheduling_ignored_during_execution: _Terms | None = None


class _Affinity(_Form):
    node_affinity: _NodeAffinity | None = None


class _PodSpec(_Form):
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    resources: _Requirements = _Requirements()
    overhead: _Quantities = {}
    node_selector: Texts = {}
    tolerations: list[_Toleration] = []
    affinity: _Affinity | None = None
    priority_class_name: str = ""
    runtime_class_name: str = ""
    node_name: str = ""
    scheduler_name: str = ""
    resource_claims: list[Json] = []


class _Condition(_Form):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: _Time | None = None
    observed_generation: _Long = 0


class _OwnCondition(_Form):
    """A condition that the controller has written: it says since when it is so."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: _Time
    observed_generation: _Long = 0


class _Conditioned(_Form):
    conditions: list[_Condition] = []


class _Named(_Form):
    metadata: _Metadata


class _Template(_Form):
    metadata: _TemplateMetadata = _TemplateMetadata()
    spec: _PodSpec


class _JobSpec(_Form):
    suspend: bool = False
    manual_selector: bool = False
    parallelism: _Count = 1
    completions: _Count | None = None
    template: _Template


class _JobStatus(_Conditioned):
    active: _Count = 0
    terminating: _Count = 0
    succeeded: _Count = 0
    start_time: _Time | None = None


class _Job(_Named):
    spec: _JobSpec
    status: _JobStatus = _JobStatus()


class _PodStatus(_Form):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(_Named):
    spec: _PodSpec
    status: _PodStatus = _PodStatus()


class _PodSet(_Form):
    name: str
    count: _Count
    min_count: _Count | None = None
    requests: _Quantities = Field(default={}, max_length=64)
    node_selector: Texts = Field(default={}, max_length=64)
    tolerations: list[_Toleration] = Field(default=[], max_length=64)
    affinity: _Affinity | None = None


class _WorkloadSpec(_Form):
    queue_name: str = Field(min_length=1)
    priority: _Priority = 0
    priority_class_name: str = ""
    active: bool = True
    pod_sets: list[_PodSet] = Field(min_length=1, max_length=8)


class _Admission(_Form):
    class _Assignment(_Form):
        name: str
        count: _Count
        flavors: Texts = {}
        usage: _Quantities = {}

    cluster_queue: str = Field(min_length=1)
    pool: str = ""
    pod_sets: list[_Assignment] = Field(min_length=1, max_length=8)


class _WorkloadStatus(_Form):
    class _Preemption(_Form):
        namespace: str
        name: str
        uid: str
        admission: _Admission
        generation: _Long | None = None
        message: str = ""
        evict_at: _Time | None = None

    class _Place(_Form):
        generation: _Long
        admission: _Admission | None = None

    class _BackOff(_Form):
        count: _Count
        until: _Time

    state: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[_OwnCondition] = []
    admission: _Admission | None = None
    preemption: _Preemption | None = None
    place: _Place | None = None
    back_off: _BackOff | None = None


class _Workload(_Named):
    spec: _WorkloadSpec
    status: _WorkloadStatus = _WorkloadStatus()


class _LimitRange(_Named):
    class _Spec(_Form):
        class _Limit(_Form):
            type: str = ""
            default: _Quantities = {}
            default_request: _Quantities = {}
            max: _Quantities = {}
            min: _Quantities = {}

        limits: list[_Limit] = []

    spec: _Spec = _Spec()


class _ResourceQuota(_Named):
    class _Spec(_Form):
        hard: _Quantities = {}

    spec: _Spec = _Spec()


class _PriorityClass(_Named):
    value: _Priority
    global_default: bool = False


class _RuntimeClass(_Named):
    class _Overhead(_Form):
        pod_fixed: _Quantities = {}

    overhead: _Overhead | None = None


class _Node(_Named):
    class _Spec(_Form):
        class _Taint(_Form):
            key: str
            value: str = ""
            effect: str

        unschedulable: bool = False
        taints: list[_Taint] = []

    class _Status(_Conditioned):
        allocatable: _Quantities = {}
        capacity: _Quantities = {}

    spec: _Spec = _Spec()
    status: _Status = _Status()


class _DefinitionStatus(_Form):
    conditions: list[_OwnCondition] = []
    managed_since: dict[str, _Time] = {}
    since: _Time | None = None


class _Definition(_Named):
    """A queue, quota, flavor or policy, as far as it is used though its own model refuses its spec."""

    spec: Json = {}
    status: _DefinitionStatus = _DefinitionStatus()


class _LocalQueue(_Definition):
    class _Spec(_Form):
        cluster_queue: str = Field(min_length=1)
        stop_policy: str = "None"
        priority_classes: list[str] = []

    spec: _Spec  # type: ignore[assignment]  # no other model reads it


class _Resource(_Form):
    class _Flavor(_Form):
        name: str = ""

    name: str = ""
    flavors: list[_Flavor] = []


class _ClusterQueue(_Definition):
    class _Spec(_Form):
        cohort: str = ""
        priority_classes: list[str] = []
        resources: list[_Resource] = []

    spec: _Spec = _Spec()  # type: ignore[assignment]  # as above


class _Cohort(_Definition):
    class _Spec(_Form):
        parent: str = ""
        resources: list[_Resource] = []

    spec: _Spec = _Spec()  # type: ignore[assignment]  # as above


class _ElasticQuota(_Definition):
    class _Spec(_Form):
        min: _Quantities = {}
        max: _Quantities = {}
        namespaces: list[str] = []
        flavors: list[str] = []
        manage_all_jobs: bool = False

    spec: _Spec = _Spec()  # type: ignore[assignment]  # as above


class _Lease(_Form):
    class _Metadata(_Form):
        name: str = Field(min_length=1)
        resource_version: str
        labels: Texts = {}
        annotations: Texts = {}

    class _Spec(_Form):
        holder_identity: str = ""
        lease_transitions: _Long = 0
        lease_duration_seconds: _Long | float = 0

    metadata: _Metadata
    spec: _Spec = _Spec()


_FORMS: Final[dict[str, type[_Form]]] = {
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


def is_admission(raw: object) -> bool:
    """Whether all fields of an admission of a Workload are what they have to be."""
    try:
        _Admission.model_validate(raw, strict=True)
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
    form = _FORMS.get(plural, _Definition)
    try:
        form.model_validate(raw, strict=True)
    except ValidationError:
        return _without_nulls_fitted(form, raw)
    return raw


def _without_nulls_fitted(form: type[_Form], raw: Json) -> Json:
    metadata = raw.get("metadata")
    if isinstance(metadata, dict) and metadata.get("namespace", "") is None:
        raise ValueError("metadata.namespace: it is null")
    made: Json = _without_nulls(raw)
    try:
        form.model_validate(made, strict=True)
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

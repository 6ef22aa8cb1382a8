"""The fields of live objects that the controller reads, by type: one that has another can't be read.

An API server checks the schema of each kind, so nearly everything fits. What does not (a schema that was
loosened, an older or a newer version of a kind, a defect) is named by its field, before it gets to anything
that adds up or compares. Whether a value makes sense, such as a quantity, is for those that use it to say.

Types are TypedDicts: pydantic checks dictionaries by them, and makes no objects. A field that no type has may
be anything.
"""

from datetime import UTC, datetime
from functools import cache, lru_cache
from types import GenericAlias
from typing import Annotated, Any, Final, Required

import orjson
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from admitter.api.base import problems_of

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
    return fields(requests=quantities, limits=quantities)


def containers(quantities: Type, least: int = 0) -> Type:
    """The type of a pod's containers, or of its init containers."""
    return several(fields(resources=requirements(quantities), restartPolicy=str), least)


def limit_range(quantities: Type) -> Type:
    kinds = dict.fromkeys(("default", "defaultRequest", "max", "min"), quantities)
    return fields(limits=several(fields(type=str, **kinds)))


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
_Quantities = dict[str, str | int | float]
_Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]

_METADATA: Final[dict[str, Type]] = {
    "name": needed(Word),
    "namespace": str,
    "uid": needed(Word),
    "resourceVersion": needed(Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]),
    "generation": _Long,
    "labels": Texts,
    "annotations": Texts,
    "creationTimestamp": needed(_Time),
    "ownerReferences": several(
        fields(
            apiVersion=str,
            kind=needed(str),
            name=needed(Annotated[str, Field(max_length=253)]),  # it goes into the path of a request
            uid=needed(str),
            controller=bool,
        )
    ),
}
_NAMED: Final = needed(fields(**_METADATA))
_DATED: Final = needed(fields(**_METADATA, managedFields=several(fields(subresource=str, time=_Time | None))))
"""Metadata of objects of which it is read when they were changed last."""

_AFFINITY: Final = fields(nodeAffinity=NODE_AFFINITY | None)
_POD_SPEC: Final = fields(
    containers=containers(_Quantities),
    initContainers=containers(_Quantities),
    resources=requirements(_Quantities),
    overhead=_Quantities,
    nodeSelector=Texts,
    tolerations=several(TOLERATION),
    affinity=_AFFINITY | None,
    priorityClassName=str,
    runtimeClassName=str,
    nodeName=str,
    schedulerName=str,
    schedulingGates=several(fields(name=needed(str))),
    resourceClaims=list[Json],
)

_CONDITIONS: Final = conditions(_Time | None, _Long)
_OWN_CONDITIONS: Final = conditions(needed(_Time), _Long)
"""What the controller has written says since when it is so."""

_JOB: Final = fields(
    metadata=_NAMED,
    spec=needed(
        fields(
            suspend=bool,
            manualSelector=bool,
            parallelism=Count,
            completions=Count | None,
            template=needed(fields(metadata=fields(labels=Texts, annotations=Texts), spec=needed(_POD_SPEC))),
        )
    ),
    status=fields(
        conditions=_CONDITIONS, active=Count, terminating=Count, succeeded=Count, startTime=_Time | None
    ),
)

_ENDED_PODS: Final = fields(name=needed(str), pods=needed(list[str]), earlier=list[str], lapsed=Count | None)
_ASSIGNMENT: Final = fields(name=needed(str), count=needed(Count), flavors=Texts, usage=_Quantities)
_ADMISSION: Final = fields(
    clusterQueue=needed(Word), pool=str, podSets=needed(several(_ASSIGNMENT, least=1, most=8))
)
_POD_SET: Final = fields(
    name=needed(str),
    count=needed(Count),
    minCount=Count | None,
    requests=Annotated[_Quantities, Field(max_length=64)],
    nodeSelector=Annotated[Texts, Field(max_length=64)],
    tolerations=several(TOLERATION, most=64),
    affinity=_AFFINITY | None,
)
_REPLICAS: Final = fields(
    size=needed(Count),
    bound=needed(Count | None),
    pods=needed(Count),
    autoscales=needed(bool),
    grows=needed(bool),
)
_SIZE: Final = {"wanted": needed(Count), "granted": needed(Count)}
_RESIZE: Final = fields(
    changedAt=needed(_Time), podSets=several(fields(name=needed(str), **_SIZE), most=8), **_SIZE
)
_WORKLOAD: Final = fields(
    metadata=_NAMED,
    spec=needed(
        fields(
            queueName=needed(Word),
            priority=Priority,
            priorityClassName=str,
            workloadPriorityClass=str,
            active=bool,
            podSets=needed(several(_POD_SET, least=1, most=8)),
        )
    ),
    status=fields(
        state=str,
        reason=str,
        message=str,
        conditions=_OWN_CONDITIONS,
        admission=_ADMISSION | None,
        preemption=fields(
            namespace=needed(str),
            name=needed(str),
            uid=needed(str),
            admission=needed(_ADMISSION),
            generation=_Long | None,
            message=str,
            evictAt=_Time | None,
        )
        | None,
        place=fields(generation=needed(_Long), admission=_ADMISSION | None) | None,
        evictedAt=several(_Time),
        backOff=fields(count=needed(Count), until=needed(_Time)) | None,
        succeededPods=several(_ENDED_PODS),
        held=several(fields(name=needed(str), count=needed(Count)), most=8),
        resize=_RESIZE | None,
    ),
)
_NODE: Final = fields(
    metadata=_NAMED,
    spec=fields(unschedulable=bool, taints=several(TAINT)),
    status=fields(conditions=_CONDITIONS, allocatable=_Quantities, capacity=_Quantities),
)
_LEASE: Final = fields(
    metadata=needed(fields(name=needed(Word), resourceVersion=needed(str), labels=Texts, annotations=Texts)),
    spec=fields(
        holderIdentity=str,
        leaseTransitions=_Long,
        leaseDurationSeconds=_Long | float,
        acquireTime=str,
        renewTime=str,
    ),
)


def _definition(spec: Type) -> Type:
    """A queue, quota, flavor or policy, as far as it is used though its own model refuses its spec."""
    status = fields(
        conditions=_OWN_CONDITIONS,
        managedSince=dict[str, _Time],
        since=_Time | None,
        evictions=several(fields(at=needed(_Time), uid=needed(str))),
    )
    return fields(metadata=_DATED, status=status, spec=spec)


_SELECTOR: Final = fields(
    matchLabels=Texts,
    matchExpressions=several(fields(key=needed(str), operator=needed(str), values=list[str])),
)
_RESOURCES: Final = several(fields(name=str, flavors=several(fields(name=str))))
_ELASTIC_QUOTA: Final = _definition(
    fields(
        min=_Quantities,
        max=_Quantities,
        namespaces=list[str],
        flavors=list[str],
        manageAllJobs=bool,
        manageAllPods=bool,
    )
)

DESCRIBED: Final = "objects of kinds that are described"
"""Stands for their plural: the rest of them is checked where a JobKind says that it is read."""

RECORDS: Final = "what snapshots keep of such objects"
"""Likewise."""

_FORMS: Final[dict[str, Type]] = {
    "leases": _LEASE,
    "jobs": _JOB,
    "workloads": _WORKLOAD,
    "pods": fields(metadata=_NAMED, spec=needed(_POD_SPEC), status=fields(phase=str, conditions=_CONDITIONS)),
    "localqueues": _definition(
        needed(fields(clusterQueue=needed(Word), stopPolicy=str, priorityClasses=list[str]))
    ),
    "clusterqueues": _definition(fields(cohort=str, priorityClasses=list[str], resources=_RESOURCES)),
    "cohorts": _definition(fields(parent=str, resources=_RESOURCES)),
    "elasticquotas": _ELASTIC_QUOTA,
    "compositeelasticquotas": _ELASTIC_QUOTA,
    "limitranges": fields(metadata=_DATED, spec=limit_range(_Quantities)),
    "resourcequotas": fields(metadata=_NAMED, spec=fields(hard=_Quantities)),
    "nodes": _NODE,
    "statefulsets": fields(metadata=_NAMED, spec=fields(replicas=Count | None)),
    "priorityclasses": fields(metadata=_DATED, value=needed(Priority), globalDefault=bool),
    "workloadpriorityclasses": _definition(
        needed(fields(value=needed(Priority), clusterQueues=list[str], namespaceSelector=_SELECTOR))
    ),
    "runtimeclasses": fields(metadata=_DATED, overhead=fields(podFixed=_Quantities) | None),
    "namespaces": fields(metadata=_NAMED),
    DESCRIBED: fields(metadata=_NAMED),
    RECORDS: fields(
        metadata=_NAMED,
        suspended=needed(bool),
        podSets=needed(
            several(
                fields(
                    name=needed(str),
                    count=needed(Count),
                    template=needed(_POD_SPEC),
                    marks=needed(fields(labels=needed(Texts), annotations=needed(Texts))),
                    ended=Count,
                    replicas=_REPLICAS,
                )
            )
        ),
        priorityClassName=needed(str),
        status=needed(
            fields(
                active=needed(Count),
                terminating=needed(Count),
                succeeded=needed(Count),
                startTime=_Time | None,
                conditions=needed(dict[str, fields(status=needed(str), message=needed(str))]),  # type: ignore[misc]  # made by a call
            )
        ),
        problem=needed(str),
    ),
}
_OTHERS: Final = _definition(Json)


def is_admission(raw: object) -> bool:
    """Whether all fields of an admission of a Workload are what they have to be."""
    try:
        checker(_ADMISSION).validate_python(raw, strict=True)
    except ValidationError:
        return False
    return True


def fitted(plural: str, raw: Json) -> Json:
    """An object of which all fields that are used are what they have to be; a field that is null is left out.

    Raises:
        ValueError: it is not; the words name the fields.
    """
    try:
        orjson.dumps([part for name, part in raw.items() if name != "metadata"])
    except TypeError as error:
        raise ValueError("it is nested deeper than 254 levels") from error
    form = checker(_FORMS.get(plural, _OTHERS))
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

"""JobKind: a kind of objects that run pods, described instead of coded (docs/design/kinds.md)."""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from admitter.api.base import (
    LONGEST_NAME,
    SET_LIST,
    STATE_COLUMNS,
    Conditions,
    Model,
    Name,
    PrinterColumn,
    Resource,
    refuse,
)

LONGEST_EXPRESSION: Final = 1024
"""Characters of an expression."""
MOST_POD_SETS: Final = 8
"""Pod sets of one object, as of a Workload."""

Cel = Annotated[str, Field(min_length=1, max_length=LONGEST_EXPRESSION)]
"""An expression in the Common Expression Language."""

_SEGMENT = r"[A-Za-z][-A-Za-z0-9_]{0,62}"
Path = Annotated[str, Field(max_length=512, pattern=rf"^{_SEGMENT}(\.{_SEGMENT}){{0,15}}$")]
"""Names of fields with dots between them, such as spec.template."""

FieldName = Annotated[str, Field(max_length=63, pattern="^[a-z][A-Za-z]*$")]

Variable = Annotated[str, Field(max_length=LONGEST_NAME, pattern=r"^[a-z][A-Za-z0-9]*$")]

RESERVED: Final = frozenset(
    {*("object", "item", "key", "index", "variables"), *("apiVersion", "kind", "metadata", "spec", "status")}
)
"""Names that no related object can have: expressions and paths use them already."""


class Group(Model):
    """A kind of the API, in any version."""

    group: Annotated[str, Field(max_length=253)] = ""
    """Its group; empty for the core of Kubernetes."""
    kind: Annotated[str, Field(max_length=63, pattern="^[A-Z][A-Za-z0-9]{0,62}$")]
    """Its kind, such as JobSet."""


class KindResource(Group):
    """The resource that a JobKind describes. Only its version can change."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.group) == has(oldSelf.group) && "
                    "(!has(self.group) || self.group == oldSelf.group) && "
                    "self.kind == oldSelf.kind && self.plural == oldSelf.plural",
                    "message": "group, kind and plural can't change: delete this JobKind, make another",
                }
            ]
        }
    )

    version: Annotated[str, Field(pattern="^v[0-9][a-z0-9]{0,20}$")]
    """The version that paths and expressions are written for."""
    plural: Annotated[str, Field(max_length=63, pattern="^[a-z][a-z0-9]{0,62}$")]
    """Its name in paths of the API, such as jobsets."""

    @property
    def api_version(self) -> str:
        """Group and version, as manifests have them."""
        return f"{self.group}/{self.version}" if self.group else self.version


_Scalar = Annotated[bool | str, WithJsonSchema({"x-kubernetes-preserve-unknown-fields": True})]
"""True, false or a text: no schema of a definition can say so."""


class Suspension(Model):
    """How an object is told to have no pods."""

    path: Path
    """The field, such as spec.suspend."""
    stopped: _Scalar = True
    """Its value while the object may have no pods."""
    running: _Scalar = False
    """Its value once the object may have pods."""


class Related(Model):
    """Another object that says a part of what pods there are, such as the runtime of a TrainJob."""

    name: Variable
    """The variable of expressions, and the first name of paths, that stands for it."""
    api_version: Annotated[
        str, Field(max_length=320, pattern=r"^([a-z0-9][-a-z0-9.]*/)?v[0-9][a-z0-9]{0,20}$")
    ]
    """Its group and version, such as trainer.kubeflow.org/v1alpha1."""
    kind: Cel
    """Gives its kind."""
    object_name: Cel
    """Gives its name. It is looked up in the namespace of the object, and then among objects without one."""


class NamedExpression(Model):
    """A value that other expressions use as variables.NAME."""

    name: Variable
    """Its name."""
    expression: Cel
    """Gives its value. It may use the variables before it."""


class AddedResources(Model):
    """What one container requests beyond, or instead of, what the template says."""

    name: Annotated[str, Field(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """The container. The pod gets it if its template has none of that name, unless replaces is set."""
    when: Cel | None = None
    """Gives whether it applies. Absent: it does."""
    resources: Cel
    """Gives requests and limits, as a container has them; they replace those of the same resources."""
    replaces: bool = False
    """Whether they replace all that the container requests. It has to be in the template then."""
    init: bool = False
    """Whether it is an init container, which runs before the others."""


class EndedPods(Model):
    """Where the status says which pods of a pod set have ended for good.

    It may say less again, when the operator begins anew.
    """

    path: Path
    """A list in the object with an element for each pod set, such as status.replicatedJobsStatus."""
    name: FieldName = "name"
    """The field of an element with the name of the pod set."""
    count: FieldName = "succeeded"
    """The field of an element with how many parts of the pod set have succeeded."""
    of: Cel = "1"
    """Gives of how many parts the pod set is, each with as many pods."""


class Growth(Model):
    """How the number of replicas of a pod set changes while the object runs (docs/growing.md).

    A replica is one pod, or several that come and go together.
    """

    replicas: Path
    """How many replicas the object asks for. Users, or its autoscaler, may change it while it runs."""
    bound: Path
    """The most replicas that its operator runs, whatever is asked for. The controller alone sets it while the
    object runs: to what is granted. Once the object is stopped it is again what its user wrote."""
    pods: Cel = "1"
    """Gives how many pods a replica has."""
    when: Cel | None = None
    """Gives whether the pod set may grow; absent: it may. What has grown shrinks once this says no."""
    autoscales: Cel = "false"
    """Gives whether an autoscaler asks for replicas, which never asks for more than the bound: the bound is
    raised beyond what it asks for as soon as it asks for as many."""
    ending: Path | None = None
    """A list of the names of pods that its operator is to end first, whatever is asked for. Without it the
    operator chooses them."""
    label: Annotated[str, Field(min_length=1, max_length=317)]
    """The label of its pods that has the name of the pod set, in capital letters or small ones."""
    replica_label: str | None = Field(default=None, min_length=1, max_length=317)
    """The label that all pods of a replica have in common, which end together. Without it each ends alone."""


class PodSetsOf(Model):
    """Where pods of one template are described: of one pod set, or with each of one for each element."""

    name: Name | None = None
    """The name of the pod set."""
    name_from: Cel | None = None
    """Gives the name, with each. It is written in small letters."""
    each: Path | None = None
    """A list or a map; there is a pod set for each element. Expressions know the element as item, with its
    index, or its key in a map; other paths of the pod set begin at the element."""
    when: Cel | None = None
    """Gives whether there is the pod set. Absent: there is."""
    template: Path | None = None
    """The pod template. It may be missing in the object only if containers says what its pods request."""
    object: Path | None = None
    """Instead of a template: an object that is made as it stands there. Its pod sets are those of its
    kind."""
    declared: Path | None = None
    """With object: a list of path and replicas, for objects of a kind that no JobKind describes."""
    count: Cel = "1"
    """Gives how many pods run at a time."""
    ended: EndedPods | None = None
    """Which of these pods have ended for good. Without it quota is held for all of them until the object has
    finished."""
    growth: Growth | None = None
    """How it grows and shrinks while the object runs. Without it it can't."""
    containers: list[AddedResources] = Field(default=[], max_length=8)
    """What containers request beyond the template, in this order."""
    merge: dict[Annotated[str, Field(pattern="^[a-z][A-Za-z]+$")], Path] = Field(default={}, max_length=16)
    """Fields of the pod's spec that stand outside of its template, such as nodeSelector: and where."""

    @model_validator(mode="after")
    def _is_one_form(self) -> Self:
        wrong = []
        if (self.name is None) == (self.name_from is None) or (self.name_from and not self.each):
            wrong.append((("name",), "give name, or with each nameFrom"))
        if self.object is None and self.template is None and not self.containers:
            wrong.append((("template",), "is missing: give template, object or containers"))
        if self.object is not None and (self.template or self.containers or self.merge):
            wrong.append((("object",), "means something only without template, containers and merge"))
        if self.object is not None and self.growth is not None:
            wrong.append((("growth",), "means something only without object"))
        if self.object is None and self.declared is not None:
            wrong.append((("declared",), "means something only with object"))
        refuse(wrong)
        return self


class Refused(Model):
    """What objects of the kind may do that can't be counted."""

    when: Cel
    """Gives whether the object does so."""
    message: Annotated[str, Field(min_length=1, max_length=512)]
    """Why it is refused, and what to do."""


class End(Model):
    """When work is over."""

    succeeded: Cel
    """Gives whether it has succeeded."""
    failed: Cel
    """Gives whether it has failed."""
    message: Cel | None = None
    """Gives what to say about it."""


class Injection(StrEnum):
    """Where an admission puts node selectors, tolerations, labels and annotations of pods in an object."""

    TEMPLATES = "Templates"
    """Into the pod templates of the object."""
    RUNTIME_PATCH = "RuntimePatch"
    """Into an entry of spec.runtimePatches that is the controller's, as of a TrainJob: its operator merges it
    into the templates of a related object."""
    POD_SET_INFOS = "PodSetInfos"
    """Into podSetInfos of each of spec.components, as of an AppWrapper: its operator adds an entry to each
    template when it makes the component, in the order of podSets in status.componentStatus."""


class Restore(StrEnum):
    """What an eviction takes an admission out of, so that the next one may choose other flavors."""

    TEMPLATES = "Templates"
    """The object alone."""
    CHILDREN = "Children"
    """Its suspended children too, which its operator merges the next admission into."""


class JobKindSpec(Model):
    """How objects of a kind are counted, stopped and watched."""

    resource: KindResource
    """The resource that is described."""
    suspend: Suspension
    """How an object is told to have no pods."""
    related: list[Related] = Field(default=[], max_length=4)
    """Other objects that paths and expressions use."""
    variables: list[NamedExpression] = Field(default=[], max_length=16)
    """Values that several expressions use."""
    pod_sets: list[PodSetsOf] = Field(min_length=1, max_length=16)
    """Where its pods are described."""
    refused: list[Refused] = Field(default=[], max_length=16)
    """What is refused because it can't be counted."""
    priority_class_name: Cel | None = None
    """Gives the PriorityClass, or an empty text. Absent or empty: the first that a pod template names."""
    active: Cel
    """Gives whether pods of it may be left."""
    ready: Cel | None = None
    """Gives whether all of its pods are ready."""
    acted: Cel | None = None
    """Gives whether its operator has acted on the object as it is. Without it, and where it does not say so,
    ten seconds after a change of a bound it has."""
    finished: End
    """When its work is over."""
    children: list[Group] = Field(default=[], max_length=16)
    """The kinds that its operator makes: an object that belongs to one of it is not queued a second time."""
    operators: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(
        default=[], max_length=8, json_schema_extra=SET_LIST
    )
    """The accounts of its operator, such as system:serviceaccount:jobset-system:jobset-controller-manager. No
    other account makes or changes children. admitter install binds them to the role that allows it."""
    injection: Injection = Injection.TEMPLATES
    """Where in an object an admission puts what its pods get. An eviction takes it out again."""
    restore: Restore = Restore.TEMPLATES
    """What an eviction takes an admission out of."""

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        names = [each.name for each in self.related]
        refuse(
            (("related", n, "name"), f"{name} is a name that something else has")
            for n, name in enumerate(names)
            if name in RESERVED or name in names[:n]
        )
        return self


class JobKindStatus(Model):
    """Whether it works."""

    conditions: Conditions


class JobKind(Resource):
    """A kind of objects that run pods: where its pod templates are, how it is suspended, when it is over."""

    plural = "jobkinds"
    short_name = "jk"
    columns = (
        PrinterColumn("Group", "string", ".spec.resource.group"),
        PrinterColumn("Kind", "string", ".spec.resource.kind"),
        *STATE_COLUMNS,
    )

    spec: JobKindSpec
    """How objects of the kind are counted, stopped and watched."""
    status: JobKindStatus | None = None
    """Whether it works. Written by the controller."""

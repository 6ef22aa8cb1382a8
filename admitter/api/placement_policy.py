"""PlacementPolicy: the queues of Jobs that name none (docs/placement.md)."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from admitter.api.base import (
    STATE_COLUMNS,
    Conditions,
    LabelKey,
    LabelSelector,
    Model,
    Moment,
    Resource,
    atomic_list,
)

_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
QueuePath = Annotated[str, Field(min_length=1, max_length=68, pattern=rf"^{_PART}(\.{_PART})*$")]
"""The name of a ClusterQueue or Cohort; `root.` before it says nothing."""


class RuleSource(StrEnum):
    """Where a rule gets the name of a queue from."""

    LABEL = "Label"
    NAMESPACE = "Namespace"
    QUEUE = "Queue"
    USER = "User"
    GROUP = "Group"


def _only_with(field: str, source: RuleSource) -> dict[str, JsonValue]:
    """A rule of the API server: a field is there if the name comes from it, and not otherwise."""
    rule = f"has(self.{field}) == (self.from == '{source}')"
    return {"rule": rule, "message": f"{field} is needed with from {source}, and means nothing without"}


class PlacementRule(Model):
    """One way to a queue."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                _only_with("label", RuleSource.LABEL),
                _only_with("queue", RuleSource.QUEUE),
            ]
        }
    )

    from_: RuleSource = Field(alias="from")
    """What names the queue. Label: a label of the Job or of its pod template. Namespace: the Job's namespace.
    Queue: the rule itself. User, Group: the maker of the Job, and its first group that is not of Kubernetes
    itself (system:...)."""
    label: LabelKey | None = None
    """With from Label: the key of the label that names the queue."""
    queue: QueuePath | None = None
    """With from Queue: the name of the ClusterQueue."""
    parent: QueuePath | None = None
    """The Cohort that a ClusterQueue made by this rule belongs to. Absent: that on the way to it if its name
    is a path such as root.a.b, else that in the namespace's annotation admitter.dev/parent-queue, else root.
    A queue in the namespace's annotations is used instead."""
    create: bool = False
    """Make the ClusterQueue if there is none. Else the next rule is tried."""
    create_parent: bool = False
    """Make the parent too if there is none. Else the next rule is tried."""

    @model_validator(mode="after")
    def _fields_belong_together(self) -> Self:
        for field, source in (("label", RuleSource.LABEL), ("queue", RuleSource.QUEUE)):
            given = getattr(self, field) is not None
            if given != (self.from_ is source):
                words = "is missing" if not given else f"means something only with from {source.value}"
                raise ValueError(f"{field} {words}")
        return self


class PlacementPolicySpec(Model):
    """Where Jobs go that name no queue."""

    namespace_selector: LabelSelector | None = None
    """The namespaces in which Jobs are placed. Absent: none. Empty ({}): all. Of several policies for one
    namespace the first by name counts."""
    rules: list[PlacementRule] = Field(default=[], json_schema_extra=atomic_list(32))
    """Tried in this order; the first that leads to a queue decides."""


class PlacementPolicyStatus(Model):
    """Whether it works, and since when."""

    conditions: Conditions
    since: Moment | None = None
    """Since then the spec is what it is. Jobs that were made before, and were not suspended for a policy when
    they were made, are left alone."""


class PlacementPolicy(Resource):
    """Rules by which Jobs that name no queue find theirs, in the namespaces that it selects."""

    plural = "placementpolicies"
    short_name = "pp"
    columns = STATE_COLUMNS

    spec: PlacementPolicySpec = PlacementPolicySpec()
    """Where Jobs go that name no queue."""
    status: PlacementPolicyStatus | None = None
    """Whether it works, and since when. Written by the controller."""

"""PlacementPolicy: which queue Jobs go to that name none (002, *Namespace to queue mapping*)."""

from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from admitter.api.base import (
    AGE,
    Column,
    Conditions,
    LabelKey,
    LabelSelector,
    Model,
    Resource,
    atomic_list,
)

QueuePath = Annotated[str, Field(min_length=1, max_length=68, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""The name of a ClusterQueue or Cohort; `root.` before it says nothing."""


class RuleSource(StrEnum):
    """Where a rule gets the name of a queue from."""

    LABEL = "Label"
    NAMESPACE = "Namespace"
    QUEUE = "Queue"
    USER = "User"
    GROUP = "Group"


class PlacementRule(Model):
    """One way to a queue."""

    from_: RuleSource = Field(
        alias="from",
        description="What names the queue. Label: a label of the Job or of its pod template. Namespace: the "
        "Job's namespace. Queue: the rule itself. User, Group: who made the Job, and the first group of his.",
    )
    label: LabelKey | None = Field(default=None, description="With from Label: the label's key.")
    queue: QueuePath | None = Field(default=None, description="With from Queue: the ClusterQueue.")
    parent: QueuePath | None = Field(
        default=None,
        description="The Cohort that a ClusterQueue made by this rule belongs to. Absent: that in the "
        "namespace's annotation admitter.dev/parent-queue, else root.",
    )
    create: bool = Field(
        default=False, description="Make the ClusterQueue if there is none. Else the next rule is tried."
    )
    create_parent: bool = Field(
        default=False, description="Make the parent too if there is none. Else the next rule is tried."
    )

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

    namespace_selector: LabelSelector | None = Field(
        default=None,
        description="The namespaces whose Jobs are placed. Absent: none. Empty ({}): all. Of several "
        "policies for one namespace the first by name counts.",
    )
    rules: list[PlacementRule] = Field(
        default=[],
        description="Tried in this order; the first that leads to a queue decides.",
        json_schema_extra=atomic_list(32),
    )


class PlacementPolicyStatus(Model):
    """Whether it works, and since when."""

    conditions: Conditions
    since: str | None = Field(
        default=None,
        description="Jobs that were made before are left alone: since then the spec is what it is.",
        json_schema_extra={"format": "date-time"},
    )


class PlacementPolicy(Resource):
    """Rules by which Jobs that name no queue find theirs, in the namespaces that it selects."""

    plural: ClassVar[str] = "placementpolicies"
    short_name: ClassVar[str] = "pp"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Active", "string", '.status.conditions[?(@.type=="Active")].status'),
        Column("Message", "string", '.status.conditions[?(@.type=="Active")].message', wide=True),
        AGE,
    )

    spec: PlacementPolicySpec = Field(
        default=PlacementPolicySpec(), description="Where Jobs go that name no queue."
    )
    status: PlacementPolicyStatus | None = Field(default=None, description="Written by the controller.")

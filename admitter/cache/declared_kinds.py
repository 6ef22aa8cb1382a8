"""Which kinds of job objects there are, by JobKinds and by what the controller has written about them.

For readers: they need no definitions, and know which JobKinds work by the condition `Active`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from admitter.api.base import checked
from admitter.api.conditions import ConditionType
from admitter.api.job_kind import JobKind
from admitter.cache.job_resources import JOB, OF_PODS, JobResource, resource_of
from admitter.cache.views import ObjectView


@dataclass(frozen=True, slots=True)
class DeclaredKind:
    """A JobKind that can be read.

    The problem is why it does not work, as the controller says; empty if it works; None if that is not known.
    """

    kind: JobKind
    problem: str | None

    @property
    def resource(self) -> JobResource:
        """What it describes."""
        return resource_of(self.kind)

    @property
    def sort(self) -> str:
        """What the titles of its objects begin with."""
        return self.kind.spec.resource.kind.lower()


def described_by(view: ObjectView) -> tuple[str, str]:
    """Group and kind of what a JobKind describes, also of one that is wrong; empty where it says none."""
    resource = view.spec.get("resource")
    named = resource if isinstance(resource, dict) else {}
    return str(named.get("group", "")), str(named.get("kind", ""))


def declared_kinds(job_kinds: Iterable[ObjectView]) -> list[DeclaredKind]:
    """The kinds that JobKinds describe, but for the batch/v1 Job; of two for one kind the one that works."""
    found: dict[str, DeclaredKind] = {}
    for view in sorted(job_kinds, key=lambda view: (view.created, view.name)):
        kind, _ = checked(JobKind, {"metadata": {"name": view.name}, "spec": view.spec})
        if kind is None or resource_of(kind).path == JOB.path:
            continue
        each = DeclaredKind(kind, _problem(view))
        if each.sort in OF_PODS:
            continue
        if each.sort not in found or each.problem == "":
            found[each.sort] = each
    return list(found.values())


def _problem(view: ObjectView) -> str | None:
    conditions = view.status.get("conditions") or ()
    active = next((each for each in conditions if each["type"] == ConditionType.ACTIVE), None)
    if active is None:
        return None
    return (
        ""
        if active["status"] == "True"
        else str(active.get("message") or active.get("reason") or "it says so")
    )

"""What the controllers know of job objects by their kind: where they are, how they are stopped and started.

The batch/v1 Job is one of them; all others come from JobKinds (`admitter.cache.described_views`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final
from urllib.parse import quote

from admitter.api.job_kind import Injection, JobKind, Restore
from admitter.client.store import Key
from admitter.kinds.replicas import Replicas

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobResource:
    """A kind of job objects."""

    group: str
    version: str
    kind: str
    plural: str
    suspend: tuple[str, ...] = ("spec", "suspend")  # the path of the field that stops an object
    stopped: bool | str = True
    running: bool | str = False
    start: Mapping[str, Any] = field(default_factory=dict)  # what a start puts into the spec besides
    # whether its status tells that its operator has acted on a start, and on the stop that follows
    proves: bool = False
    injection: Injection = Injection.TEMPLATES  # where an admission goes
    restore: Restore | None = None  # what an eviction takes it out of; None: the next start does
    children: frozenset[tuple[str, str]] = frozenset()  # group and kind of what its operator makes
    is_pods: bool = False  # whether an object of it is a pod that is there, or a group of them

    @property
    def api_version(self) -> str:
        """Group and version, as manifests have them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def path(self) -> str:
        """The URL path of all of its objects."""
        return (
            f"/apis/{self.api_version}/{self.plural}" if self.group else f"/api/{self.version}/{self.plural}"
        )

    @property
    def collection(self) -> str:
        """All of its objects, as kubectl names them: plural and group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def object_path(self, key: Key) -> str:
        """The URL path of an object, by the key of its view; the name may say anything.

        A group of pods is no object.
        """
        above = self.path.removesuffix(f"/{self.plural}")
        name = key[1].rpartition("/")[2]
        return f"{above}/namespaces/{key[0]}/{self.plural}/{quote(name, safe='')}"

    def is_stopped(self, raw: Json) -> bool:
        """Whether an object is told to have no pods."""
        value: Any = raw
        for step in self.suspend:
            value = value.get(step) if isinstance(value, dict) else None
        return bool(value == self.stopped)

    def told(self, *, stop: bool) -> Json:
        """The merge patch that tells an object to have no pods, or to have them."""
        value: Any = self.stopped if stop else self.running
        made: Json = reduce(lambda inner, step: {step: inner}, reversed(self.suspend), value)
        return made


JOB: Final = JobResource("batch", "v1", "Job", "jobs", start={"podReplacementPolicy": "Failed"}, proves=True)
"""The batch/v1 Job: a pod is replaced when it has ended, and not while it takes its time to end."""

POD: Final = JobResource("", "v1", "Pod", "pods", proves=True, is_pods=True)
"""A pod that is queued by itself. Nothing stops it once it runs: an eviction deletes it."""
POD_GROUP: Final = JobResource("", "v1", "PodGroup", "pods", proves=True, is_pods=True)
"""Queued pods that are admitted together."""
GROUP_SORT: Final = "podgroup"
OF_PODS: Final = {"pod": POD, GROUP_SORT: POD_GROUP}
"""By what titles of theirs begin with."""


def resource_of(kind: JobKind) -> JobResource:
    """The resource that a JobKind describes."""
    spec, named = kind.spec, kind.spec.resource
    return JobResource(
        named.group,
        named.version,
        named.kind,
        named.plural,
        tuple(spec.suspend.path.split(".")),
        spec.suspend.stopped,
        spec.suspend.running,
        injection=spec.injection,
        restore=spec.restore,
        children=frozenset((each.group, each.kind) for each in spec.children),
    )


def titled(group: str, kind: str, name: str) -> str:
    """An object as messages name it, and as it is known by here: `jobset/train`, and a Job by its name."""
    return name if (group, kind) == ("batch", "Job") else f"{kind.lower()}/{name}"


def is_meant(title: str, kind: str | None, name: str) -> bool:
    """Whether a user means a job object by a name and perhaps its kind, in singular or plural."""
    sort, _, short = title.rpartition("/")
    if kind is None:
        return name in {title, short}
    return title == name if kind == JOB.kind else short == name and kind in {sort, f"{sort}s"}


def sort_of(title: str) -> str:
    """The part of a title that is its kind's; empty for a Job."""
    return title.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class PodSetView:
    """Pods of one template: how many, and what is kept of the template."""

    name: str
    count: int
    template: Json  # of its spec
    marks: Json = field(default_factory=dict)  # its labels and annotations that are Admitter's
    place: tuple[str | int, ...] | None = None  # where the template is in the object; None: in none
    outside: tuple[
        tuple[str, tuple[str | int, ...]], ...
    ] = ()  # fields of it that stand elsewhere, and where
    ended: int = 0  # how many of its pods have ended for good
    replicas: Replicas | None = None  # how their number changes while they run; None: it can't


@dataclass(frozen=True, slots=True)
class OwnerView:
    """The controller that an object names as its owner."""

    group: str
    kind: str
    name: str
    uid: str

    @property
    def title(self) -> str:
        """As its view is called, if it is a job object."""
        return titled(self.group, self.kind, self.name)


def owner_of(metadata: Mapping[str, Any]) -> OwnerView | None:
    """The controller of an object, by its metadata."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0] if "apiVersion" in owner else JOB.group
            return OwnerView(group, owner["kind"], owner["name"], owner["uid"])
    return None

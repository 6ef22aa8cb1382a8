"""All JobKinds that there are, by the resource that each describes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from admitter.api.base import Problem, checked
from admitter.api.job_kind import JobKind
from admitter.kinds import KindError
from admitter.kinds.compiled import CompiledKind, FoundPodSet, InvalidKindError
from admitter.kinds.expressions import Budget
from admitter.kinds.paths import Json

Schemas = Mapping[tuple[str, str], Json]
"""Of definitions, by group and version, and kind."""


class Defect(NamedTuple):
    """Why a JobKind does not work: its name, and the fields that are wrong."""

    name: str
    problems: list[Problem]
    taken: bool = False  # another one describes its resource


class Kinds:
    """JobKinds that work; each is compiled at its first use."""

    def __init__(self, manifests: Iterable[Json], schemas: Schemas) -> None:
        """Take some in; a later one of the same name takes the place of an earlier one."""
        self.defects: list[Defect] = []  # of those that do not work, as far as they were looked at
        self._schemas = schemas
        self._declared: dict[tuple[str, str], JobKind] = {}
        self._compiled: dict[tuple[str, str], CompiledKind | None] = {}
        for kind in self._valid({_name_of(each): each for each in manifests}):
            resource = (kind.spec.resource.api_version, kind.spec.resource.kind)
            first = self._declared.setdefault(resource, kind)
            if first is not kind:
                words = f"{resource[0]} {resource[1]} is described by JobKind {first.metadata.name} already"
                problem = Problem("spec.resource", words)
                self.defects.append(Defect(kind.metadata.name, [problem], taken=True))

    def _valid(self, manifests: Mapping[str, Json]) -> Iterator[JobKind]:
        for name, raw in manifests.items():
            kind, problems = checked(JobKind, raw)
            if kind is None:
                self.defects.append(Defect(name, problems))
            else:
                yield kind

    def find(self, api_version: object, kind: object) -> CompiledKind | None:
        """The JobKind that describes a resource; None if none that works does."""
        if not isinstance(api_version, str) or not isinstance(kind, str):
            return None
        resource = (api_version, kind)
        if resource not in self._compiled:
            declared = self._declared.get(resource)
            self._compiled[resource] = self._compile(declared) if declared is not None else None
        return self._compiled[resource]

    def _compile(self, kind: JobKind) -> CompiledKind | None:
        resource = kind.spec.resource
        try:
            return CompiledKind(kind, self._schemas.get((resource.api_version, resource.kind)))
        except InvalidKindError as error:
            self.defects.append(Defect(kind.metadata.name, error.problems))
            return None

    def embedded(self, raw: Json, budget: Budget) -> list[FoundPodSet] | None:
        """The pod sets of an object in another; None if no JobKind describes it.

        Raises:
            KindError: it can't be counted, or a third object describes its pods.
        """
        kind = self.find(raw.get("apiVersion"), raw.get("kind"))
        if kind is None:
            return None
        if kind.spec.related:  # it may change unseen, and no label of an admission can be put there
            words = (
                "has its pods described by a further object, which can't be counted here: make it by itself"
            )
            raise KindError(f"a {kind.resource.kind} {words}")
        return kind.pod_sets(raw, lambda *_: None, lambda *_: None, budget)

    @property
    def declared(self) -> list[JobKind]:
        """Those that can be read, one for each resource."""
        return list(self._declared.values())

    def find_all(self) -> list[CompiledKind]:
        """All that work: those that do not are among the defects then."""
        return [found for resource in self._declared if (found := self.find(*resource)) is not None]


def _name_of(manifest: Json) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""

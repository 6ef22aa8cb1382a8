"""What comes of translating another system's manifests: ours, and an account of every field of theirs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from admitter.api.base import LabelKey, LabelValue, problems, problems_of
from admitter.api.kinds import KINDS
from admitter.api.shapes import shape_problem
from admitter.documents import title
from admitter.names import API_VERSION

Json = dict[str, Any]
T = TypeVar("T")

OWN: Final = {kind.__name__: kind for kind in KINDS}
APPLY_ORDER: Final = (
    "Namespace",
    "PriorityClass",
    "WorkloadPriorityClass",
    "RuntimeClass",
    "ResourceFlavor",
    "Cohort",
    "ClusterQueue",
    "LocalQueue",
    "ElasticQuota",
    "CompositeElasticQuota",
    "LimitRange",
    "ResourceQuota",
    "",
    "CronJob",
    "Job",
)
"""What has to be there before what; other kinds stand where the empty name is."""


class Fidelity(StrEnum):
    """What became of a field; in this order from good to bad."""

    TRANSLATED = "translated"  # it means the same here
    APPROXIMATED = "approximated"  # it comes close; the words say how it differs
    REFUSED = "refused"  # nothing here means it; the words say why

    @property
    def severity(self) -> int:
        """0, 1 or 2: what a command exits with of which this was the worst."""
        return list(Fidelity).index(self)


@dataclass(frozen=True, slots=True)
class TranslationFinding:
    """What became of one field."""

    object: str  # kind and name, such as `ClusterQueue team-a`
    field: str  # its path, such as `spec.resources[0].name`; empty for the object as a whole
    outcome: Fidelity
    words: str  # into what it was turned, how it differs, or why not


@dataclass(slots=True)
class Translation:
    """Manifests made so far, and what became of every field that was read."""

    manifests: list[Json] = field(default_factory=list)
    _findings: list[TranslationFinding] = field(default_factory=list)
    _withdrawn: set[int] = field(default_factory=set)
    _made: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def findings(self) -> list[TranslationFinding]:
        """What became of every field, in the order in which it was found."""
        return [finding for finding in self._findings if id(finding) not in self._withdrawn]

    @property
    def worst(self) -> Fidelity:
        return max((f.outcome for f in self.findings), key=lambda o: o.severity, default=Fidelity.TRANSLATED)

    def find(self, name: str, path: str, outcome: Fidelity, words: str) -> TranslationFinding:
        finding = TranslationFinding(name, path, outcome, words)
        self._findings.append(finding)
        return finding

    def withdraw(self, findings: Iterable[TranslationFinding]) -> None:
        """Take back what was found: nothing came of it after all."""
        self._withdrawn |= {id(finding) for finding in findings}

    def add(self, manifest: Json, origin: str) -> bool:
        """Take in a whole manifest, or refuse the object with the title `origin`; whether it was taken."""
        made = title(manifest, "")
        if words := _problem(manifest):
            self.find(origin, "", Fidelity.REFUSED, f"would become an invalid {made}: {words}")
        elif _key(manifest) in self._made:
            self.find(origin, "", Fidelity.REFUSED, f"there is a {made} already: the first one counts")
        else:
            self.manifests.append(manifest)
            self._made.add(_key(manifest))
            return True
        return False

    def in_order(self) -> list[Json]:
        """The manifests, those first that others need, otherwise as they came."""
        ranks = {kind: rank for rank, kind in enumerate(APPLY_ORDER)}
        return sorted(self.manifests, key=lambda m: ranks.get(m["kind"], ranks[""]))


class _Marks(BaseModel):
    labels: dict[LabelKey, LabelValue] = {}
    annotations: dict[LabelKey, str] = {}


class _Marked(BaseModel):
    """What an API server takes as the metadata of any object."""

    metadata: _Marks


def _problem(manifest: Json) -> str | None:
    """Why no API server would take a manifest; None if it is good."""
    try:
        _Marked.model_validate(manifest)
    except ValidationError as error:
        return "; ".join(map(str, problems_of(error)))
    if manifest["apiVersion"] == API_VERSION:
        return "; ".join(map(str, problems(OWN[manifest["kind"]], manifest))) or None
    return shape_problem(manifest)


def _key(manifest: Json) -> tuple[str, ...]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""), metadata["name"]


@dataclass(slots=True, eq=False)
class ManifestSource:
    """An object of another system; it knows which of its fields are not accounted for yet.

    An importer takes each field that it understands by `translated`, `approximated` or `refused`;
    `close` refuses the rest by name, so that nothing is dropped in silence. Paths look like
    `spec.resources[0].name`; a key with a dot in it is written `metadata.labels[example.com/key]`. The
    empty path is the object as a whole. The report names it by its title.
    """

    raw: Json
    title: str
    into: Translation
    _taken: set[tuple[str, ...]] = field(default_factory=set)
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    _good: list[TranslationFinding] = field(default_factory=list)
    _refused: bool = False

    def value(self, path: str) -> Any:  # noqa: ANN401  # whatever the manifest has there
        """What is at a path; None if nothing is."""
        found: Any = self.raw
        parts = _parts(path)
        self._asked.update(parts[:length] for length in range(1, len(parts)))
        for part in parts:
            if isinstance(found, dict):
                found = found.get(part)
            elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            else:
                return None
        return found

    def mapping(self, path: str) -> Json:
        """The map at a path, empty if there is none; anything else is refused."""
        return self._typed(path, {}, "a map")

    def sequence(self, path: str) -> list[Any]:
        """The list at a path, empty if there is none; anything else is refused."""
        return self._typed(path, [], "a list")

    def text(self, path: str) -> str:
        """The text at a path, empty if there is none; anything else is refused."""
        return self._typed(path, "", "a text")

    def number(self, path: str, default: int) -> int:
        """The whole number at a path, or a default if there is none; anything else is refused."""
        return self._typed(path, default, "a whole number")

    def items(self, path: str) -> list[str]:
        """The paths of the maps in the list at a path; anything else in it is refused."""
        places = [f"{path}[{index}]" for index in range(len(self.sequence(path)))]
        return [place for place in places if self.mapping(place)]

    def find(self, path: str, outcome: Fidelity, words: str) -> None:
        """Account for a field, and all below it. Of a wholly refused object only refusals are reported."""
        self._taken.add(_parts(path))
        if outcome is Fidelity.REFUSED:
            self.into.find(self.title, path, outcome, words)
        elif not self._refused:
            self._good.append(self.into.find(self.title, path, outcome, words))
        if outcome is Fidelity.REFUSED and not path:
            self._refuse_all()

    def add(self, manifest: Json) -> bool:
        """Take in what becomes of the object; if it is refused, nothing comes of its fields either."""
        added = self.into.add(manifest, self.title)
        if not added:
            self._taken.add(())
            self._refuse_all()
        return added

    def translated(self, path: str, words: str) -> None:
        """A field, and all below it, means the same here; the words say into what."""
        self.find(path, Fidelity.TRANSLATED, words)

    def approximated(self, path: str, words: str) -> None:
        """A field comes close; the words say how it differs."""
        self.find(path, Fidelity.APPROXIMATED, words)

    def refused(self, path: str, words: str) -> None:
        """Nothing here means a field; the words say why."""
        self.find(path, Fidelity.REFUSED, words)

    def account(self, outcome: Fidelity, words: Mapping[str, str], at: str = "") -> None:
        """Account for those of some fields that are there; `words` are by path below `at`."""
        for part, each in words.items():
            if self.value(path := f"{at}.{part}".lstrip(".")) is not None:
                self.find(path, outcome, each)

    def refuse_unless_empty(self, words: Mapping[str, str], at: str = "") -> None:
        """Refuse those of some fields that say something: not `false`, 0, or an empty map, list or text."""
        for part, each in words.items():
            if self.value(path := f"{at}.{part}".lstrip(".")):
                self.refused(path, each)

    def refuse_or_ignore(self, words: Mapping[str, str], at: str = "") -> None:
        """Refuse those of some fields that say something, and ignore those that are there but do not."""
        self.refuse_unless_empty(words, at)
        for part in words:
            self.ignored(f"{at}.{part}".lstrip("."))

    def ignored(self, path: str) -> None:
        """A field says nothing about quota or queues: what an API server wrote, such as `metadata.uid`."""
        self._taken.add(_parts(path))

    def known(self, path: str) -> bool:
        """Whether a field, or what it is part of, has been accounted for."""
        parts = _parts(path)
        return any(parts[:length] in self._taken for length in range(len(parts) + 1))

    def close(self) -> None:
        """Refuse every field that is not accounted for.

        An empty map says nothing if its reader knows what could be in it.
        """
        for path in _leaves(self.raw):
            if not self.known(path) and not (self.value(path) == {} and _parts(path) in self._asked):
                self.refused(path, "not known to the importer")

    def _refuse_all(self) -> None:
        self.into.withdraw(self._good)
        self._good, self._refused = [], True

    def _typed(self, path: str, default: T, words: str) -> T:
        found = self.value(path)
        if type(found) is type(default):
            if isinstance(found, dict | list | str) and not found:
                self.ignored(path)  # its reader knows it, and it says nothing
            return found
        if found is not None and not self.known(path):
            self.refused(path, f"must be {words}")
        return default


def exact(quantity: object) -> Any:  # noqa: ANN401  # of any type, as it was given
    """A quantity as Admitter takes it: a fraction is a text, though API servers take it as a number too."""
    return str(quantity) if isinstance(quantity, float) else quantity


def own(kind: str, metadata: Json, spec: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def said(**fields: Any) -> Json:  # noqa: ANN401  # whatever fields have
    """Those fields that say something: that are not empty."""
    return {name: value for name, value in fields.items() if value}


def below(path: str, key: str) -> str:
    if "." in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _parts(path: str) -> tuple[str, ...]:
    return tuple(key or place for key, place in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path))


def _leaves(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values that are neither maps nor lists, and of empty ones."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, below(path, str(key)))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}[{index}]")
    else:
        yield path

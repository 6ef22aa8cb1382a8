"""What comes of translating another system's manifests: ours, and an account of every field of theirs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Outcome(StrEnum):
    """What became of a field; in this order from good to bad."""

    TRANSLATED = "translated"
    """It means the same here."""
    APPROXIMATED = "approximated"
    """It comes close; the words say how it differs."""
    REFUSED = "refused"
    """Nothing here means it; the words say why."""

    @property
    def severity(self) -> int:
        """0, 1 or 2: what a command exits with of which this was the worst."""
        return list(Outcome).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one field.

    Attributes:
        object: kind and name of the object, such as `ClusterQueue team-a`.
        field: its path, such as `spec.resources[0].name`; empty for the object as a whole.
        outcome: what became of it.
        words: into what, how it differs, or why not.
    """

    object: str
    field: str
    outcome: Outcome
    words: str


@dataclass(slots=True)
class Translation:
    """Manifests made so far, and what became of every field that was read."""

    manifests: list[Json] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def worst(self) -> Outcome:
        """The worst that happened to a field."""
        return max((f.outcome for f in self.findings), key=lambda o: o.severity, default=Outcome.TRANSLATED)


class Source:
    """An object of another system; it knows which of its fields nobody has accounted for yet.

    An importer takes each field that it understands by `translated`, `approximated` or `refused`;
    `close` refuses the rest by name, so that nothing is dropped in silence.
    """

    def __init__(self, raw: Json, title: str, into: Translation) -> None:
        """Prepare.

        Args:
            raw: the object.
            title: how the report names it.
            into: what is being made.
        """
        self.raw = raw
        self.title = title
        self._into = into
        self._taken: set[str] = set()

    def translated(self, path: str, words: str) -> None:
        """A field, and all below it, means the same here; the words say into what."""
        self._find(path, Outcome.TRANSLATED, words)

    def approximated(self, path: str, words: str) -> None:
        """A field comes close; the words say how it differs."""
        self._find(path, Outcome.APPROXIMATED, words)

    def refused(self, path: str, words: str) -> None:
        """Nothing here means a field; the words say why."""
        self._find(path, Outcome.REFUSED, words)

    def ignored(self, path: str) -> None:
        """A field says nothing about quota or queues: what an API server wrote, such as `metadata.uid`."""
        self._taken.add(path)

    def close(self) -> None:
        """Refuse every field that nobody has accounted for."""
        for path in _leaves(self.raw):
            if not any(path == t or path.startswith((f"{t}.", f"{t}[")) for t in self._taken):
                self.refused(path, "not known to the importer")

    def _find(self, path: str, outcome: Outcome, words: str) -> None:
        self._taken.add(path)
        self._into.findings.append(Finding(self.title, path, outcome, words))


def _leaves(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values that are neither maps nor lists, and of empty ones."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}[{index}]")
    else:
        yield path

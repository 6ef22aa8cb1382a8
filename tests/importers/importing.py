"""Imports a text of manifests, and says what became of it."""

from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import yaml

from admitter.api.base import problems
from admitter.api.shapes import shape_problem
from admitter.documents import parsed
from admitter.importers.reading import Document, document
from admitter.importers.systems import SYSTEMS, SystemName
from admitter.importers.translation import OWN, Fidelity, Translation, below

Json = dict[str, Any]


def documents(text: str) -> list[Document]:
    """The objects in a text that may be indented."""
    return [document(place, raw) for place, raw in parsed("text", dedent(text))]


def imported(system: str, *texts: str) -> Translation:
    """What becomes of some texts; all of it is valid, and every field is accounted for."""
    return translation(system, [each for text in texts for each in documents(text)])


def translation(system: str, given: list[Document]) -> Translation:
    """What becomes of some objects; all of it is valid, and every field is accounted for."""
    into = Translation()
    SYSTEMS[SystemName(system)].translate(given, into)
    for manifest in into.manifests:
        assert not wrong(manifest), manifest
    return into


def wrong(manifest: Json) -> Any:
    """What is wrong with a manifest that was made, as the API server or the simulator would say."""
    own = OWN.get(manifest["kind"]) if str(manifest["apiVersion"]).startswith("admitter.dev/") else None
    return problems(own, manifest) if own is not None else shape_problem(manifest)


def outcomes(into: Translation, name: str) -> dict[str, str]:
    """What became of each field of an object."""
    return {finding.field: str(finding.outcome) for finding in into.findings if finding.object == name}


def words(into: Translation, name: str, field: str = "") -> str:
    """What the report says of a field."""
    return "; ".join(f.words for f in into.findings if (f.object, f.field) == (name, field))


def made(into: Translation, kind: str, name: str | None = None) -> Json:
    """The only manifest of a kind, or the one of a name."""
    (found,) = [
        m for m in into.manifests if m["kind"] == kind and (name is None or m["metadata"]["name"] == name)
    ]
    return found


def refusals(into: Translation) -> dict[tuple[str, str], str]:
    """What was refused, and why."""
    return {(f.object, f.field): f.words for f in into.findings if f.outcome is Fidelity.REFUSED}


def dumped(into: Translation) -> str:
    """The manifests as the command writes them."""
    return yaml.safe_dump_all(into.in_order(), sort_keys=False)


def leaves(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values in a manifest."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, below(path, str(key)))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from leaves(each, f"{path}[{index}]")
    elif value not in ({}, [], ""):
        yield path

"""Manifests as users keep them: files, folders and standard input, of YAML or JSON."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml


class ManifestError(Exception):
    """A file that can't be read as manifests."""


class _Loader(yaml.SafeLoader):
    """As Kubernetes reads YAML: a timestamp is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Each document, and where it was found; `-` is standard input, lists are taken apart.

    Raises:
        ManifestError: with the file and the reason.
    """
    for given in paths:
        if given == "-":
            yield from parsed("standard input", sys.stdin.read())
            continue
        path = Path(given)
        files = sorted(p for p in path.rglob("*") if p.suffix in {".yaml", ".yml", ".json"})
        if path.is_dir() and not files:
            raise ManifestError(f"{path}: has no manifests in it (*.yaml, *.yml, *.json)")
        for file in files if path.is_dir() else [path]:
            try:
                text = file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise ManifestError(f"{file}: can't be read: {reason}") from error
            yield from parsed(str(file), text)


def parsed(place: str, text: str) -> Iterator[tuple[str, Any]]:
    """The documents in a text, which is called `place` in messages.

    Raises:
        ManifestError: it is no YAML.
    """
    try:
        found = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ManifestError(f"{place}: is no YAML: {error}") from error
    for number, document in enumerate(found, start=1):
        if document is not None:
            for each in flat(without_nulls(document)):
                yield f"{place}: document {number}", each


def flat(document: object) -> Iterator[object]:
    """The objects in a list, whose items may leave out what it says of them; or the object itself."""
    kind = str(document.get("kind", "")) if isinstance(document, dict) else ""
    items = document.get("items") if isinstance(document, dict) and kind.endswith("List") else None
    if not isinstance(document, dict) or not isinstance(items, list):
        yield document
        return
    common = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        yield from flat({**common, **item} if isinstance(item, dict) and kind != "List" else item)


def without_nulls(value: Any) -> Any:  # noqa: ANN401  # whatever YAML gives
    """A manifest as an API server takes it: a field that is null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def title(manifest: object, place: str) -> str:
    """An object as messages name it: kind, namespace and name, or where it was found if it has none."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("metadata"), dict):
        return place
    metadata = manifest["metadata"]
    name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    return f"{manifest.get('kind')} {name}"

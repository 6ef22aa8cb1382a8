"""Manifests as users keep them: files, folders and standard input, of YAML or JSON."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

_DEEPEST: Final = 100
"""Levels that a document may have; objects of Kubernetes have about thirty."""

_MOST_BY_ALIAS: Final = 1_000_000
"""Values that aliases of a document may stand for together: a few lines could stand for more than fits."""


class ManifestError(Exception):
    """A file that can't be read as manifests."""


class _Loader(yaml.SafeLoader):
    """As Kubernetes reads YAML: a timestamp is a text, and there is nothing that JSON has not."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
    if str(tag).rpartition(":")[2] not in {"binary", "omap", "pairs", "set", "timestamp"}
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
        ManifestError: it is no YAML, or means more than can be read.
    """
    try:
        found = list(_loaded(text))
    except (yaml.YAMLError, ValueError, KeyError) as error:  # a value may be none of what its tag says
        raise ManifestError(f"{place}: is no YAML: {error}") from error
    except _TooMuchError as error:
        raise ManifestError(f"{place}: {error}") from error
    for number, document in enumerate(found, start=1):
        if document is not None:
            for each in flat(without_nulls(document)):
                yield f"{place}: document {number}", each


class _TooMuchError(Exception):
    """A document that can't be written out; the words say why."""


def _loaded(text: str) -> Iterator[object]:
    """The documents in a text, of each of which it is known before that it has an end."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "it was checked"
            known: dict[yaml.Node, tuple[int, int] | None] = {}
            values, levels = _extent(node, known)
            if levels > _DEEPEST:
                raise _too_deep()
            if values - len(known) > _MOST_BY_ALIAS:
                raise _TooMuchError(f"its aliases stand for more than {_MOST_BY_ALIAS} values")
            yield loader.construct_document(node)
    except RecursionError as error:
        raise _too_deep() from error
    finally:
        loader.dispose()


def _too_deep() -> _TooMuchError:
    return _TooMuchError(f"is nested more than {_DEEPEST} levels deep")


def _extent(node: yaml.Node, known: dict[yaml.Node, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values a node is with its aliases written out, and how many levels.

    Args:
        node: where to begin.
        known: what was found before; None of nodes that this one is part of.

    Raises:
        _TooMuchError: an alias is part of what it stands for.
    """
    if node in known:
        extent = known[node]
        if extent is None:
            raise _TooMuchError(f"line {node.start_mark.line + 1}: has an alias of itself in it")
        return extent
    known[node] = None
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in parts for part in pair]
    extents = [_extent(part, known) for part in parts]
    known[node] = extent = (
        1 + sum(values for values, _ in extents),
        1 + max((levels for _, levels in extents), default=0),
    )
    return extent


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

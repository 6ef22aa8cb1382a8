"""Manifests as users keep them: files, folders and standard input, of YAML or JSON."""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson
import yaml

_DEEPEST: Final = 100
"""Levels that a document may have; objects of Kubernetes have about thirty."""

_MOST_BY_ALIAS: Final = 1_000_000
"""Values that aliases of a document may stand for together: a few lines could stand for more than fits."""


_TEXT, _LIST, _MAP = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_MERGED: Final = {f"tag:yaml.org,2002:{kind}" for kind in ("merge", "value")}


def bundled(name: str) -> Path:
    """A folder that comes with Admitter, `crds` or `manifests`: in an installed package, or in a checkout."""
    package = Path(__file__).parent
    installed = package / "bundle" / name
    return installed if installed.is_dir() else package.parent / name


class ManifestError(Exception):
    """A file that can't be read as manifests."""


class _Rules:
    """As Kubernetes reads YAML: a timestamp is a text, and there is nothing that JSON has not.

    Each parser tells of a node before it reads what is in it. So what is too deep is known before anything is
    as deep in its calls: libyaml would end the process.
    """

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar = {
        tag: constructor
        for tag, constructor in yaml.SafeLoader.yaml_constructors.items()
        if str(tag).rpartition(":")[2] not in {"binary", "omap", "pairs", "set", "timestamp"}
    }
    level = 0

    def descend_resolver(self, _parent: object, _index: object) -> None:
        """A node begins."""
        self.level += 1
        if self.level > _DEEPEST:
            raise _too_deep()

    def ascend_resolver(self) -> None:
        """A node has ended."""
        self.level -= 1


if yaml.__with_libyaml__:
    from yaml import CSafeLoader as _Parser
else:  # a tenth as fast
    from yaml import SafeLoader as _Parser  # type: ignore[assignment]


class _Loader(_Rules, _Parser):
    """Reads the documents in a text."""


def documents(paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Each document, and where it was found; `-` is standard input, lists are taken apart.

    In place of a document that can't be read stands a ManifestError with the reason: it harms no other.

    Raises:
        ManifestError: a file can't be read, or a folder has none; with its name.
    """
    for given in paths:
        if given == "-":
            yield from _apart("standard input", sys.stdin.read)
            continue
        path = Path(given)
        files = sorted(p for p in path.rglob("*") if p.suffix in {".yaml", ".yml", ".json"})
        if path.is_dir() and not files:
            raise ManifestError(f"{path}: has no manifests in it (*.yaml, *.yml, *.json)")
        for file in files if path.is_dir() else [path]:
            yield from _apart(str(file), file.read_text)


def _apart(place: str, read: Callable[[], str]) -> Iterator[tuple[str, Any]]:
    """The documents in a file; if one can't be read, each is read by itself.

    A line that begins with three hyphens begins a document wherever it stands.
    """
    try:
        text = read()
    except OSError as error:
        raise ManifestError(f"{place}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        yield place, ManifestError(f"can't be read: {error}")
        return
    try:
        yield from parsed(place, text)
    except ManifestError:
        lines = number = 0
        for part in _BEGINS.split(text):
            found = _read(part, lines)
            lines += part.count("\n")
            for document in found:
                number += 1
                for each in flat(document) if document is not None else ():
                    yield f"{place}: document {number}", each


def _read(part: str, lines: int) -> list[object]:
    """The documents in a part of a text, or one ManifestError; `lines` are before it."""
    for text in (part, "\n" * lines + part):  # only with those lines an error has the line of the file
        try:
            return list(_loaded(text))
        except (*_NO_YAML, _TooMuchError) as error:
            found = ManifestError(_in_a_line(error, text))
    return [found]


def parsed(place: str, text: str) -> Iterator[tuple[str, Any]]:
    """The documents in a text, which is called `place` in messages.

    Raises:
        ManifestError: it is no YAML, or means more than can be read.
    """
    try:
        found = list(_loaded(text))
    except _NO_YAML as error:
        raise ManifestError(f"{place}: is no YAML: {_located(error, place, text)}") from error
    except _TooMuchError as error:
        raise ManifestError(f"{place}: {error}") from error
    for number, document in enumerate(found, start=1):
        if document is not None:
            for each in flat(document):
                yield f"{place}: document {number}", each


_BEGINS: Final = re.compile(r"^(?=---(?:\s|\Z))", re.MULTILINE)
_NO_YAML: Final = (yaml.YAMLError, ValueError, KeyError)
"""A value may be none of what its tag says."""
_IS_NO_YAML: Final = "is no YAML: "


class _TooMuchError(Exception):
    """A document that can't be written out; the words say why."""


def _loaded(text: str) -> Iterator[object]:
    """The documents in a text, without fields that are null; what may be JSON is tried as such first."""
    if text.lstrip()[:1] in {"{", "["}:
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            if _levels(document) > _DEEPEST:
                raise _too_deep()
            yield without_nulls(document)
            return
    yield from _of_yaml(text)


def _of_yaml(text: str) -> Iterator[object]:
    """The documents in a text of YAML, of each of which it is known before that it has an end."""
    loader, has_aliases = _Loader(text), "*" in text and "&" in text
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "it was checked"
            if has_aliases:
                known: dict[yaml.Node, tuple[int, int] | None] = {}
                values, levels = _extent(node, known)
                if levels > _DEEPEST:
                    raise _too_deep()
                if values - len(known) > _MOST_BY_ALIAS:
                    raise _TooMuchError(f"its aliases stand for more than {_MOST_BY_ALIAS} values")
            yield _document(loader, node, "")
    finally:
        loader.dispose()


def _document(loader: _Loader, node: yaml.Node, place: str) -> Any:  # noqa: ANN401  # whatever YAML gives
    """A document; in a list, a ManifestError stands in place of an object that can't be read."""
    try:
        return _value(loader, node)
    except _NO_YAML as error:
        items = _field(node, "items")
        parts = {name: _field(node, name) for name in ("apiVersion", "kind", "metadata")}
        known = {name: _value_if_any(loader, part) for name, part in parts.items() if part is not None}
        if str(known.get("kind")).endswith("List") and isinstance(items, yaml.SequenceNode):
            places = (f"{place}.items[{n}]".removeprefix(".") for n in range(len(items.value)))
            return {**known, "items": list(map(_document, repeat(loader), items.value, places))}
        if not place:
            raise
        name, path = title(known, ""), _unreadable(loader, node).removeprefix(".")
        words = (
            f"{place} ({name})" if name else place,
            path,
            _in_a_line(error, "").removeprefix(_IS_NO_YAML),
        )
        return ManifestError(": ".join(filter(None, words)))


def _field(node: yaml.Node, name: str) -> yaml.Node | None:
    """What a map has under a name."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value == name), None)


def _value_if_any(loader: _Loader, node: yaml.Node) -> Any:  # noqa: ANN401  # whatever YAML gives
    try:
        return _value(loader, node)
    except _NO_YAML:
        return None


def _unreadable(loader: _Loader, node: yaml.Node) -> str:
    """The path to the first value that can't be read."""
    parts: list[tuple[str, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        parts = [(f".{key.value}", value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
    elif isinstance(node, yaml.SequenceNode):
        parts = [(f"[{number}]", each) for number, each in enumerate(node.value)]
    for name, part in parts:
        try:
            _value(loader, part)
        except _NO_YAML:
            return name + _unreadable(loader, part)
    return ""


def _value(loader: _Loader, node: yaml.Node) -> Any:  # noqa: ANN401  # whatever YAML gives
    """What a node stands for. Nearly all are texts, lists and maps: the loader is asked for the rest."""
    tag = node.tag
    if tag == _TEXT and isinstance(node, yaml.ScalarNode):
        return node.value
    if tag == _MAP and isinstance(node, yaml.MappingNode):
        return _map(loader, node)
    if tag == _LIST and isinstance(node, yaml.SequenceNode):
        return [_value(loader, each) for each in node.value]
    try:
        return _of_json(loader.construct_document(node))
    except (ValueError, KeyError, OverflowError) as error:
        loader.recursive_objects.clear()  # so that it is tried again, to find the object it is in
        kind = tag.rpartition(":")[2]
        raise ValueError(f"line {node.start_mark.line + 1}: is no {kind}: {error}") from error


def _of_json(value: Any) -> Any:  # noqa: ANN401  # whatever YAML gives
    """A value as JSON has it, to which Kubernetes turns YAML first.

    Raises:
        ValueError: JSON has no such number.
        OverflowError: likewise.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError("JSON has no such number")
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    return value


def _map(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    """A map without fields that are null; keys that are numbers or truth values are texts, as in JSON."""
    if any(key.tag in _MERGED for key, _ in node.value):
        loader.flatten_mapping(node)
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key, value = _value(loader, key_node), _value(loader, value_node)
        if isinstance(key, bool | int | float):
            key = orjson.dumps(key).decode()
        elif not isinstance(key, str):
            raise yaml.constructor.ConstructorError(
                "while constructing a mapping",
                node.start_mark,
                "found a key that is no text",
                key_node.start_mark,
            )
        if value is not None:
            made[key] = value
        else:
            made.pop(key, None)
    return made


def _located(error: Exception, place: str, text: str) -> str:
    """What is wrong with a text and where, with what stands there: libyaml knows only the line."""
    if isinstance(error, yaml.reader.ReaderError):
        in_characters = issubclass(_Loader, yaml.reader.Reader)
        before = text[: error.position] if in_characters else text.encode()[: error.position]
        number = len(before.splitlines())
        return f"line {number}: {str(error).partition(chr(10))[0]}"
    if isinstance(error, yaml.MarkedYAMLError):
        for part in ("context_mark", "problem_mark"):
            mark = getattr(error, part)
            if mark is not None:
                found = yaml.Mark(place, mark.index, mark.line, mark.column, text, mark.index)
                setattr(error, part, found)
    return str(error)


def _in_a_line(error: Exception, text: str) -> str:
    """What is wrong with a document and where."""
    if isinstance(error, _TooMuchError):
        return str(error)
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None:
        return f"{_IS_NO_YAML}{_located(error, '', text)}"
    assert isinstance(error, yaml.MarkedYAMLError)
    words = ": ".join(part for part in (error.context, error.problem) if part)
    return f"{_IS_NO_YAML}line {mark.line + 1}, column {mark.column + 1}: {words}"


def _levels(document: object) -> int:
    """How many levels a document of JSON has, as far as that matters."""
    found, row = 0, [document]
    while row and found <= _DEEPEST:
        found += 1
        parts = (
            each.values() if isinstance(each, dict) else each for each in row if isinstance(each, dict | list)
        )
        row = [each for part in parts for each in part]
    return found


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
    """The objects in a list, which may leave out kind and version; else the object itself."""
    kind = str(document.get("kind", "")) if isinstance(document, dict) else ""
    items = document.get("items") if isinstance(document, dict) and kind.endswith("List") else None
    if not isinstance(document, dict) or not isinstance(items, list):
        yield document
        return
    common = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        yield from flat({**common, **item} if isinstance(item, dict) and kind != "List" else item)


def generated_names(manifests: Iterable[object], namespace: str = "default") -> dict[int, str]:
    """Names of the objects that leave theirs to an API server, by their place.

    A name is `generateName` and the first number with which no other object of its namespace is called so;
    that of an object that names none is `namespace`.
    """
    found: dict[int, str] = {}
    given = [each.get("metadata") if isinstance(each, dict) else None for each in manifests]
    known = [each if isinstance(each, dict) else {} for each in given]
    spaces = [str(each.get("namespace") or namespace) for each in known]
    taken = {
        (space, str(each["name"])) for space, each in zip(spaces, known, strict=True) if each.get("name")
    }
    numbers: defaultdict[tuple[str, str], Iterator[int]] = defaultdict(lambda: count(1))
    for place, (space, each) in enumerate(zip(spaces, known, strict=True)):
        prefix = each.get("generateName")
        if prefix and isinstance(prefix, str) and not each.get("name"):
            names = (f"{prefix}{n}" for n in numbers[space, prefix])
            found[place] = next(name for name in names if (space, name) not in taken)
            taken.add((space, found[place]))
    return found


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
    if not metadata.get("name"):
        return place
    name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    return f"{manifest.get('kind')} {name}"

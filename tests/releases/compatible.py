"""Whether a definition takes all that an earlier one took: nothing is gone, and nothing is stricter."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

Schema = dict[str, Any]

RELEASES: Final = Path(__file__).parent
CURRENT: Final = Path(__file__).parents[2] / "crds"

_SAME: Final = (
    *("type", "format", "pattern", "default"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-int-or-string"),
)
_UPPER: Final = ("maxLength", "maximum", "maxItems", "maxProperties")
_LOWER: Final = ("minLength", "minimum", "minItems", "minProperties")


def releases() -> list[Path]:
    """The folders of all releases, the oldest first."""
    folders = [path for path in RELEASES.iterdir() if (path / "objects.yaml").is_file()]
    return sorted(folders, key=lambda path: [int(part) for part in path.name.split(".")])


def definitions(folder: Path) -> dict[str, Schema]:
    """The definitions in a folder, by name."""
    read = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(folder.glob("*.yaml"))]
    return {definition["metadata"]["name"]: definition for definition in read}


def objects(release: Path) -> list[Schema]:
    """What a release has stored; namespaces first."""
    return list(yaml.load_all((release / "objects.yaml").read_text(), yaml.CSafeLoader))


def schemas(definition: Schema) -> dict[str, Schema]:
    """The schema of each version that is served."""
    served = [version for version in definition["spec"]["versions"] if version["served"]]
    return {version["name"]: version["schema"]["openAPIV3Schema"] for version in served}


def breaks(old: Schema, new: Schema) -> Iterator[str]:
    """By what a definition breaks with an earlier one."""
    for part in ("group", "scope"):
        if old["spec"][part] != new["spec"][part]:
            yield f"{part} is {new['spec'][part]} instead of {old['spec'][part]}"
    for part, name in old["spec"]["names"].items():
        if new["spec"]["names"].get(part) != name:
            yield f"names.{part} is {new['spec']['names'].get(part)} instead of {name}"
    versions = schemas(new)
    for version, schema in schemas(old).items():
        if version not in versions:
            yield f"version {version} is not served"
        else:
            yield from _tightened(schema, versions[version], version)


def _tightened(old: Schema, new: Schema, path: str) -> Iterator[str]:
    yield from _rules(old, new, path)
    yield from _limits(old, new, path)
    for name, child in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{path}.{name}: is gone"
        else:
            yield from _tightened(child, new["properties"][name], f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in old and key not in new:
            yield f"{path}[]: is gone"
        elif key in old:
            yield from _tightened(old[key], new[key], f"{path}[]")


def _rules(old: Schema, new: Schema, path: str) -> Iterator[str]:
    for key in _SAME:
        if old.get(key) != new.get(key):
            yield f"{path}: {key} is {new.get(key)} instead of {old.get(key)}"
    for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield f"{path}.{name}: is required now"
    rules = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    for rule in new.get("x-kubernetes-validations", ()):
        if rule["rule"] not in rules:
            yield f"{path}: has the new rule {rule['rule']}"


def _limits(old: Schema, new: Schema, path: str) -> Iterator[str]:
    allowed = set(new.get("enum", ()))
    for value in old.get("enum", ()) if allowed else ():
        if value not in allowed:
            yield f"{path}: {value} is not allowed any more"
    if allowed and "enum" not in old:
        yield f"{path}: has an enum now"
    for key, sign in (*((key, 1) for key in _UPPER), *((key, -1) for key in _LOWER)):
        if key in new and (key not in old or sign * new[key] < sign * old[key]):
            yield f"{path}: {key} is {new[key]} instead of {old.get(key)}"


def missing(schema: Schema, values: list[Any], path: str = "") -> Iterator[str]:
    """The fields that none of some values has."""
    present = [value for value in values if value is not None]
    for name, child in schema.get("properties", {}).items():
        found = [value[name] for value in present if name in value]
        if not found:
            yield f"{path}.{name}"
        yield from missing(child, found, f"{path}.{name}") if found else ()
    if "items" in schema:
        yield from missing(schema["items"], [each for value in present for each in value], f"{path}[]")
    if "additionalProperties" in schema:
        inner = [each for value in present for each in value.values()]
        yield from missing(schema["additionalProperties"], inner, f"{path}[]")

"""The generated definitions are those of the models, and say what they must."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter.api import crds
from admitter.api.base import Resource
from admitter.api.kinds import KINDS
from admitter.made_files import differences, write_or_check

Schema = dict[str, Any]


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field below a schema, with its path."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield f"{path}[]", schema[key]
            yield from fields(schema[key], f"{path}[]")


def schema_of(kind: type[Resource]) -> Schema:
    (version,) = crds.definition(kind)["spec"]["versions"]
    root: Schema = version["schema"]["openAPIV3Schema"]
    return root


@pytest.fixture(scope="module")
def contents() -> dict[Path, str]:
    return crds.contents()


def test_the_files_are_those_of_the_models(contents: dict[Path, str]) -> None:
    assert list(differences(contents, crds.FOLDER.glob("*.yaml"))) == []


def test_an_edited_a_missing_and_a_stray_file_are_found(contents: dict[Path, str], tmp_path: Path) -> None:
    wanted = {tmp_path / path.name: text for path, text in contents.items()}
    assert write_or_check([], wanted) == 0
    assert list(differences(wanted, tmp_path.glob("*.yaml"))) == []
    (tmp_path / "clusterqueues.yaml").write_text("# edited\n")
    (tmp_path / "workloads.yaml").unlink()
    (tmp_path / "stray.yaml").write_text("kind: Stray\n")
    found = "\n".join(differences(wanted, tmp_path.glob("*.yaml")))
    assert "-# edited" in found
    assert "+  name: workloads.admitter.dev" in found
    assert "-kind: Stray" in found


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described(kind: type[Resource]) -> None:
    root = schema_of(kind)
    missing = [
        path
        for path, field in fields(root)
        if not path.endswith("]") and path != ".metadata" and not field.get("description")
    ]
    assert missing == []
    assert root["description"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_and_map_is_bounded(kind: type[Resource]) -> None:
    for path, field in fields(schema_of(kind)):
        if field.get("type") == "array":
            assert field.get("maxItems"), path
        if "additionalProperties" in field:
            assert field.get("maxProperties"), path


def test_definitions_are_the_same_each_time_and_valid_yaml(contents: dict[Path, str]) -> None:
    assert crds.contents() == contents
    for text in contents.values():
        assert yaml.load(text, yaml.CSafeLoader)["kind"] == "CustomResourceDefinition"

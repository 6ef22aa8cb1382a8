"""The file of `admitter run --config`: its model, how it is read, and its JSON Schema.

`python -m admitter.cli.configuration` writes docs/configuration.schema.json, `--check` compares.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError

from admitter.api.base import Model, Place, Problem, ResourceName, checked_by, own_name, path_of, problems_of
from admitter.api.crds import Described
from admitter.convert.gpus import WHOLE_GPU, GpuSettings
from admitter.convert.settings import Settings
from admitter.convert.workloads import RequeueBy
from admitter.documents import ManifestError, parsed
from admitter.engine.model import GPU_MEMORY_GB
from admitter.made_files import ROOT, write_or_check
from admitter.names import GPU_MEMORY

API_VERSION: Final = "config.admitter.dev/v1alpha1"
KIND: Final = "Configuration"
SCHEMA: Final = ROOT / "docs" / "configuration.schema.json"
HIGHEST_PORT: Final = 65535
MOST_SHARDS: Final = 64

Json = dict[str, Any]


def split_address(text: str) -> tuple[str, int]:
    """Address and port of ADDRESS:PORT.

    Raises:
        ValueError: it is none.
    """
    address, _, port = text.rpartition(":")
    if not address or not port.isascii() or not port.isdigit() or int(port) > HIGHEST_PORT:
        raise ValueError(f"{text!r} is not ADDRESS:PORT")
    return address, int(port)


class GpuResource(Model):
    """A resource that is GPUs."""

    name: ResourceName
    """The resource, such as amd.com/gpu."""
    memory_gb: int | None = Field(default=None, alias="memoryGB", ge=1, strict=True)
    """Memory of one unit of it, in GB, if it is a part of a GPU; absent: it is a whole GPU."""


class JournalSettings(Model):
    """Where decisions are written down, so that they can be replayed."""

    folder: str = Field(min_length=1)
    """The folder; made if it is not there. Option: --journal."""
    megabytes: int = Field(default=64, ge=1, le=4096, strict=True)
    """How long one file becomes, in MB, about."""
    files: int = Field(default=8, ge=1, le=10_000, strict=True)
    """How many files are kept, the newest included."""


def _new_to_us(resources: list[GpuResource]) -> list[GpuResource]:
    seen: set[str] = set()
    for resource in resources:
        if own_name(resource.name) in {WHOLE_GPU, GPU_MEMORY}:
            raise ValueError(f"{resource.name} is known without being listed")
        if resource.name in seen:
            raise ValueError(f"{resource.name} is listed twice")
        seen.add(resource.name)
    return resources


class Configuration(Model):
    """How `admitter run` runs. What is absent has its default; an option on the command line goes before."""

    api_version: Literal["config.admitter.dev/v1alpha1"] = API_VERSION
    """The version of this file's format."""
    kind: Literal["Configuration"] = KIND
    """The kind of this file."""
    bind: Annotated[str, checked_by(split_address)] = "127.0.0.1:8080"
    """Where /healthz, /readyz and /metrics are answered: ADDRESS:PORT. At any address but one of this machine
    alone, /metrics needs a token that may get it. Option: --bind."""
    requeue_by: RequeueBy = RequeueBy.CREATION
    """Where a preempted Workload waits. creation: in its old place. eviction: behind those that came before
    it was preempted. Option: --requeue-by."""
    gpu_memory_gb: int = Field(default=GPU_MEMORY_GB, alias="gpuMemoryGB", ge=1, strict=True)
    """Memory of a whole GPU, in GB, where its ResourceFlavor has no gpuMemoryGB. Option: --gpu-memory-gb."""
    gpu_resources: Annotated[list[GpuResource], AfterValidator(_new_to_us)] = Field(default=[], max_length=64)
    """Further resources that are GPUs; NVIDIA's, with MIG devices and memory slices, are known. Option:
    --gpu-resource, which replaces all of them."""
    shards: int = Field(default=1, ge=1, le=MOST_SHARDS, strict=True)
    """Over how many parts the cohort trees are spread, so that replicas admit side by side; the same for all
    of them. Option: --shards."""
    journal: JournalSettings | None = None
    """Where decisions are written down; absent: nowhere."""

    @property
    def decides_by(self) -> Settings:
        """What decisions go by."""
        resources = {each.name: each.memory_gb for each in self.gpu_resources}
        return Settings(self.requeue_by, GpuSettings(self.gpu_memory_gb, resources))


def read(path: Path) -> Configuration:
    """The configuration in a file.

    Raises:
        ManifestError: there is no such file, or something in it is wrong; each fault is named by its path.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError(f"{path}: can't be read: {reason}") from error
    documents = [document for _, document in parsed(str(path), text)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise ManifestError(f"{path}: must be one document with keys and values, kind {KIND}")
    twice = [f"{key}: is there twice" for key in _twice(yaml.compose(text, Loader=yaml.SafeLoader))]
    missing = [f"{key}: is missing" for key in ("apiVersion", "kind") if key not in documents[0]]
    try:
        made = Configuration.model_validate(documents[0])
    except ValidationError as error:
        wrong = [str(problem) for problem in _problems(error)]
        raise ManifestError(f"{path}: {'; '.join(missing + twice + wrong)}") from error
    if missing or twice:
        raise ManifestError(f"{path}: {'; '.join(missing + twice)}")
    return made


def _problems(error: ValidationError) -> Iterator[Problem]:
    """What is wrong; of a key that is not known, which ones are."""
    unknown = {
        path_of(each["loc"]): ", ".join(_keys_at(each["loc"][:-1]))
        for each in error.errors()
        if each["type"] == "extra_forbidden"
    }
    for problem in problems_of(error):
        keys = unknown.get(problem.field)
        yield Problem(problem.field, f"is not known here; known are {keys}") if keys else problem


def _keys_at(place: Place) -> list[str]:
    """The keys that may stand at a place of the file."""
    root = schema()
    node = root
    for part in place:
        node = node["items"] if isinstance(part, int) else node["properties"][part]
        node = next((each for each in node.get("anyOf", ()) if "$ref" in each), node)
        node = root["$defs"][node["$ref"].rsplit("/", 1)[-1]] if "$ref" in node else node
    return list(node["properties"])


def _twice(node: yaml.Node | None, place: str = "") -> Iterator[str]:
    """The paths of keys that one mapping has twice: readers differ in which one counts."""
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _twice(item, f"{place}[{number}]")
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            path = f"{place}.{key.value}" if place else str(key.value)
            if path in seen:
                yield path
            seen.add(path)
            yield from _twice(value, path)


def schema() -> Json:
    made: Json = _untitled(Configuration.model_json_schema(by_alias=True, schema_generator=Described))
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **made, "required": ["apiVersion", "kind"]}


def _untitled(node: Any) -> Any:  # noqa: ANN401  # whatever a schema has
    """Without the titles that pydantic makes of names."""
    if isinstance(node, dict):
        return {k: _untitled(v) for k, v in node.items() if k != "title" or not isinstance(v, str)}
    return [_untitled(each) for each in node] if isinstance(node, list) else node


def main(arguments: list[str]) -> int:
    """Write the schema, or with `--check` show how it differs; 1 if it does."""
    return write_or_check(arguments, {SCHEMA: json.dumps(schema(), indent=2) + "\n"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

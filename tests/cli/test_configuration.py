"""The file of `admitter run --config`: what it says, what it must not say, and what goes before it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli import configuration, run
from admitter.cli.configuration import Configuration, read
from admitter.cli.main import app
from admitter.convert.workloads import RequeueBy
from admitter.documents import ManifestError
from admitter.install.apply import manifests

HEAD = "apiVersion: config.admitter.dev/v1alpha1\nkind: Configuration\n"
ALL = "apiVersion, kind, bind, requeueBy, gpuMemoryGB, gpuResources, shards, journal"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_what_is_said_counts_and_the_rest_has_its_default(file: Path) -> None:
    file.write_text(HEAD + "requeueBy: eviction\ngpuResources:\n- name: example.com/shard\n  memoryGB: 8\n")
    made = read(file)
    assert (made.bind, made.requeue_by) == ("127.0.0.1:8080", RequeueBy.EVICTION)
    assert dict(made.decides_by.gpus.more) == {"example.com/shard": 8}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bnd: x", f"bnd: is not known here; known are {ALL}"),
        (
            "journal: {folder: /tmp, mb: 3}",
            "journal.mb: is not known here; known are folder, megabytes, files",
        ),
        ("journal: {megabytes: 3}", "journal.folder: is missing"),
        ("journal: {folder: /tmp, files: 0}", "journal.files: Input should be greater than or equal to 1"),
        (
            "gpuResources: [{name: amd.com/gpu, gb: 3}]",
            "gpuResources[0].gb: is not known here; known are name, memoryGB",
        ),
        ("bind: 8080", "bind: Input should be a valid string, not 8080"),
        ("bind: ':8080'", "bind: ':8080' is not ADDRESS:PORT"),
        ("requeueBy: never", "requeueBy: Input should be 'creation' or 'eviction'"),
        ("gpuMemoryGB: '40'", 'gpuMemoryGB: Input should be a valid integer, not "40"'),
        ("gpuMemoryGB: 0", "gpuMemoryGB: Input should be greater than or equal to 1"),
        (
            "gpuResources: [{name: nvidia.com/gpu}]",
            "gpuResources: nvidia.com/gpu is known without being listed",
        ),
        ("gpuResources: [{name: a/b}, {name: a/b}]", "gpuResources: a/b is listed twice"),
        ("bind: a:1\nbind: b:2", "bind: is there twice"),
        ("---\nkind: Other", "must be one document with keys and values, kind Configuration"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(file: Path, text: str, words: str) -> None:
    file.write_text(HEAD + text)
    with pytest.raises(ManifestError) as caught:
        read(file)
    assert str(caught.value) == f"{file}: {words}"


@pytest.mark.parametrize(
    ("text", "words"), [("bind: a:1", "apiVersion: is missing; kind: is missing"), ("", "must be one")]
)
def test_a_file_that_does_not_say_what_it_is(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with pytest.raises(ManifestError, match=words):
        read(file)


def test_all_faults_are_said_at_once_in_one_line_and_the_exit_status_is_that_of_other_errors(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("bnd: x\nkind: Configuration\n")
    monkeypatch.setattr("sys.argv", ["admitter", "run", "--config", str(file)])
    from admitter.cli.main import main  # noqa: PLC0415  # as the command does

    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {file}: apiVersion: is missing; bnd: is not known here; known are {ALL}"


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Configuration]:
    """The configurations that `admitter run` would run with."""
    found: list[Configuration] = []

    async def control(_kubeconfig: object, _context: object, made: Configuration) -> None:
        found.append(made)

    monkeypatch.setattr(run, "_control", control)
    monkeypatch.setattr(run, "_log_to_stderr", lambda: None)
    return found


def test_an_option_goes_before_the_file_and_the_file_before_the_default(
    file: Path, used: list[Configuration]
) -> None:
    file.write_text(
        HEAD + "bind: 0.0.0.0:9\nrequeueBy: eviction\ngpuMemoryGB: 80\ngpuResources: [{name: amd.com/gpu}]\n"
    )
    options = ["--requeue-by", "creation", "--gpu-resource", "example.com/shard=8"]
    assert CliRunner().invoke(app, ["run", "--config", str(file), *options]).exit_code == 0
    (made,) = used
    assert (made.bind, made.requeue_by, made.gpu_memory_gb) == ("0.0.0.0:9", RequeueBy.CREATION, 80)
    assert dict(made.decides_by.gpus.more) == {"example.com/shard": 8}


def test_without_a_file_the_options_say_all(used: list[Configuration]) -> None:
    assert CliRunner().invoke(app, ["run", "--bind", "127.0.0.1:0"]).exit_code == 0
    assert used == [Configuration(bind="127.0.0.1:0")]


def test_the_schema_is_that_of_the_model_and_knows_each_field() -> None:
    assert configuration.main(["--check"]) == 0
    published = json.loads((DOCS / "configuration.schema.json").read_text())
    assert list(published["properties"]) == ALL.split(", ")
    assert published["additionalProperties"] is False


def fields(model: Any, prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        yield path
        if path == "gpuResources":
            yield from fields(configuration.GpuResource, f"{path}[].")
        elif path == "journal":
            yield from fields(configuration.JournalSettings, f"{path}.")


def test_each_field_is_documented_with_its_default() -> None:
    page = (DOCS / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.\[\]]+)` \| (`?[^|`]*`?) \|", page, flags=re.MULTILINE))
    assert list(rows) == list(fields(Configuration))
    models = {"": Configuration(), "journal.": configuration.JournalSettings(folder="required")}
    for prefix, defaults in models.items():
        for name, field in type(defaults).model_fields.items():
            if name not in {"api_version", "kind", "gpu_resources", "journal", "folder"}:
                path = f"{prefix}{field.alias or name}"
                assert rows[path] == f"`{getattr(defaults, name)}`", path


def test_the_examples_of_the_page_and_the_one_of_the_bundle_are_valid(file: Path) -> None:
    page = (DOCS / "configuration.md").read_text()
    shown = [
        text for text in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL) if "Configuration" in text
    ]
    bundled = [m["data"] for m in manifests(deployment=True) if m["kind"] == "ConfigMap"]
    assert [list(data) for data in bundled] == [["config.yaml"]]
    for text in (*shown, bundled[0]["config.yaml"]):
        file.write_text(text)
        read(file)
    assert yaml.safe_load(bundled[0]["config.yaml"])["bind"] == "0.0.0.0:8080"

"""Whatever stands in a file that a command reads: no traceback, and what is beside it is not lost."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path as File
from random import Random
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from admitter.cli.main import app
from admitter.documents import ManifestError
from admitter.importers.systems import SystemName
from admitter.insight.snapshot_file import dump
from tests.abuse.samples import KINDS, QUEUED, stored
from tests.cli.test_visible import OBEYED
from tests.cluster.objects import Json
from tests.importers.importing import documents
from tests.importers.samples import SAMPLES
from tests.insight.states import State
from tests.journal.test_files import asks, recorded
from tests.scale import scaled
from tests.simulate.mutations import ODD, changed, paths, world

VALUES = [*(each for each in ODD if not isinstance(each, int) or abs(each) < 2**64)]
VALUES += ["[red]x[/red]", "[link=http://x]y[/link]", "\x1b[31mx", "1e400", 10**18, "1 Gi"]
BESIDE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "beside"}}
FLAVOR: Json = {
    "apiVersion": "admitter.dev/v1alpha1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "beside"},
    "spec": {"gpuMemoryGB": "40"},
}


def mutations(objects: list[Json], seed: int, number: int) -> Iterator[list[Json]]:
    """The same objects, of which one has something else in one place."""
    chance = Random(seed)
    places = [(index, path) for index, each in enumerate(objects) for path in paths(each)]
    for index, path in chance.sample(places, min(number, len(places))):
        other = changed(objects[index], path, chance.choice(VALUES))
        yield [*objects[:index], other, *objects[index + 1 :]]


def run(*words: str) -> Result:
    answer = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})
    ends = isinstance(answer.exception, SystemExit | ManifestError | None)
    assert ends, (words, answer.exception)
    assert not OBEYED.search(answer.output)
    return answer


def listed(file: File, objects: list[Json]) -> str:
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(file)


@pytest.mark.long
@pytest.mark.parametrize("system", list(SystemName))
def test_an_import_goes_on(tmp_path: File, system: SystemName) -> None:
    objects = [each.raw for text in SAMPLES[system] for each in documents(text)]
    for manifests in mutations(objects, 1, scaled(30, 600)):
        path = listed(tmp_path / "given.json", [*manifests, BESIDE])
        assert "  name: beside\n" in run("import", system, path).stdout


@pytest.mark.long
def test_lint_goes_on_and_names_object_field_and_reason(tmp_path: File) -> None:
    for manifests in mutations(world(), 2, scaled(60, 1200)):
        path = listed(tmp_path / "given.json", [*manifests, FLAVOR])
        found = {
            each["object"]: each["message"] for each in json.loads(run("lint", path, "-o", "json").stdout)
        }
        said = 'spec.gpuMemoryGB: Input should be a valid integer, not "40"'
        assert found["ResourceFlavor beside"] == said


@pytest.fixture
def snapshot() -> Json:
    """An object of each kind, and one Job that waits in a queue of its own."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "2"}}})
    state.namespace("a", "total")
    for number in range(3):
        state.waits("a", f"job-{number}", {"cpu": "1"}, created=number - 9)
    for plural in KINDS.keys() - {"experiments", "leases", QUEUED}:
        state.objects[plural].append(stored(plural))
    found: Json = orjson.loads(dump(state.snapshot()))
    return found


def with_changed_objects(snapshot: Json, number: int) -> Iterator[Json]:
    """The snapshot, in which one of the objects that concern no Job of ours is changed."""
    for plural in sorted(KINDS.keys() - {"experiments", "leases", QUEUED}):
        *others, last = snapshot["objects"][plural]
        for seed in range(number):
            ((changed_one,),) = (list(mutations([last], seed, 1)),)
            yield snapshot | {"objects": snapshot["objects"] | {plural: [*others, *changed_one]}}


TOLD: dict[str, Callable[[str], str]] = {
    "explain": lambda path: run("explain", "job-2", "-n", "a", "--state", path).stdout,
    "get": lambda path: run("get", "workloads", "-A", "--state", path).stdout,
    "simulate": lambda path: run("simulate", path, "--cycles", "20").stdout,
    "lint": lambda path: run("lint", "--state", path).stdout + " job-2 ",
    "what-if": lambda path: run("what-if", "--without", "ClusterQueue/total", "--state", path).stdout,
}


@pytest.mark.long
@pytest.mark.parametrize("command", TOLD)
def test_answers_about_a_snapshot_go_on(tmp_path: File, snapshot: Json, command: str) -> None:
    path = tmp_path / "state.json"
    for given in with_changed_objects(snapshot, scaled(2, 40)):
        path.write_bytes(orjson.dumps(given))
        assert "job-2" in TOLD[command](str(path))


@pytest.mark.parametrize("field", ["namespace", "name", "uid"])
@pytest.mark.parametrize("value", [5, [], {"a": None}, True])
def test_an_object_of_a_snapshot_that_can_not_be_told_from_others(
    tmp_path: File, snapshot: Json, caplog: pytest.LogCaptureFixture, field: str, value: Any
) -> None:
    snapshot["objects"]["workloads"][-1]["metadata"][field] = value
    path = tmp_path / "state.json"
    path.write_bytes(orjson.dumps(snapshot))
    assert "job-2" in run("explain", "job-2", "-n", "a", "--state", str(path)).stdout
    assert f"can't be read: metadata.{field}: must be a text" in caplog.text


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("settings", {}, "settings.requeueBy: is missing"),
        ("objects", {"jobs": 5}, "objects.jobs: Input should be a valid list"),
        ("taken", "yesterday", "Invalid isoformat string: 'yesterday'"),
    ],
)
def test_a_field_of_a_snapshot_is_named(
    tmp_path: File, snapshot: Json, field: str, value: Any, says: str
) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(orjson.dumps(snapshot | {field: value}))
    assert says in str(run("lint", "--state", str(path)).exception)


@pytest.mark.long
def test_a_line_of_a_journal_is_named_and_other_journals_are_replayed(tmp_path: File) -> None:
    whole, odd = tmp_path / "decisions-000001.jsonl", tmp_path / "decisions-000002.jsonl"
    with recorded(tmp_path) as made:
        asks(made, 1)
        asks(made, 2, cores=9)
        made.cycle(100.0)
    lines = [orjson.loads(line) for line in whole.read_bytes().splitlines()]
    failed = 0
    for changed_lines in mutations(lines, 3, 400):
        odd.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in changed_lines))
        answer = run("replay", str(tmp_path), "-o", "json")
        assert json.loads(answer.stdout)[0]["cycles"] == 1, "of the journal that is whole"
        if isinstance(answer.exception, ManifestError):
            failed += 1
            assert str(answer.exception).startswith(f"{odd}")
    assert failed > 50

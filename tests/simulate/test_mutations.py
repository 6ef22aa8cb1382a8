"""Whatever stands in a manifest: what is wrong is named with object and field, and harms no other object."""

import json
from collections.abc import Iterator
from pathlib import Path as File
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.scale import scaled
from tests.simulate.elastic import asks
from tests.simulate.mutations import Path, at, changed, job, mutated, paths, queued_pod, workload, world
from tests.simulate.test_simulate import simulate, states

ELSEWHERE = [
    resource_flavor("other-flavor", {"nodeLabels": {"elsewhere": "true"}}),
    cluster_queue(
        "other",
        {"cpu": {"other-flavor": "1"}},
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "other"}},
    ),
    local_queue("other", "other"),
    *(
        asks("other", name, {"cpu": 1}, second, queue="main")
        for second, name in enumerate(("first", "second"))
    ),
]
"""Queue and Jobs that nothing else concerns."""


def untouched(result: Json) -> list[Json]:
    """What became of the Jobs elsewhere.

    Names of their Workloads tell what came before them, and how long one waits tells what comes to its end.
    """
    return [row | {"name": "", "waited": 0} for row in result["workloads"] if row["namespace"] == "other"]


def outcome(file: File, manifests: list[Json]) -> Json:
    """The result for some manifests, which need not be valid; there is no traceback."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    answer = CliRunner().invoke(app, ["simulate", str(file), "-o", "json", "--cycles", "60"])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    result: Json = json.loads(answer.stdout)
    assert answer.exit_code == bool(result["errors"])
    return result


def test_the_world_is_as_it_should_be(tmp_path: File) -> None:
    result = outcome(tmp_path / "world.json", [*world(), *ELSEWHERE])
    assert result["errors"] == []
    assert [row["state"] for row in untouched(result)] == ["Admitted", "Pending"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(scaled(8, 200)))
def test_no_mutation_of_one_object_ends_in_a_traceback_or_harms_another(tmp_path: File, seed: int) -> None:
    chance, objects = Random(seed), world()
    expected = untouched(outcome(tmp_path / "world.json", ELSEWHERE))
    for number in range(20):
        place = chance.randrange(len(objects))
        manifests = [*objects[:place], mutated(chance, objects[place]), *objects[place + 1 :], *ELSEWHERE]
        result = outcome(tmp_path / f"{number}.json", manifests)
        assert untouched(result) == expected, manifests[place]


def test_no_mutation_that_comes_later_ends_in_a_traceback(tmp_path: File) -> None:
    chance, objects = Random(1), world()
    for number in range(60):
        later = mutated(chance, chance.choice(objects))
        if isinstance(later.get("metadata"), dict):
            later["metadata"]["annotations"] = {"admitter.dev/simulated-at": "5s"}
        outcome(tmp_path / f"{number}.json", [*ELSEWHERE, *objects, later])


def wrong_types(value: object) -> Iterator[Any]:
    """Values of other types than one, those that look like it first."""
    if isinstance(value, bool):
        yield from (str(value).lower(), int(value), [value])
    elif isinstance(value, int):
        yield from (str(value), value + 0.5, True, [value], {})
    elif isinstance(value, str):
        yield from (True, [value], {"a": value})
    elif isinstance(value, list):
        yield from ("x", 3, True, {"a": 1})
    else:
        yield from ("x", 3, True, [1])


UNREAD = {
    *(
        (*above, *rest)
        for above in (("spec", "template", "spec"), ("spec",))
        for rest in (
            *((part, 0, name) for part in ("containers", "initContainers") for name in ("name", "image")),
            ("tolerations", 0, "tolerationSeconds"),
        )
    ),
    *(("spec", "suspend"), ("metadata", "managedFields", 0, "manager"), ("status", "state")),
}
"""What decides nothing, and is passed over."""


LABELS = {("metadata",), ("metadata", "labels")}
"""A pod of which these can't be read names no queue."""


def fields(manifest: Json) -> list[Path]:
    """The fields that are read, as they are named in messages."""
    return [path for path in paths(manifest) if path not in UNREAD and path != ("kind",)]


def named(path: Path) -> str:
    """A field as messages name it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@pytest.mark.long
@pytest.mark.parametrize("manifest", [job(), workload(), queued_pod()], ids=["Job", "Workload", "Pod"])
def test_every_field_of_a_wrong_type_is_named_with_its_object(tmp_path: File, manifest: Json) -> None:
    title = f"{manifest['kind']} t/{manifest['metadata']['name']}"
    read = [path for path in fields(manifest) if manifest["kind"] != "Pod" or path not in LABELS]
    cases = [(path, value) for path in read for value in wrong_types(at(manifest, path))]
    assert len(cases) > 150
    missed = []
    for path, value in cases:
        result = outcome(tmp_path / "wrong.json", [*ELSEWHERE, changed(manifest, path, value)])
        said = [f"{error['object']}: {error['message']}" for error in result["errors"]]
        if len(said) != 1 or named(path) not in said[0] or not (path[0] == "metadata" or title in said[0]):
            missed.append((named(path), value, said))
    assert missed == []


def test_a_quoted_number_is_said_as_it_stands_and_the_others_run(tmp_path: File) -> None:
    wrong = asks("other", "quoted", {"cpu": 1}, queue="main")
    wrong["spec"]["parallelism"] = "3"
    result = simulate(tmp_path, *ELSEWHERE, wrong, exit_code=1)
    assert result["errors"] == [
        {
            "object": "Job other/quoted",
            "message": 'spec.parallelism: Input should be a valid integer, not "3"',
        }
    ]
    assert states(result) == {"first": "Admitted", "second": "Pending"}


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ({}, "apiVersion: Input should be a valid string"),
        (None, "apiVersion: is missing"),
        ("batch/v2", None),
    ],
    ids=["a map", "none", "another one"],
)
def test_a_job_of_no_known_version(tmp_path: File, version: object, message: str | None) -> None:
    wrong = asks("other", "odd", {"cpu": 1}, queue="main") | {"apiVersion": version}
    result = simulate(tmp_path, *ELSEWHERE, wrong, exit_code=int(message is not None))
    assert [error["message"] for error in result["errors"]] == ([message] if message else [])


def test_numbers_as_annotations_mean_what_is_written(tmp_path: File) -> None:
    short = asks("other", "first", {"cpu": 1}, queue="main")
    short["metadata"]["annotations"] = {"admitter.dev/simulated-runtime": 30}
    result = simulate(tmp_path, *ELSEWHERE[:3], short)
    assert states(result) == {"first": "Finished"}

"""Objects of described kinds in a snapshot, and each command that is asked about them."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from typer.testing import CliRunner

from admitter.api.forms import RECORDS, fitted
from admitter.cache.described_views import parse_record
from admitter.cache.job_resources import PodSetView
from admitter.cli.main import app
from admitter.convert.settings import DEFAULTS
from admitter.insight.history import HistoryEntry, read
from admitter.insight.snapshot_file import SnapshotFile, dump, facts, load, record
from admitter.insight.taking import take
from admitter.names import EXPECTED_RUNTIME_ANNOTATION, QUEUE_LABEL
from admitter.policy.snapshot import Snapshot
from tests.apiserver.experiments import GROUP, JOB_KINDS
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.cache.test_described_views import TRIAL, source
from tests.convergence.lab import EXPERIMENTS, Lab, template
from tests.convergence.scene import TEAM
from tests.convergence.test_children import RUNTIME, TRAINER, TRAINJOBS, Operated
from tests.insight.asking import AT_LEISURE

Json = dict[str, Any]

SECRET = "hunter2"
KIND = f"experiments.{GROUP}"
IN = ("-n", TEAM, *AT_LEISURE)


class Reader:
    """A user with a snapshot in a file: the Experiment `first` runs, `second` and a Job `first` wait."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self.change = folder / "change.yaml"
        self.events: list[HistoryEntry] = []
        run(self._live())

    async def _live(self) -> None:
        lab = Lab()
        lab.operator.lasts = 1000.0
        lab.experiment("first", control=2, probe=2, copies=2)
        notes = {EXPECTED_RUNTIME_ANNOTATION: "10m", "note": SECRET}
        lab.server.write(f"{EXPERIMENTS}/first", {"metadata": {"annotations": notes}})
        await lab.start()
        await lab.settled(lambda: lab.runs("first") == 3)
        lab.experiment("second", control=1, probe=1)
        lab.submit("first", "a", 1)
        await lab.settled(lambda: lab.condition("second", "QuotaReserved") == "False")
        lab.server.write(f"{JOB_KINDS}/experiment", {"metadata": {"labels": {"seen": "yes"}}})
        taken = await take(lab.server, DEFAULTS, lambda: clock().timestamp())
        self.path.write_bytes(dump(taken))
        self.events = await read(lab.server, TEAM, ("experiment", "first"))
        await lab.kill()

    def ask(self, *words: str, exit_code: int = 0) -> str:
        answer = CliRunner().invoke(app, [*words, "--state", str(self.path)])
        assert answer.exit_code == exit_code, (answer.output, answer.exception)
        return answer.output if exit_code != 1 else str(answer.exception)

    def try_out(self, name: str, exit_code: int = 0) -> str:
        """What a further Experiment would do."""
        metadata = {"name": name, "namespace": TEAM, "labels": {"admitter.dev/queue-name": "a"}}
        spec = {"state": "Running", "control": template(1)}
        raw = {"apiVersion": f"{GROUP}/v1", "kind": "Experiment", "metadata": metadata, "spec": spec}
        self.change.write_text(yaml.safe_dump(raw))
        return self.ask("what-if", "-f", str(self.change), "--estimate-for", "0s", exit_code=exit_code)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("described"))


def test_a_snapshot_has_what_a_job_kind_finds_in_its_objects_and_nothing_else(reader: Reader) -> None:
    assert SECRET not in reader.path.read_text()
    known = facts(load(reader.path))
    assert known.read == frozenset({KIND})
    first = known.views["jobs"][TEAM, "experiment/first"]
    assert [(each.name, each.count) for each in first.sets] == [("control", 1), ("probe", 2)]
    assert first.spec["expected"] == "10m"
    assert first.is_started_by(known.views["workloads"][TEAM, first.workload])
    world = Snapshot(known).world
    assert world.unknown_kind("experiment/first", GROUP) == ""
    assert world.kind_of("experiment/first") == "Experiment"


def test_a_record_means_what_the_object_meant() -> None:
    read = source()
    for raw in (TRIAL, {**TRIAL, "status": {"phase": "Done", "words": "over"}}, {**TRIAL, "spec": {}}):
        view = read.read(raw)
        kept = orjson.loads(orjson.dumps(record(raw, view)))
        again = parse_record(fitted(RECORDS, kept), view.resource)
        bare = tuple(PodSetView(s.name, s.count, s.template, s.marks) for s in view.sets)
        assert (again.sets, again.spec, again.status) == (bare, view.spec, view.status)
        assert (again.key, again.queue, again.problem, again.finished, again.workload) == (
            view.key,
            view.queue,
            view.problem,
            view.finished,
            view.workload,
        )


def test_lists_and_answers_call_an_object_by_kind_and_name(reader: Reader) -> None:
    rows = reader.ask("get", "workloads", "-n", TEAM).splitlines()[1:]
    assert {row.split()[1] for row in rows} == {"experiment/first", "experiment/second", "first"}
    for name in ("experiment/second", "experiments/second", f"Experiment.{GROUP}/second", "second"):
        answer = reader.ask("explain", name, *IN)
        assert "team/experiment/second: Pending" in answer
        assert "team/experiment/first, priority 0, expected to end in 9 min" in answer


def test_a_name_that_may_be_two_objects_is_to_be_told_apart(reader: Reader) -> None:
    answer = reader.ask("explain", "first", *IN, exit_code=1)
    assert "first may be any of experiment/first, job/first" in answer
    assert "team/first: Pending" in reader.ask("explain", "job/first", *IN)
    assert "team/experiment/first: Admitted" in reader.ask("explain", "experiment/first", *IN)


def test_names_that_are_wrong_are_told_from_kinds_that_are(reader: Reader) -> None:
    assert "did you mean experiment/second?" in reader.ask("explain", "experiment/secnd", *IN, exit_code=1)
    assert "'study/second' is none of NAME" in reader.ask("explain", "study/second", *IN, exit_code=2)


def test_further_objects_are_tried_with_the_kinds_of_the_cluster(reader: Reader) -> None:
    assert "experiment/third" in reader.try_out("third")
    assert "Experiment team/second: is there already" in reader.try_out("second", exit_code=1)


def test_what_the_end_of_an_object_would_let_in_is_known(reader: Reader) -> None:
    words = ("what-if", "--without", f"experiments/{TEAM}/first", "--estimate-for", "0s", "-o", "json")
    admitted = {each["name"]: each["effect"] for each in json.loads(reader.ask(*words))["workloads"]}
    assert admitted == {"experiment/second": "admitted", "first": "admitted"}


def test_a_simulation_goes_on_from_there(reader: Reader) -> None:
    answer = CliRunner().invoke(app, ["simulate", str(reader.path), "--until", "1h"])
    assert answer.exit_code == 0, answer.output
    assert "experiment/first" in answer.stdout


def test_history_has_events_on_the_object_itself(reader: Reader) -> None:
    assert "Admitted" in {each.what for each in reader.events}
    assert {each.name for each in reader.events} == {"experiment/first"}


def changed(reader: Reader, **objects: Any) -> SnapshotFile:
    whole = load(reader.path)
    return SnapshotFile(whole.taken, whole.settings, {**whole.objects, **objects})


def test_of_a_kind_that_was_not_read_workloads_say_what_is_to_be_known(reader: Reader) -> None:
    whole = load(reader.path)
    left = {name: found for name, found in whole.objects.items() if name != KIND}
    known = facts(SnapshotFile(whole.taken, whole.settings, left))
    assert known.read == frozenset()
    snapshot = Snapshot(known)
    second = snapshot.find(TEAM, "experiment/second")
    assert second is not None
    assert second.uid not in snapshot.waiting


def test_a_kind_that_does_not_work_keeps_its_workloads_waiting_as_in_the_cluster(reader: Reader) -> None:
    whole = load(reader.path)
    (kind,) = whole.objects["jobkinds"]
    broken = {"type": "Active", "status": "False", "reason": "InvalidSpec", "message": "spec.active: no"}
    broken["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    left = {name: found for name, found in whole.objects.items() if name != KIND}
    left["jobkinds"] = [{**kind, "status": {"conditions": [broken]}}]
    snapshot = Snapshot(facts(SnapshotFile(whole.taken, whole.settings, left)))
    second = snapshot.find(TEAM, "experiment/second")
    assert second is not None
    assert snapshot.waiting[second.uid].reason == "KindInactive"


@pytest.mark.parametrize("field", ["suspended", "podSets", "status", "problem", "priorityClassName"])
def test_a_record_without_a_field_is_left_out(reader: Reader, field: str) -> None:
    first, *others = load(reader.path).objects[KIND]
    known = facts(changed(reader, **{KIND: [{k: v for k, v in first.items() if k != field}, *others]}))
    titles = {name for _, name in known.views["jobs"]}
    assert titles == {"experiment/second", "first"}


def test_of_what_describes_its_objects_a_snapshot_reads_no_more_than_the_controller() -> None:
    """A user may make runtimes as large as the API server takes, and as many."""

    async def story() -> None:
        lab = Operated()
        lab.server.ignore(lab._operate)
        served = lab.server.documents[TRAINER]["resources"]
        lab.server.documents[TRAINER] = {
            "resources": [{**each, "verbs": ["list", "watch"]} for each in served]
        }
        jobs = [{"name": "w", "template": {"spec": {"template": template(1)}}}]
        texts = {"usual": "", "large": "x" * 100_000} | {f"r{n:03}": "x" * 64_000 for n in range(300)}
        for name, text in texts.items():
            metadata = {"name": name, "annotations": {"text": text}}
            spec = {"template": {"spec": {"replicatedJobs": jobs}}}
            lab.server.make(RUNTIME, {"metadata": metadata, "spec": spec})
        for name in ("usual", "large", "r299"):
            body: Json = {"metadata": {"name": name, "labels": {QUEUE_LABEL: "a"}}}
            body["spec"] = {"suspend": True, "runtimeRef": {"name": name}}
            lab.server.make(TRAINJOBS, body)
        await lab.start()
        waiting = ("large", "r299")
        await lab.server.until(lambda: all("InvalidRequests" in lab.events(name) for name in waiting))
        await lab.server.until(lambda: "status" in lab.server.objects["jobkinds"]["", "trainjob"])
        taken = await take(lab.server, DEFAULTS, lambda: clock().timestamp())
        said = {
            each["metadata"]["name"]: each["problem"]
            for each in taken.objects["trainjobs.trainer.kubeflow.org"]
        }
        assert said["usual"] == ""
        assert "at most 65536 are read" in said["large"]
        assert "the others leave it no room" in said["r299"]
        for name in waiting:
            told = lab.events(name)["InvalidRequests"]
            assert told == f"its requests can't be counted: {said[name]}", "the controller says the same"
        await lab.kill()

    run(story())

"""Names and messages that others have written, as they are printed: nothing of them is obeyed."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from admitter.cli.complaints import complain
from admitter.cli.history import _table
from admitter.cli.looking import console
from admitter.cli.main import app
from admitter.documents import ManifestError
from admitter.insight.history import HistoryEntry
from admitter.top.columns import Column, fitting, line
from admitter.top.view import beside
from admitter.visible import visible
from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.insight.asking import Desk
from tests.insight.states import State
from tests.simulate.elastic import asks

NAMES = [
    "[/b]",
    "[red]x",
    ":bomb:",
    "a\x1b[2J",
    "b\rc",
    "d\ne",
    "\x9b1m",
    "\u202egnp",
    "back\\",
    "\x07",
    "é 日本",
]
"""What no object of a cluster can be called, and any user can write into a file."""

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def shown(name: str) -> str:
    """A name as people are to see it."""
    for sign, words in (
        ("\x1b", r"\x1b"),
        ("\r", r"\r"),
        ("\n", r"\n"),
        ("\x9b", r"\x9b"),
        ("\x07", r"\x07"),
    ):
        name = name.replace(sign, words)
    return name.replace("\u202e", r"\u202e")


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})


@pytest.mark.parametrize("name", NAMES)
def test_what_a_terminal_would_obey_is_written_out(name: str) -> None:
    assert visible(name) == shown(name)
    assert not OBEYED.search(visible(name, lines=True))
    assert visible("a\nb\x1bc", lines=True) == "a\nb\\x1bc"
    assert visible("\ud800") == r"\ud800", "half a character can't be printed at all"


def manifests(name: str) -> list[Json]:
    """A queue with room for one, two Jobs of a name, and a queue that is wrong in every way."""
    second = asks("t", f"{name} 2", {"cpu": 1}, 1, queue="main")
    pod = second["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"kind": name}
    return [
        resource_flavor("f", {"nodeLabels": {"kind": "a"}}),
        cluster_queue("q", {"cpu": {"f": "1"}}),
        local_queue("t", "q"),
        asks("t", name, {"cpu": 1}, queue="main"),
        second,
    ]


@pytest.mark.parametrize("name", NAMES)
def test_simulate_shows_names_and_messages(tmp_path: Path, name: str) -> None:
    path = tmp_path / "manifests.json"
    path.write_text(json.dumps({"kind": "List", "items": manifests(name)}))
    answer = run("simulate", str(path))
    assert answer.exit_code == 0, answer.exception
    assert not OBEYED.search(answer.stdout)
    assert f" {shown(name)} " in answer.stdout
    assert f"f does not match kind={shown(name)}" in answer.stdout
    rows = json.loads(run("simulate", str(path), "-o", "json").stdout)["workloads"]
    assert {row["job"] for row in rows} == {name, f"{name} 2"}, "programs get what is there"


@pytest.mark.parametrize("name", NAMES)
def test_errors_show_names(tmp_path: Path, name: str) -> None:
    wrong = [*manifests("ok"), asks("t", name, {"cpu": 1}), cluster_queue(name, {name: {"f": "x"}})]
    wrong[-2]["spec"]["parallelism"] = "3"
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"kind": "List", "items": wrong}))
    simulated, linted = run("simulate", str(path)), run("lint", str(path))
    assert (simulated.exit_code, linted.exit_code) == (1, 1), (simulated.exception, linted.exception)
    assert not OBEYED.search(simulated.output + linted.output)
    assert f"Job t/{shown(name)}: spec.parallelism" in simulated.stderr
    assert f"ClusterQueue {shown(name)}" in linted.stdout


@pytest.mark.parametrize("name", NAMES)
def test_answers_about_a_snapshot_show_names(tmp_path: Path, name: str) -> None:
    state = State()
    state.queue(
        "total", {"cpu": {"default": {"min": "1"}}}, preemption={"withinClusterQueue": "LowerPriority"}
    )
    state.namespace("a", "total")
    state.put("priorityclasses", "high", value=9)
    state.holds("a", f"{name}-runs", {"cpu": ("1", "default")}, cluster_queue="total")
    state.waits("a", name, {"cpu": "1"})
    desk = Desk(state, tmp_path)
    change = tmp_path / "change.yaml"
    urgent = asks("a", "urgent", {"cpu": 1}, queue="main", priority="high")
    change.write_text(yaml.safe_dump(urgent))
    told = [
        desk.run("explain", name, "-n", "a"),
        desk.run("get", "workloads", "-A"),
        desk.run("get", "workloads", "-A", "-o", "wide"),
        desk.run("what-if", "-f", str(change)),
    ]
    for text in told:
        assert not OBEYED.search(text)
        assert shown(name) in text
    missing = run("explain", f"{name}x", "-n", "a", "--state", str(tmp_path / "state.json"))
    assert shown(name) in visible(missing.exception), (
        "what is not there is named by the code that catches the error"
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_ends_a_command_is_shown(capsys: pytest.CaptureFixture[str], name: str) -> None:
    complain(ManifestError(f"{name}: is no YAML:\n  {name}"))
    said = capsys.readouterr().err
    assert not OBEYED.search(said)
    expected = name if "\n" in name else shown(name)
    assert said.startswith(f"error: {expected}: is no YAML:\n"), "errors may have lines"


@pytest.mark.parametrize("name", NAMES)
def test_an_import_shows_names(tmp_path: Path, name: str) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": name}}
    path = tmp_path / "kueue.json"
    path.write_text(json.dumps(queue | {"spec": {name: name, "cohort": 5}}))
    answer = run("import", "kueue", str(path), "--to", str(tmp_path / "made.yaml"))
    assert answer.exit_code == 2, answer.exception
    assert not OBEYED.search(answer.stderr)
    assert f"ClusterQueue {shown(name)}" in answer.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_history_shows_names(capsys: pytest.CaptureFixture[str], name: str) -> None:
    console().print(_table([HistoryEntry("2026-01-01T00:00:00Z", "t", name, "Evicted", f"for {name}")]))
    said = capsys.readouterr().out
    assert not OBEYED.search(said)
    assert f"for {shown(name)}" in said


@pytest.mark.parametrize("name", NAMES)
def test_the_live_table_shows_names(name: str) -> None:
    column: Column[str] = Column("NAME", 30, 0, lambda item, _: item)
    assert line(fitting([column], 30), name).plain.rstrip() == shown(name)
    assert beside(name, name, 80, "").plain.split() == [*shown(name).split(), *shown(name).split()]

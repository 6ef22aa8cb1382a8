"""The table of exit statuses in docs/reference/cli.md has all that there are, and each is true."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Self

import pytest
from typer.testing import CliRunner

import admitter.cli
from admitter.cli.main import app
from admitter.importers.translation import Fidelity
from tests.cli.test_replay import journal
from tests.patience import PATIENCE_SECONDS
from tools.docs.cli import commands

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text()
STATE = "--state docs/examples/monday.json"
EVERYBODY = "every command"

LINES = {
    (EVERYBODY, 0): f"get workloads -A {STATE}",
    (EVERYBODY, 1): f"explain nothing -n team-a {STATE}",
    (EVERYBODY, 2): "explain --shout",
    ("admitter lint", 1): f"lint {STATE} --fail-on note",
    ("admitter simulate", 1): "simulate {folder}/wrong.yaml",
    ("admitter what-if", 3): f"what-if {STATE} --without ClusterQueue/team-b --fail-on never",
    ("admitter import", 0): "import nos {folder}/same.yaml --report none",
    ("admitter import", 1): "import kueue {folder}/similar.yaml --report none",
    ("admitter import", 2): "import kueue {folder}/nothing.yaml",
    ("admitter sandbox status", 1): "sandbox status --name is-not-there",
    ("admitter sandbox env", 1): "sandbox env --name is-not-there",
}
"""What ends with which status. In the folder are `FILES`."""

ELSEWHERE = {
    (EVERYBODY, 130),
    ("admitter init", 1),
    ("admitter replay", 3),
    ("admitter run", 0),
    ("admitter simulate", 3),
    ("admitter uninstall", 1),
}
"""Those with tests of their own: below, test_init.py, tests/cluster/test_run.py, simulate/test_endless.py."""

FILES = {
    "same.yaml": """
apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: team-a}
spec: {min: {cpu: 2}, max: {cpu: 4}}
""",
    "similar.yaml": """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: on_demand}
spec: {nodeLabels: {instance-type: on-demand}}
""",
    "wrong.yaml": """
apiVersion: admitter.dev/v1alpha1
kind: ClusterQueue
metadata: {name: total}
spec: {queueingStrategy: Random}
""",
}


def documented() -> set[tuple[str, int]]:
    """The rows of the table."""
    table = PAGE.partition("## Exit statuses\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `?([a-z][a-z -]+)`? \| (\d+) \| \S", table, flags=re.MULTILINE)
    assert len(found) == len(set(found))
    return {(command, int(status)) for command, status in found}


def statuses(module: ModuleType) -> Iterator[int]:
    """What the code of a module ends with, but for what went wrong and was typed wrong in any command."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Exit":
            (status,) = node.args
            match status:
                case ast.Constant(int(value)):
                    yield value
                case ast.Name(name):
                    yield getattr(module, name)
                case _:
                    assert ast.unparse(status).endswith(".severity"), ast.unparse(status)
                    yield from (outcome.severity for outcome in Fidelity)


def modules() -> Iterator[ModuleType]:
    for path in sorted(Path(str(admitter.cli.__file__)).parent.glob("[a-z]*.py")):
        yield importlib.import_module(f"admitter.cli.{path.stem}")


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.__name__)
def test_each_status_in_the_code_has_a_row(module: ModuleType) -> None:
    of = {
        each.path
        for each in commands()
        if getattr(each.command.callback, "__module__", "") == module.__name__
    }
    rows = {status for command, status in documented() if command in of}
    assert set(statuses(module)) <= rows


def test_each_row_is_tried() -> None:
    assert documented() == set(LINES) | ELSEWHERE


@pytest.mark.parametrize(
    ("line", "status"),
    [pytest.param(line, status, id=f"{command}-{status}") for (command, status), line in LINES.items()],
)
def test_a_command_ends_with(line: str, status: int, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert ended(line.format(folder=tmp_path).split()) == status


def test_a_journal_that_is_decided_otherwise(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"w0002",{"queue"', b'"w0009",{"queue"'))
    assert ended(["replay", str(path)]) == 3


def test_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("admitter.cli.explain.look_at_all", interrupted)
    assert CliRunner().invoke(app, ["explain", "train-7"]).exit_code == 130


class Nowhere:
    """A cluster with nothing in it."""

    host = "https://127.0.0.1:6443"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("answer", "status"), [("", 1), ("n\n", 0)], ids=["nobody-there", "no"])
def test_uninstall_that_is_not_confirmed(monkeypatch: pytest.MonkeyPatch, answer: str, status: int) -> None:
    async def connected(*_: object) -> Nowhere:
        return Nowhere()

    async def none(_: object) -> dict[str, int]:
        return {}

    monkeypatch.setattr("admitter.cli.uninstall.HttpTransport.connect", connected)
    monkeypatch.setattr("admitter.cli.uninstall.counted", none)
    assert CliRunner().invoke(app, ["uninstall"], input=answer).exit_code == status


def ended(words: list[str]) -> int:
    """The exit status of a command, which Python has not ended for it."""
    command = [sys.executable, "-m", "admitter", *words]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert "Traceback" not in done.stderr
    return done.returncode

"""What `admitter replay` says."""

import json
from pathlib import Path

from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.journal.files import files
from tests.journal.test_files import asks, recorded


def journal(folder: Path) -> Path:
    """A journal of two cycles: one admits two Workloads, the other none."""
    with recorded(folder) as made:
        for number in (1, 2):
            asks(made, number)
        made.cycle(60.0)
        asks(made, 3, cores=9)
        made.cycle(61.0)
    return files(folder)[0]


def test_a_journal_that_is_decided_alike(tmp_path: Path) -> None:
    path = journal(tmp_path)
    done = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert done.exit_code == 0
    heading, line = done.stdout.splitlines()
    assert heading.split() == [
        "FILE",
        "VERSION",
        "CALLS",
        "CYCLES",
        "ADMITTED",
        "EVICTED",
        "REASONS",
        "DECIDED",
    ]
    assert line.split() == [path.name, "1.2.3", "8", "2", "2", "0", "1", "the", "same"]


def test_a_journal_that_is_decided_otherwise(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"w0002",{"queue"', b'"w0009",{"queue"'))
    done = CliRunner().invoke(app, ["replay", str(path)])
    assert done.exit_code == 3
    assert "otherwise in line 7" in done.stdout
    assert f"{path}:7, the cycle at 1970-01-01T00:01:00Z:" in done.stdout.replace("\n", "", 3)
    gone, new = (line for line in done.stdout.splitlines() if line.startswith("  admissions"))
    assert gone.startswith('  admissions, then, and not now: ["w0009",')
    assert new.startswith('  admissions, now, and not then: ["w0002",')


def test_for_programs(tmp_path: Path) -> None:
    path = journal(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"w0002",{"queue"', b'"w0009",{"queue"'))
    done = CliRunner().invoke(app, ["replay", str(path), "-o", "json"])
    assert done.exit_code == 3
    (found,) = json.loads(done.stdout)
    assert (found["file"], found["cycles"], found["difference"]["line"]) == (str(path), 1, 7)
    assert {*found["difference"]["then"]} == {*found["difference"]["now"]} == {"admissions"}


def test_a_folder_without_journals(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert done.exit_code == 1
    assert "there is no journal in it" in str(done.exception)

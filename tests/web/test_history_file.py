"""The file of the page's history: across restarts, damage, and other processes."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from admitter.web import admissions, history_file
from admitter.web.history import Ending, History
from tests.insight.states import NOW, State, moment
from tests.web.histories import change, cluster, evicted, shown


def busy() -> State:
    """Something runs, something has finished, something was evicted and waits."""
    state = cluster("a", "b")
    state.holds("team-a", "runs", {"cpu": ("2", "default")}, cluster_queue="a", since=-100)
    state.holds("team-a", "done", {"cpu": ("1", "default")}, cluster_queue="a", since=-200, finished=-100)
    made = state.holds("team-b", "moved", {"cpu": ("1", "default")}, cluster_queue="b", since=-300)
    change(made, evicted(-60, "CapacityShrunk", released=-50), drop=("admission",))
    return state


def all_of(history: History) -> object:
    return history.use("default", "cpu"), history.counts(), history.spans(0), history.evictions(0)


def test_a_restarted_page_goes_on(tmp_path: Path) -> None:
    path, state = tmp_path / "history", busy()
    first = History(path)
    for second in range(0, 2 * 3600, 120):
        shown(first, state, second)
    known = all_of(first)
    first.close()
    again = History(path)
    shown(again, state, 2 * 3600 - 119)  # too close for another sample
    assert all_of(again) == known
    shown(again, state, 2 * 3600)
    assert len(again.use("default", "cpu").times) == len(first.use("default", "cpu").times) + 1
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["history"], "nothing beside it once it is closed"


def test_what_ended_while_the_page_did_not_run_has_ended(tmp_path: Path) -> None:
    path, state = tmp_path / "history", cluster("a")
    for name in ("deleted", "finished", "evicted"):
        state.holds("team-a", name, {"cpu": ("1", "default")}, cluster_queue="a", since=-100)
    history = History(path)
    shown(history, state, 0)
    history.close()
    _, finished, moved = state.objects["workloads"]
    over = {"type": "Finished", "status": "True", "reason": "JobSucceeded", "lastTransitionTime": moment(100)}
    change(finished, {"state": "Finished", "conditions": [*finished["status"]["conditions"], over]})
    change(moved, evicted(150, "Deactivated", released=160), drop=("admission",))
    del state.objects["workloads"][0]
    history = History(path)
    shown(history, state, 600)
    found = {span.name: (span.ended, span.how) for span in history.spans(0)}
    assert found == {
        "deleted": (NOW + 600, Ending.DELETED),
        "finished": (NOW + 100, Ending.SUCCEEDED),
        "evicted": (NOW + 160, Ending.EVICTED),
    }
    history.close()


def test_a_killed_page_loses_at_most_what_came_since_the_last_sample(tmp_path: Path) -> None:
    path = tmp_path / "history"
    program = f"""
import os
from pathlib import Path
from tests.web.test_history_file import busy
from tests.web.histories import shown
from admitter.web.history import History
history = History(Path({str(path)!r}))
for second in range(0, 300, 15):
    shown(history, busy(), second)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False)  # it is the text above
    assert ended.returncode == -9
    history = History(path)
    shown(history, busy(), 300)
    assert history.use("default", "cpu").times == [NOW + 15 * number for number in range(21)]
    history.close()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda _: b"a note of another program\n" * 400,
    "half": lambda content: content[: len(content) // 2 - 100],
    "zeros": lambda content: content[:100] + bytes(len(content) - 100),
    "flipped": lambda content: bytes(
        byte ^ 0xFF if 5000 < place < 9000 else byte for place, byte in enumerate(content)
    ),
    "short": lambda content: content[:50],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_put_aside(tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, state = tmp_path / "history", busy()
    history = History(path)
    for second in range(0, 600, 15):
        shown(history, state, second)
    history.close()
    damaged = DAMAGE[how](path.read_bytes())
    path.write_bytes(damaged)
    history = History(path)
    shown(history, state, 600)
    assert history.use("default", "cpu").times == [NOW + 600]
    history.close()
    assert (tmp_path / "history.aside-1").read_bytes() == damaged, "nothing is lost"
    assert "is kept as history.aside-1, and a new one is begun" in capsys.readouterr().out
    history = History(path)
    shown(history, state, 615)
    assert history.use("default", "cpu").times == [NOW + 600, NOW + 615], "the new one is good"
    history.close()


def test_another_programs_database_is_put_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE samples (a)")
    other.commit()
    other.close()
    history = History(path)
    shown(history, busy(), 0)
    history.close()
    assert "it is the file of another program" in capsys.readouterr().out
    kept = sqlite3.connect(tmp_path / "history.aside-1")
    assert kept.execute("SELECT count(*) FROM samples").fetchone() == (0,)
    kept.close()


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version = 99",
        "UPDATE spans SET body = '[1]'",
        "UPDATE spans SET body = 'no JSON'",
        "UPDATE samples SET amounts = x'00'",
        "UPDATE samples SET layout = 77",
        "UPDATE layouts SET keys = '[[1]]'",
        "UPDATE evictions SET body = '{}'",
        "DROP TABLE evictions",
    ],
)
def test_what_this_version_does_not_write_is_put_aside(tmp_path: Path, statement: str) -> None:
    path, state = tmp_path / "history", busy()
    history = History(path)
    shown(history, state, 0)
    history.close()
    with sqlite3.connect(path, isolation_level=None) as changed:
        changed.execute(statement)
    changed.close()
    history = History(path)
    shown(history, state, 15)
    history.close()
    assert history.use("default", "cpu").times == [NOW + 15]
    assert (tmp_path / "history.aside-1").exists()


def test_no_more_than_three_files_are_put_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history"
    for _ in range(4):
        path.write_text("no database at all, but long enough to look like one" * 9)
        history = History(path)
        shown(history, busy(), 0)
        shown(history, busy(), 15)
        assert len(history.use("default", "cpu").times) == 2, "in memory it goes on"
        history.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "history",
        *(f"history.aside-{number}" for number in (1, 2, 3)),
    ]
    assert capsys.readouterr().out.count("3 such files are kept beside it already: remove them") == 1, (
        "said once"
    )


@pytest.mark.parametrize("where", ["missing/history", "."])
def test_a_place_where_no_file_can_be_is_said(
    tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = History(tmp_path / where)
    for second in (0, 15, 30):
        shown(history, busy(), second)
    assert len(history.use("default", "cpu").times) == 3
    assert capsys.readouterr().out.count("history is kept in memory only") == 1
    history.close()


def test_two_pages_do_not_write_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, state = tmp_path / "history", busy()
    first, second = History(path), History(path)
    for number in range(0, 60, 15):
        shown(first, state, number)
        shown(second, state, number + 5)
    assert capsys.readouterr().out.count("another process has it open") == 1
    assert second.use("default", "cpu").times == [NOW + 5, NOW + 20, NOW + 35, NOW + 50]
    first.close()
    shown(second, state, 65)
    times = second.use("default", "cpu").times
    assert times == [NOW, NOW + 5, NOW + 20, NOW + 35, NOW + 50, NOW + 65], (
        "it takes up what was before its own"
    )
    second.close()
    third = History(path)
    shown(third, state, 66)
    assert third.use("default", "cpu").times == times
    third.close()


def test_a_full_disk_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history_file, "MOST_PAGES", 30)
    path, state = tmp_path / "history", busy()
    for number in range(400):
        state.holds(
            "team-a", f"many-{number}", {"cpu": ("1", "default")}, cluster_queue="a", since=-90, finished=-10
        )
    history = History(path)
    for second in (0, 15, 30):
        shown(history, state, second)
    assert "it can't be written: database or disk is full" in capsys.readouterr().out
    assert len(history.use("default", "cpu").times) == 3
    history.close()
    assert path.stat().st_size <= 30 * 4096


@pytest.mark.long
def test_the_file_stays_as_large_as_a_day_is(tmp_path: Path) -> None:
    path, state, sizes = tmp_path / "history", busy(), list[int]()
    history = History(path)
    for hour in range(72):
        for quarter in range(4):
            state = busy()
            second = hour * 3600.0 + quarter * 900
            for number in range(20):
                name = f"job-{hour}-{quarter}-{number}"
                state.holds(
                    "team-a",
                    name,
                    {"cpu": ("1", "default")},
                    cluster_queue="a",
                    since=second - 60,
                    finished=second - 1,
                )
                state.objects["workloads"][-1]["metadata"]["uid"] = name
            shown(history, state, second)
        sizes.append(path.stat().st_size)
    history.close()
    assert max(sizes[48:]) <= 1.1 * max(sizes[24:48])
    with sqlite3.connect(path) as kept:
        assert kept.execute("SELECT count(*) FROM spans").fetchone()[0] <= 24 * 80 + 100
    kept.close()


def test_a_file_has_what_is_in_memory_when_there_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was evicted long before the oldest admission that is kept; later ones displace others."""
    monkeypatch.setattr(admissions, "MOST_SPANS", 10)
    path, state = tmp_path / "history", busy()
    history = History(path)
    for second in range(0, 300, 15):
        for number in range(4):
            state.holds(
                "team-a",
                f"short-{second}-{number}",
                {"cpu": ("1", "default")},
                cluster_queue="a",
                since=second - 9,
                finished=second - 4 + number,
            )
        shown(history, state, second)
    assert len(history.evictions(0)) == 1
    assert len(history.spans(0)) == 10 + 1, "ten that have ended, and one that runs"
    history.close()
    with sqlite3.connect(path) as kept:
        assert kept.execute("SELECT count(*) FROM spans").fetchone() == (11,)
    kept.close()
    again = History(path)
    del state.objects["workloads"][1:]  # what has ended is gone
    shown(again, state, 286)  # too close for another sample
    assert all_of(again) == all_of(history)
    again.close()


def test_asking_goes_on_while_scenes_come(tmp_path: Path) -> None:
    history, state = History(tmp_path / "history"), busy()
    shown(history, state, 0)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(100):
                use, counts = history.use("default", "cpu"), history.counts()
                assert all(len(each) == len(use.times) for each in use.used.values())
                assert len(counts.waiting) == len(counts.times)
                assert {span.name for span in history.spans(0)} >= {"runs", "done"}
        except BaseException as error:  # noqa: BLE001  # it is looked at below
            failed.append(error)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for second in range(15, 600, 15):
        shown(history, state, second)
    for thread in threads:
        thread.join()
    history.close()
    assert failed == []

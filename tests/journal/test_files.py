"""Files of a journal: begun, rotated, cut off, refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import orjson
import pytest

from admitter.engine.commands import CancelEviction, Command, Define, Release, Reserve, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.journal import calls
from admitter.journal.calls import JournalError
from admitter.journal.files import Journal, files, lines
from admitter.journal.recorder import Recorder
from admitter.journal.replay import replay
from admitter.quantities.amounts import to_amount
from tests.engine.builders import admitted, engine, flavor, pods, queue, workload

KEPT = 3


@contextmanager
def recorded(folder: Path, *, decides: bool = True) -> Iterator[Engine]:
    """An engine of one queue of 4 cores that writes to a folder."""
    journal = Journal(folder, "1.2.3", 1, KEPT)
    made = Engine(observer=Recorder(journal))
    engine(flavor("default"), queue("q", {"cpu": {"default": "4"}}), made=made)
    if decides:
        made.resume(lambda _: True)
    yield made
    journal.close()


def asks(made: Engine, number: int, cores: int = 1) -> None:
    made.apply(Submit(workload(f"w{number:04}", pods(cores, cpu="1"), created=number)))


def names(path: Path) -> list[str]:
    return [line["call"] for _, line in lines(path) if "call" in line]


def test_each_call_has_a_name_in_files() -> None:
    assert {*Engine._handlers, *get_args(calls.Call)} - {Command} == calls._NAMES.keys()


def test_a_journal_says_what_was_told_and_what_was_decided(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1)
        asks(made, 2, cores=9)
        assert admitted(made.cycle(100.0)) == ["w0001"]
    (path,) = files(tmp_path)
    assert path.name == "decisions-000001.jsonl"
    (_, header), *rest = lines(path)
    assert header == {"journal": 1, "admitter": "1.2.3"}
    assert names(path) == ["set_flavor", "define", "resume", "submit", "submit", "cycle"]
    plan = rest[-1][1]["plan"]
    cores = to_amount("cpu", "1")
    (assigned,) = plan["admissions"][0][1]["pod_sets"]
    assert plan["admissions"][0][0] == "w0001"
    assert assigned == {
        "name": "main",
        "count": 1,
        "flavors": [["cpu", "default"]],
        "usage": [["cpu", cores]],
    }
    assert plan["refusals"]["w0002"]["reason"] == "NeverFits"


def test_what_makes_no_difference_is_not_written(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1)
        made.cycle()
        (path,) = files(tmp_path)
        before = names(path)
        made.apply(Withdraw("unknown"))
        made.apply(Release("unknown"))
        made.apply(CancelEviction("unknown"))
        held = made.ledger.held("w0001")
        assert held is not None
        made.apply(Reserve("w0001", held.admission, held.workload, held.since))
        made.apply(Define())
        made.cycle()
    assert names(path) == [*before, "cycle"]


def test_full_files_are_followed_by_new_ones_and_the_oldest_go(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        number = 0
        while len(files(tmp_path)) < KEPT or files(tmp_path)[0].name == "decisions-000001.jsonl":
            for _ in range(200):
                number += 1
                asks(made, number)
            made.cycle(number)
            for uid in [each.holder for each in made.ledger.reservations("q")]:
                made.apply(Release(uid))
        made.cycle(number + 1)
    found = files(tmp_path)
    assert [path.name for path in found] == [f"decisions-{each:06}.jsonl" for each in (2, 3, 4)]
    done = [replay(path) for path in found]
    assert [each.difference for each in done] == [None] * KEPT
    assert all(each.admissions for each in done[:-1])
    assert found[0].stat().st_size > 1_000_000


def test_a_new_process_does_not_write_to_the_files_of_another_one(tmp_path: Path) -> None:
    for _ in range(2):
        with recorded(tmp_path):
            pass
    assert [path.name for path in files(tmp_path)] == ["decisions-000001.jsonl", "decisions-000002.jsonl"]


def test_a_follower_writes_nothing(tmp_path: Path) -> None:
    with recorded(tmp_path, decides=False) as made:
        asks(made, 1)
        assert files(tmp_path) == []
        made.resume(lambda _: True)
        assert admitted(made.cycle()) == ["w0001"]
    (path,) = files(tmp_path)
    assert replay(path).difference is None
    assert replay(path).admissions == 1


def test_a_folder_that_can_not_be_written_stops_no_decision(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with recorded(tmp_path / "file") as made:
        asks(made, 1)
        assert admitted(made.cycle()) == ["w0001"]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1)
        made.cycle()
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    done = replay(path)
    assert (done.cycles, done.difference) == (0, None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}\n", "is no journal of format 1"),
        (b"nonsense\n", "1: is no JSON"),
        (b'{"journal": 1}\n[]\n', "2: is no object"),
        (b'{"journal": 1}\n{"call": "explain", "with": ["a"]}\n', "2: tells of 'explain', which is no call"),
        (b'{"journal": 1}\n{"call": "release", "with": []}\n', "2: has arguments that release does not take"),
    ],
)
def test_what_is_no_journal_is_refused_by_file_and_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "decisions-000001.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=words) as caught:
        replay(path)
    assert str(path) in str(caught.value)


def test_a_decision_that_would_be_another_one_now_is_told(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1)
        made.cycle(60.0)
    (path,) = files(tmp_path)
    text = path.read_bytes()
    path.write_bytes(text.replace(b'"w0001",{"queue"', b'"w0009",{"queue"'))
    done = replay(path)
    assert done.difference is not None
    assert (done.difference.line, done.difference.time) == (text.count(b"\n"), 60.0)
    assert [*done.difference.then] == ["admissions"]
    assert orjson.dumps(done.difference.now).count(b"w0001") == 1

"""Files of a journal that begin while evictions end, places are in doubt, or queues are not defined."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from admitter.engine.commands import CancelEviction, Define, Release, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import Queue, VictimTerms
from admitter.journal.files import Journal, files
from admitter.journal.recorder import Recorder
from admitter.journal.replay import replay
from admitter.journal.state import known
from tests.engine.builders import admitted, engine, evicted
from tests.engine.preempting import DEFAULT, RECLAIM, asks, cpus, running


@contextmanager
def recorded(folder: Path, *queues: Queue) -> Iterator[tuple[Engine, Journal]]:
    """An engine with a journal; in the end each of its files is replayed."""
    journal = Journal(folder, "1.2.3", 1, 1000)
    made = Engine(observer=Recorder(journal))
    engine(DEFAULT, *queues, made=made)
    made.resume(lambda _: True)
    yield made, journal
    journal.close()
    for path in files(folder):
        assert replay(path).difference is None


def test_a_victim_of_a_place_that_was_lost_is_none_of_the_next_place(tmp_path: Path) -> None:
    queues = cpus("one", "6", RECLAIM), cpus("lends", "0"), cpus("other", "2")
    with recorded(tmp_path, *queues) as (made, journal):
        for uid in ("v1", "v2"):
            running(made, uid, 3, "lends")
        asks(made, "p", 6, "one")
        assert evicted(made.cycle(60)) == {"v1": "p", "v2": "p"}
        made.apply(CancelEviction("v2"))
        journal._left = 0
        assert evicted(made.cycle(61)) == {"v2": "p"}
        again = Engine()
        for command in known(made._state):
            again.apply(command)
        for each in (made, again):
            assert each.ledger.displacements.victims("p") == ["v2"]
            assert [each.ledger.preemptor(uid) for uid in ("v1", "v2")] == ["p", "p"]
        asks(made, "small", 2, "other")
        assert list(made.cycle(62).planned) == ["small"]
        made.apply(Release("v1"))
        made.cycle(63)
    assert len(files(tmp_path)) == 2


def test_no_file_begins_before_a_cancelled_eviction_has_been_thought_through(tmp_path: Path) -> None:
    lends = replace(cpus("lends", "0"), victim_terms=VictimTerms(grace=300))
    with recorded(tmp_path, cpus("one", "3", RECLAIM), lends) as (made, journal):
        running(made, "ends", 1, "lends", priority=5)
        running(made, "told", 2, "lends", since=1)
        asks(made, "p", 1, "one")
        assert evicted(made.cycle(60)) == {"told": "p"}
        made.apply(Release("ends"))
        journal._left = 0
        assert admitted(made.cycle(61)) == ["p"]
        assert not made.ledger.evicting("told")
        assert len(files(tmp_path)) == 1
        made.apply(Submit(replace(_held(made, "p"), uid="next")))
        made.cycle(62)
    assert len(files(tmp_path)) == 2


def test_what_is_held_in_a_queue_without_a_definition_is_told(tmp_path: Path) -> None:
    with recorded(tmp_path, cpus("one", "4", parent="")) as (made, journal):
        running(made, "known", 1, "one")
        running(made, "early", 3, "later")
        journal._left = 0
        made.cycle(60)
        made.apply(Define((cpus("later", "4", parent=""),)))
        for uid in ("fits", "waits"):
            asks(made, uid, 1, "later")
        assert admitted(made.cycle(61)) == ["fits"]
    assert len(files(tmp_path)) == 2


def _held(made: Engine, uid: str) -> Workload:
    held = made.ledger.held(uid)
    assert held is not None
    assert held.workload is not None
    return held.workload

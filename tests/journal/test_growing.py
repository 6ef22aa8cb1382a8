"""A journal has what workloads run beyond their admission, and a replay resizes them as they were."""

from pathlib import Path

from admitter.engine.commands import SetExtra
from admitter.engine.cycle import Engine
from admitter.engine.quota.extras import Extra
from admitter.journal.files import files, lines
from admitter.journal.replay import replay
from admitter.journal.state import known
from tests.journal.test_files import asks, recorded


def test_growth_and_shrinking_are_written_and_replayed(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1, cores=2)
        made.cycle(1)
        made.apply(SetExtra("w0001", Extra(((("default", "cpu"), 1000),), 2, 9, since=1.0)))
        assert [each.extra.granted for each in made.cycle(31).resized] == [2]
        asks(made, 2, cores=1)
        assert [each.extra.kept for each in made.cycle(50).resized] == [1]
        again = Engine()
        for command in known(made._state):
            again.apply(command)
        assert list(again.ledger.extras) == list(made.ledger.extras)
        plan = again.cycle(50)
        assert (plan.resized, plan.admissions, plan.planned) == ([], [], {})
    (path,) = files(tmp_path)
    written = [line["plan"]["resized"] for _, line in lines(path) if "resized" in line.get("plan", {})]
    assert written == [[["w0001", 2, 2]], [["w0001", 2, 1]]]
    assert replay(path).difference is None


def test_so_it_is_of_pod_sets_that_grow_by_themselves(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        asks(made, 1, cores=1)
        made.cycle(1)
        for part, pods in (("small", 1), ("big", 2)):
            usage = ((("default", "cpu"), 1000 * pods),)
            made.apply(SetExtra("w0001", Extra(usage, 1, 9, since=1.0), part))
        assert [(each.part, each.extra.granted) for each in made.cycle(31).resized] == [
            ("small", 1),
            ("big", 1),
        ]
        again = Engine()
        for command in known(made._state):
            again.apply(command)
        assert list(again.ledger.extras) == list(made.ledger.extras)
    (path,) = files(tmp_path)
    (written,) = [line["plan"]["resized"] for _, line in lines(path) if "resized" in line.get("plan", {})]
    assert written == [["w0001", 1, 1, "small"], ["w0001", 1, 1, "big"]]
    assert replay(path).difference is None

"""Places that are given back unused stand in the journal, in each of its files."""

from pathlib import Path

from admitter.engine.commands import Release, ReturnReservation, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.journal.files import Journal, files
from admitter.journal.recorder import Recorder
from admitter.journal.replay import replay
from tests.engine.builders import engine, evicted, pods, workload
from tests.engine.preempting import DEFAULT, RECLAIM, cpus, running


def test_a_replay_evicts_when_the_engine_did(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "1.2.3", 1, 1000)
    made = Engine(observer=Recorder(journal))
    engine(DEFAULT, cpus("owner", "4", RECLAIM), cpus("lends", "0"), made=made)
    made.resume(lambda _: True)
    running(made, "b0", 2, "lends")
    running(made, "b1", 2, "lends", since=1)
    evictions = {}
    for now in range(40):
        uid = f"w{now}"
        made.apply(Submit(workload(uid, pods(cpu="2"), queue="owner", created=now)))
        if found := evicted(made.cycle(now)):
            evictions[now] = found
        made.apply(ReturnReservation(uid))
        made.apply(Withdraw(uid))
        made.apply(Release(uid))
        made.cycle(now)
        for victim in ("b0", "b1"):
            if made.ledger.held(victim) is None or made.ledger.evicting(victim):
                made.apply(Release(victim))
                running(made, victim, 2, "lends", since=now)
        journal._left = 0  # a new file begins after the next cycle
    journal.close()
    assert sorted(evictions) == [0, 10, 30]
    written = list(files(tmp_path))
    assert len(written) > 10
    for path in written:
        assert replay(path).difference is None

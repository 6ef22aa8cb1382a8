"""Records of evictions and what is in flight stand in the journal, in each of its files."""

from dataclasses import replace
from pathlib import Path

from admitter.engine.commands import Release, SetEvictions, StartEviction, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import EvictionLimit, VictimTerms
from admitter.journal.files import Journal, files
from admitter.journal.recorder import Recorder
from admitter.journal.replay import replay
from tests.engine.builders import engine, evicted, pods, workload
from tests.engine.preempting import DEFAULT, RECLAIM, cpus, running


def test_a_replay_evicts_when_the_engine_did(tmp_path: Path) -> None:
    """Of two evictions in ten seconds; a victim goes after one second, and its record is written before."""
    journal = Journal(tmp_path, "1.2.3", 1, 1000)
    made = Engine(observer=Recorder(journal))
    limit, terms = EvictionLimit(2, 10), VictimTerms(grace=1)
    lends = replace(cpus("lends", "0"), max_evictions=limit, victim_terms=terms)
    engine(DEFAULT, cpus("owner", "40", RECLAIM), lends, made=made)
    made.resume(lambda _: True)
    for number in range(40):
        running(made, f"b{number:02}", 1, "lends", since=number)
    evictions, leaving = list[int](), dict[str, int]()
    record: tuple[tuple[float, str], ...] = ()
    for now in range(60):
        made.apply(Submit(workload(f"w{now:02}", pods(cpu="1"), queue="owner", created=now)))
        going = [uid for uid, at in leaving.items() if at == now]
        for uid in going:
            record = (*record, (float(now), uid))[-100:]
            made.apply(SetEvictions("lends", record))
        found = evicted(made.cycle(now))  # between the record and what follows
        for uid in going:
            made.apply(StartEviction(uid))
        found |= evicted(made.cycle(now))
        leaving |= dict.fromkeys(found, now + 1)
        evictions += [now] * len(found)
        for uid in [uid for uid, at in leaving.items() if at + 2 == now]:
            made.apply(Release(uid))
        journal._left = 0  # a new file begins after the next cycle
    journal.close()
    assert evictions == [0, 1, 11, 12, 22, 23, 33, 34, 44, 45, 55, 56]
    written = list(files(tmp_path))
    assert len(written) > 30
    for path in written:
        assert replay(path).difference is None

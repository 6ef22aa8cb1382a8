"""What is always true of a timeline of elastic quotas with grace periods and minimum runtimes."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.policy.snapshot import Facts, Snapshot
from admitter.quotas.elastic import POOL
from admitter.simulate.items import Event
from admitter.simulate.manifests import read
from admitter.simulate.simulator import Simulator
from tests.cluster.objects import Json
from tests.scale import examples
from tests.simulate.elastic import asks, priority_class, quota
from tests.simulate.test_simulate import annotate

terms = st.fixed_dictionaries(
    {"gracePeriod": st.sampled_from([30, 20, 60, 0]), "minRuntime": st.sampled_from([0, 0, 20, 60])}
).map(lambda spans: {name: f"{seconds}s" for name, seconds in spans.items()})


@st.composite
def quotas(draw: st.DrawFn) -> list[Json]:
    """Two or three quotas; one of them may change on the way."""
    made = []
    for name in "abc"[: draw(st.integers(2, 3))]:
        least = draw(st.integers(0, 6))
        most = {"cpu": least + draw(st.integers(0, 6))} if draw(st.integers(0, 3)) == 0 else None
        made.append(quota(name, {"cpu": least}, most, preemption=draw(terms)))
    if draw(st.booleans()):
        changed = quota("a", {"cpu": draw(st.integers(0, 6))}, preemption=draw(terms))
        made.append(annotate(changed, "simulated-at", f"{draw(st.integers(1, 200))}s"))
    return made


@st.composite
def jobs(draw: st.DrawFn, number: int) -> Json:
    """A Job of one of the quotas, which may be deleted on the way."""
    second = draw(st.sampled_from([0, 0, 10, 30, 31, 60, 90, 150]))
    lasts = draw(st.sampled_from([None, None, "15s", "45s", "100s"]))
    made = asks(
        draw(st.sampled_from("abc")),
        f"j{number}",
        {"cpu": draw(st.integers(1, 3))},
        second,
        lasts=lasts,
        pods=draw(st.integers(1, 2)),
        priority=draw(st.sampled_from(["", "", "high"])),
    )
    if draw(st.integers(0, 3)) == 0:
        annotate(made, "simulated-until", f"{second + draw(st.integers(1, 120))}s")
    return made


@st.composite
def timelines(draw: st.DrawFn) -> list[Json]:
    count = draw(st.integers(6, 14))
    return [priority_class("high", 9), *draw(quotas()), *(draw(jobs(n)) for n in range(count))]


class Follower:
    """Follows a simulation event by event."""

    def __init__(self, manifests: list[Json]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "manifests.json"
            path.write_text(json.dumps({"kind": "List", "items": manifests}))
            timeline = read([str(path)])
            self.simulator = Simulator(timeline, Snapshot(Facts(timeline.start)))
        self.admitted: dict[str, float] = {}
        self.told: dict[str, float] = {}
        self.events: list[Event] = []
        self.changes = any("simulated-at" in json.dumps(manifest) for manifest in manifests)

    def run(self) -> None:
        for event in self.simulator.run(until=self.simulator.now + 10_000):
            self.events.append(event)
            assert len(self.events) < 400, "it comes to no rest"
            self.follow(event)
            self.keeps_the_sum()

    def follow(self, event: Event) -> None:
        name = "/".join(event.key)
        if event.kind == "Admitted":
            assert name not in self.admitted, "it runs twice"
            self.admitted[name] = event.time
            return
        assert name in self.admitted, f"{event.kind} of one that does not run"
        granted = self.simulator.engine.tree.victim_terms(event.queue)
        if event.kind == "EvictionPending":
            assert name not in self.told, "it is told twice"
            self.has_run_for(name, event.time, granted.runtime)
            self.told[name] = event.time
        elif event.kind == "Spared":
            assert self.told.pop(name, None) is not None
        else:
            if event.kind == "Preempted":
                told = self.told.get(name)
                if told is None:
                    self.has_run_for(name, event.time, granted.runtime)
                    assert self.changes or not granted.grace, "it was not told"
                elif not self.changes:
                    assert event.time == told + granted.grace
            self.told.pop(name, None)
            del self.admitted[name]

    def has_run_for(self, name: str, time: float, runtime: float) -> None:
        assert time - self.admitted[name] >= runtime, "it has not run for long enough"

    def keeps_the_sum(self) -> None:
        """All quotas together never use more than there is, unless it was more before it was cut."""
        if not self.changes:
            engine = self.simulator.engine
            names = [name for name, queue in engine.tree.queues.items() if queue.pool]
            total = sum(engine.ledger.used(name).get((POOL, "cpu"), 0) for name in names)
            assert total <= sum(engine.tree.minimum(name, (POOL, "cpu")) for name in names)

    def at_rest(self) -> None:
        """No eviction is pending any more, none is kept, and the simulator shows what the engine has."""
        engine = self.simulator.engine
        assert not engine.ledger.pending_reservations
        assert not any(self.runs(name) for name in self.told)
        running = {uid for uid, item in self.simulator.items.items() if item.phase.runs}
        held = {r.holder for name in engine.tree.queues for r in engine.ledger.reservations(name)}
        assert running == held
        assert not any(engine.ledger.evicting(uid) for uid in running)

    def runs(self, name: str) -> bool:
        items = self.simulator.items.values()
        return any("/".join(item.view.key) == name and item.phase.runs for item in items)

    def summary(self) -> list[Any]:
        return [(event.time, event.kind, event.key, event.preemptor) for event in self.events]


@settings(max_examples=examples(18))
@given(timelines())
def test_every_workload_gets_what_was_granted_and_it_comes_to_rest(manifests: list[Json]) -> None:
    follower = Follower(manifests)
    follower.run()
    follower.at_rest()
    again = Follower(manifests)
    again.run()
    assert again.summary() == follower.summary()

"""A simulation that is told of changes while it runs, and tells each plan before it is carried out."""

from admitter.engine.tree_cycle import Plan
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator
from tests.cluster.objects import Json, cluster_queue, job, local_queue, resource_flavor

START = 1_767_225_600.0


def simulator() -> Simulator:
    definitions = [
        resource_flavor("default", {}),
        cluster_queue("total", {"cpu": {"default": "4"}}),
        local_queue("team", "total"),
    ]
    changes = [Change(START, serial, each) for serial, each in enumerate(definitions)]
    made = Simulator(Timeline(START, changes, []), Snapshot(Facts(START)))
    assert not list(made.run(until=START))
    return made


def asks(name: str, lasts: int) -> Json:
    made = job("team", name, requests={"cpu": "3"}, seconds=None)
    made["metadata"]["annotations"] = {"admitter.dev/simulated-runtime": f"{lasts}s"}
    return made


def test_what_is_added_happens_at_its_time_and_in_its_order() -> None:
    going = simulator()
    going.add([Change(START + 20, 2, asks("second", 50)), Change(START + 10, 1, asks("first", 30))])
    assert going.to_come == 2
    assert [(e.time - START, e.kind) for e in going.run(until=START + 30)] == [(10.0, "Admitted")]
    assert going.now == START + 30
    going.add([Change(START + 31, 3, asks("third", 5))])
    found = [(e.time - START, e.kind, e.key[1].split("-")[1]) for e in going.run()]
    assert found == [
        (40.0, "Finished", "first"),
        (40.0, "Admitted", "second"),
        (90.0, "Finished", "second"),
        (90.0, "Admitted", "third"),
        (95.0, "Finished", "third"),
    ]


def test_each_plan_is_told_before_its_events() -> None:
    going, told = simulator(), list[object]()

    def decided(plan: Plan, now: float) -> None:
        told.extend((now - START, workload.uid) for workload, _ in plan.admissions)

    going.add([Change(START + 10, 1, asks("first", 30)), Change(START + 20, 2, asks("second", 5))])
    for event in going.run(decided=decided):
        if event.kind == "Admitted":
            told.append((event.time - START, event.key[1].split("-")[1]))
    (first, second) = (item.view.uid for item in going.items.values())
    assert told == [(10.0, first), (10.0, "first"), (40.0, second), (40.0, "second")]

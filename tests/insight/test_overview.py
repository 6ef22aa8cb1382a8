"""The quota tree with what is in use of it."""

from admitter.insight.overview import OverviewLine, overview
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.states import State


def lines(state: State) -> dict[str, OverviewLine]:
    return {line.title: line for line in overview(Snapshot(facts(state.snapshot())))}


def cores(line: OverviewLine) -> tuple[int, int, int | None, int, int]:
    """Used, own, most, borrowed and lent, in thousandths of a core."""
    (use,) = line.uses
    return use.used, use.minimum, use.maximum, use.borrowed, use.lent


def department() -> State:
    """A Cohort of three queues, 10, 6 and 4 cores; the first keeps 2 of its own, the last may use 9."""
    state = State()
    state.put("cohorts", "research", spec={})
    state.queue("a", {"cpu": {"default": {"min": "10", "lendingLimit": "8"}}}, "research")
    state.queue("b", {"cpu": {"default": {"min": "6"}}}, "research")
    state.queue("c", {"cpu": {"default": {"min": "4", "max": "9"}}}, "research")
    for name in "abc":
        state.namespace(f"team-{name}", name)
    return state


def test_use_is_summed_up_the_tree() -> None:
    state = department()
    state.holds("team-a", "one", {"cpu": ("3", "default")}, cluster_queue="a", since=-600)
    state.holds("team-b", "two", {"cpu": ("2", "default")}, cluster_queue="b", since=-10)
    found = lines(state)
    assert list(found) == ["Cohort research", "ClusterQueue a", "ClusterQueue b", "ClusterQueue c"]
    assert [line.depth for line in found.values()] == [0, 1, 1, 1]
    assert cores(found["Cohort research"]) == (5_000, 20_000, None, 0, 0)
    assert cores(found["ClusterQueue a"]) == (3_000, 10_000, None, 0, 0)
    assert cores(found["ClusterQueue c"]) == (0, 4_000, 9_000, 0, 0)
    assert [(line.admitted, line.recent) for line in found.values()] == [(2, 1), (1, 0), (1, 1), (0, 0)]


def test_what_one_borrows_others_lend_in_proportion_to_what_they_leave() -> None:
    state = department()
    state.holds("team-b", "two", {"cpu": ("2", "default")}, cluster_queue="b")
    state.holds("team-c", "three", {"cpu": ("10", "default")}, cluster_queue="c")
    found = lines(state)
    # c borrows 6; a leaves 8 of what it may lend, b 4: two thirds and a third.
    assert cores(found["ClusterQueue c"]) == (10_000, 4_000, 9_000, 6_000, 0)
    assert cores(found["ClusterQueue a"])[4] == 4_000
    assert cores(found["ClusterQueue b"])[4] == 2_000


def test_a_pending_workload_is_counted_whether_it_may_compete_or_not() -> None:
    state = department()
    state.waits("team-a", "large", {"cpu": "99"})
    state.waits("team-a", "stray", {"cpu": "1"}, queue="nowhere")
    state.queue("stopped", {"cpu": {"default": {"min": "1"}}}, stopPolicy="Hold")
    state.namespace("team-s", "stopped")
    state.waits("team-s", "held", {"cpu": "1"})
    found = lines(state)
    assert {title: line.waiting for title, line in found.items()} == {
        "Cohort research": 1,
        "ClusterQueue a": 1,
        "ClusterQueue b": 0,
        "ClusterQueue c": 0,
        "ClusterQueue stopped": 1,
    }


def test_a_queue_that_does_not_work_says_why() -> None:
    state = department()
    state.queue("d", {"cpu": {"missing": {"min": "1"}}}, "research")
    found = lines(state)
    assert found["ClusterQueue d"].problem == (
        "spec.resources[0].flavors names missing: there is no such ResourceFlavor"
    )
    assert found["ClusterQueue a"].problem == ""

"""Jobs that state when their pods are ready, and queues that say how long these may take."""

from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.elastic import at
from tests.simulate.test_hierarchy import asks
from tests.simulate.test_simulate import annotate, simulate


def queue(flavors: dict[str, str], **spec: Any) -> list[Json]:
    """A queue with CPUs of some flavors, where pods have a minute to be ready."""
    rules = {"readyTimeout": "1m", "backoff": {"base": "1m", "factor": 2, "max": "10m"}}
    lifecycle = {**rules, **spec.pop("lifecycle", {})}
    made = cluster_queue("team", {"cpu": flavors}, lifecycle=lifecycle, **spec)
    return [*(resource_flavor(name, {}) for name in flavors), made, local_queue("team", "team")]


def slow(name: str, after: str, second: int = 0, runtime: str = "") -> Json:
    made = annotate(asks("team", name, 1, second), "simulated-ready-after", after)
    return annotate(made, "simulated-runtime", runtime) if runtime else made


def story(result: Json, name: str) -> list[tuple[str, str, str]]:
    return [
        (event["time"], event["type"], event["reason"])
        for event in result["events"]
        if event["name"].startswith(f"job-{name}-")
    ]


def test_a_job_that_is_late_lets_the_next_one_run_and_is_given_up(tmp_path: Path) -> None:
    rules = {"giveUp": {"attempts": 2}}
    made = queue({"any": "1"}, lifecycle=rules, queueingStrategy="StrictFIFO")
    after = annotate(asks("team", "next", 1, 1), "simulated-runtime", "10s")
    result = simulate(tmp_path, *made, slow("broken", "never"), after)
    assert story(result, "next") == [
        (at(60), "Admitted", "Admitted"),
        (at(70), "Finished", "JobSucceeded"),
    ]
    broken = story(result, "broken")
    assert [(kind, reason) for _, kind, reason in broken] == [
        ("Admitted", "Admitted"),
        ("Evicted", "PodsNotReady"),
    ] * 2
    first, ended, second, last = (datetime.fromisoformat(time).timestamp() for time, _, _ in broken)
    assert ended - first == last - second == 60
    assert 54 <= second - ended <= 60, "a minute, less up to a tenth"
    row = next(row for row in result["workloads"] if row["job"] == "broken")
    assert (row["state"], row["reason"]) == ("Pending", "GaveUp")
    assert "giveUp.attempts: 2" in row["message"]


def test_what_is_ready_in_time_is_not_evicted(tmp_path: Path) -> None:
    result = simulate(tmp_path, *queue({"any": "1"}), slow("slow", "59s", runtime="5m"))
    assert story(result, "slow") == [
        (at(0), "Admitted", "Admitted"),
        (at(300), "Finished", "JobSucceeded"),
    ]


def test_other_flavors_come_first_at_the_next_try(tmp_path: Path) -> None:
    rules = {"giveUp": {"attempts": 1}}
    made = queue({"first": "1", "second": "1"})
    result = simulate(tmp_path, *made, slow("moves", "never"), options=["--until", "150s"])
    row = next(row for row in result["workloads"] if row["job"] == "moves")
    assert row["podSets"][0]["flavors"] == {"cpu": "second"}
    given_up = simulate(tmp_path, *queue({"first": "1"}, lifecycle=rules), slow("moves", "never"))
    assert len(story(given_up, "moves")) == 2


def test_a_job_that_is_never_ready_and_never_given_up_does_not_keep_a_simulation_going(
    tmp_path: Path,
) -> None:
    result = simulate(tmp_path, *queue({"any": "1"}), slow("broken", "never"))
    assert len(story(result, "broken")) == 2 * 20
    row = next(row for row in result["workloads"] if row["job"] == "broken")
    assert (row["state"], row["reason"]) == ("Pending", "PodsNotReady")


def test_an_unreadable_time_is_named(tmp_path: Path) -> None:
    result = simulate(tmp_path, *queue({"any": "1"}), slow("odd", "soon"), exit_code=1)
    (error,) = result["errors"]
    assert "metadata.annotations[admitter.dev/simulated-ready-after]: 'soon'" in error["message"]

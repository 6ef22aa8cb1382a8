"""Maximum run times in a simulation: the same sums and ends as in a cluster."""

from pathlib import Path

import pytest

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_simulate import annotate, asks, simulate

Told = list[tuple[str, str, str, str]]


def queue(**lifecycle: str) -> list[Json]:
    preemption = {"withinClusterQueue": "LowerPriority"}
    return [
        resource_flavor("default", {}),
        cluster_queue("total", {"cpu": {"default": "4"}}, preemption=preemption, lifecycle=lifecycle),
        local_queue("team", "total"),
    ]


def at(name: str, seconds: int, cpus: int = 4, *, runs: str = "") -> Json:
    """A Job that comes after so many seconds; without a runtime it never ends by itself."""
    made = annotate(asks(name, cpus), "simulated-at", f"{seconds}s")
    return annotate(made, "simulated-runtime", runs) if runs else made


def told(result: Json) -> Told:
    """What happened: time, Job, type and reason."""
    names = {each["name"]: each["job"] for each in result["workloads"]}
    return [
        (each["time"][11:19], names[each["name"]], each["type"], each["reason"]) for each in result["events"]
    ]


def test_a_job_that_never_ends_ends_at_the_maximum_and_the_next_starts(tmp_path: Path) -> None:
    result = simulate(tmp_path, *queue(maxRuntime="1h"), at("endless", 0), at("next", 60, runs="10m"))
    assert told(result) == [
        ("00:00:00", "endless", "Admitted", "Admitted"),
        ("01:00:00", "endless", "Evicted", "MaxRuntimeExceeded"),
        ("01:00:00", "endless", "Finished", "MaxRuntimeExceeded"),
        ("01:00:00", "next", "Admitted", "Admitted"),
        ("01:10:00", "next", "Finished", "JobSucceeded"),
    ]
    assert {each["state"] for each in result["workloads"]} == {"Finished"}


def test_requeued_jobs_take_turns(tmp_path: Path) -> None:
    rules = queue(maxRuntime="1h", onMaxRuntime="Requeue")
    result = simulate(tmp_path, *rules, at("a", 0), at("b", 60), options=["--until", "150m"])
    assert [each[:3] for each in told(result)] == [
        ("00:00:00", "a", "Admitted"),
        ("01:00:00", "a", "Evicted"),
        ("01:00:00", "b", "Admitted"),
        ("02:00:00", "b", "Evicted"),
        ("02:00:00", "a", "Admitted"),
    ]


def test_the_time_adds_up_over_a_preemption(tmp_path: Path) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    high = at("high", 1200, runs="30m")
    high["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    result = simulate(tmp_path, *queue(maxRuntime="1h"), {**urgent, "value": 5}, at("low", 0), high)
    assert told(result) == [
        ("00:00:00", "low", "Admitted", "Admitted"),
        ("00:20:00", "low", "Preempted", "Preempted"),
        ("00:20:00", "high", "Admitted", "Admitted"),
        ("00:50:00", "high", "Finished", "JobSucceeded"),
        ("00:50:00", "low", "Admitted", "Admitted"),
        ("01:30:00", "low", "Evicted", "MaxRuntimeExceeded"),
        ("01:30:00", "low", "Finished", "MaxRuntimeExceeded"),
    ]


@pytest.mark.parametrize(("asked", "ends"), [("30m", "00:30:00"), ("5h", "01:00:00")])
def test_a_job_asks_for_its_own_within_the_cap(tmp_path: Path, asked: str, ends: str) -> None:
    result = simulate(tmp_path, *queue(maxRuntime="1h"), annotate(at("asks", 0), "max-runtime", asked))
    assert told(result)[-1] == (ends, "asks", "Finished", "MaxRuntimeExceeded")


def test_an_annotation_that_can_not_be_read_keeps_it_waiting(tmp_path: Path) -> None:
    result = simulate(tmp_path, *queue(), annotate(at("asks", 0), "max-runtime", "soon"))
    (row,) = result["workloads"]
    assert (row["state"], row["reason"]) == ("Pending", "InvalidAnnotation")


def test_a_changed_cap_counts_from_the_next_admission_on(tmp_path: Path) -> None:
    """`runs` keeps its deadline. What comes later has the new maximum."""
    longer = annotate(queue(maxRuntime="2h")[1], "simulated-at", "10m")
    result = simulate(tmp_path, *queue(maxRuntime="1h"), longer, at("runs", 0), at("later", 60))
    ends = [(time, job) for time, job, kind, _ in told(result) if kind == "Finished"]
    assert ends == [("01:00:00", "runs"), ("03:00:00", "later")]


def test_what_waits_and_has_used_up_a_shorter_cap_waits_until_that_is_longer(tmp_path: Path) -> None:
    """`low` is preempted after 20 min; then the cap is 10 min; from 02:00 on it is 1 h again."""
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    high = at("high", 1200, runs="30m")
    high["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    shorter = annotate(queue(maxRuntime="10m")[1], "simulated-at", "25m")
    longer = annotate(queue(maxRuntime="1h")[1], "simulated-at", "2h")
    objects = [*queue(maxRuntime="1h"), {**urgent, "value": 5}, at("low", 0), high, shorter]
    result = simulate(tmp_path, *objects, options=["--until", "1h"])
    (row,) = [each for each in result["workloads"] if each["job"] == "low"]
    assert (row["state"], row["reason"]) == ("Pending", "MaxRuntimeExceeded")
    assert row["message"] == (
        "it has held quota for 20m, and may for no longer: maxRuntime 10m of ClusterQueue total"
    )
    result = simulate(tmp_path, *objects, longer)
    assert told(result)[-3:] == [
        ("02:00:00", "low", "Admitted", "Admitted"),
        ("02:40:00", "low", "Evicted", "MaxRuntimeExceeded"),
        ("02:40:00", "low", "Finished", "MaxRuntimeExceeded"),
    ]


def test_cohorts_say_what_queues_below_do_not_say(tmp_path: Path) -> None:
    """The cap is that of the root, since the Cohort between sets the other field only."""
    kind = {"apiVersion": "admitter.dev/v1alpha1", "kind": "Cohort"}
    root = {**kind, "metadata": {"name": "root"}, "spec": {"lifecycle": {"maxRuntime": "1h"}}}
    between: Json = {"parent": "root", "lifecycle": {"onMaxRuntime": "Requeue"}}
    middle = {**kind, "metadata": {"name": "middle"}, "spec": between}
    flavor, below, local = queue()
    below["spec"]["cohort"] = "middle"
    until = ["--until", "61m"]
    result = simulate(tmp_path, root, middle, flavor, below, local, at("a", 0), options=until)
    assert [(time, kind, reason) for time, _, kind, reason in told(result)] == [
        ("00:00:00", "Admitted", "Admitted"),
        ("01:00:00", "Evicted", "MaxRuntimeExceeded"),
        ("01:00:00", "Admitted", "Admitted"),
    ]

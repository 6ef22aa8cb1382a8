"""Elastic quotas and Jobs that change at a bad time, or are none, with `admitter simulate`."""

from pathlib import Path

from tests.cluster.objects import ADMITTER, Json, elastic_quota, local_queue
from tests.simulate.elastic import GPU, GPU_MEMORY, asks, at, capacities, created, events, quota, rows
from tests.simulate.test_simulate import annotate, simulate, states

ONE = {"cpu": 1}


def test_a_job_that_can_not_be_counted_any_more_does_not_get_in_as_what_it_was(tmp_path: Path) -> None:
    wrong = annotate(asks("a", "waits", {GPU: 1, GPU_MEMORY: 32}, 5), "simulated-at", "20s")
    result = simulate(
        tmp_path,
        quota("a", {GPU_MEMORY: 32}),
        asks("a", "full", {GPU: 1}, lasts="1m"),
        asks("a", "waits", {GPU: 1}, 5),
        wrong,
    )
    assert states(result) == {"full": "Finished", "waits": "Pending"}
    assert rows(result)["waits"]["reason"] == "InvalidRequests"


def admitted_workload(requests: Json, usage: Json) -> Json:
    admission = {
        "clusterQueue": "eq_a_quota",
        "pool": "elastic_quota",
        "podSets": [
            {"name": "main", "count": 1, "flavors": dict.fromkeys(usage, "any_node"), "usage": usage}
        ],
    }
    return {
        "apiVersion": ADMITTER,
        "kind": "Workload",
        "metadata": {"name": "runs", "namespace": "a", "creationTimestamp": at(0)},
        "spec": {
            "queueName": "elastic-quota",
            "podSets": [{"name": "main", "count": 1, "requests": requests}],
        },
        "status": {"admission": admission},
    }


def test_one_that_runs_counts_though_its_spec_can_not_be_counted(tmp_path: Path) -> None:
    """As in a dump of a cluster with a Workload that was changed by hand after its admission."""
    runs = admitted_workload({GPU_MEMORY: "10", GPU: "1"}, {GPU_MEMORY: "10"})
    result = simulate(tmp_path, quota("a", {GPU_MEMORY: 10}), runs, asks("a", "more", {GPU_MEMORY: 1}))
    assert states(result) == {"runs": "Admitted", "more": "Pending"}


def test_what_runs_on_when_its_quota_is_gone_is_over_quota(tmp_path: Path) -> None:
    gone = annotate(quota("a", {"cpu": 2}), "simulated-until", "1m")
    result = simulate(tmp_path, gone, quota("b", {"cpu": 2}), asks("a", "stays", {"cpu": 2}))
    assert capacities(result) == {"stays": "over-quota"}, "as its label says on a cluster"


def test_a_quota_that_begins_to_manage_all_does_so_from_then_on(tmp_path: Path) -> None:
    """As on a cluster: Jobs that ran before are left alone."""
    begins = annotate(quota("a", {"cpu": 9}, manageAllJobs=True), "simulated-at", "1m")
    result = simulate(
        tmp_path,
        quota("a", {"cpu": 9}),
        begins,
        asks("a", "before", ONE, 20, queue=None),
        asks("a", "after", ONE, 70, queue=None),
    )
    assert events(result) == [(70, "Admitted", "after")]


def test_a_victim_of_two_preemptors_is_not_told_anew_when_the_first_one_goes(tmp_path: Path) -> None:
    """Its place is still needed: by one of another namespace, which was planned into the same place."""
    both = quota("a", {"cpu": 4}) | {"kind": "CompositeElasticQuota"}
    both["spec"]["namespaces"] = ["a", "c"]
    result = simulate(
        tmp_path,
        both,
        quota("b", {"cpu": 0}, preemption={"gracePeriod": "30s"}),
        asks("b", "guest", {"cpu": 4}),
        annotate(asks("a", "first", {"cpu": 2}, 10), "simulated-until", "25s"),
        asks("c", "second", {"cpu": 2}, 20),
    )
    assert events(result)[1:] == [
        (10, "EvictionPending", "guest"),
        (40, "Preempted", "guest"),
        (40, "Admitted", "second"),
    ]


def test_messages_name_a_quota_with_a_long_name_as_its_users_know_it(tmp_path: Path) -> None:
    name = "a-quota-with-a-name-that-says-what-it-is-for-and-for-whom"
    long = created(elastic_quota("team-of-the-second-floor", name, min={"cpu": 1}), 0)
    waits = asks("team-of-the-second-floor", "waits", {"cpu": 2})
    result = simulate(tmp_path, long, waits)
    assert f"ElasticQuota team-of-the-second-floor/{name} " in rows(result)["waits"]["message"]


def test_a_local_queue_that_gives_way_to_the_quota_does_not_drain_it(tmp_path: Path) -> None:
    drained = local_queue("a", "total", name="elastic-quota", stopPolicy="HoldAndDrain")
    edit = annotate(quota("b", {"cpu": 2}), "simulated-at", "1m")
    result = simulate(tmp_path, drained, quota("a", {"cpu": 1}), edit, asks("a", "one", ONE))
    assert events(result) == [(0, "Admitted", "one")]

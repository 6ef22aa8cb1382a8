"""A queued Job's way: held, admitted to a flavor, run on that flavor's nodes, finished."""

import pytest

from tests.cluster.objects import TOLERATES_SPOT, job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def test_all_pods_of_a_job_admitted_to_spot_run_on_spot_nodes(team: Team) -> None:
    team.offers({"cpu": {"spot": "4", "on-demand": "4"}, "memory": {"spot": "8Gi", "on-demand": "8Gi"}})
    team.apply(job(team.namespace, "wide", pods=4, requests={"cpu": "1", "memory": "2Gi"}))
    eventually(lambda: team.states() == {"Finished": 1}, what="the Job to finish")
    admission = team.workload("wide")["status"]["admission"]
    assert admission["clusterQueue"] == team.cluster_queue
    assert admission["podSets"] == [
        {
            "name": "main",
            "count": 4,
            "flavors": {"cpu": team.flavor("spot"), "memory": team.flavor("spot")},
            "usage": {"cpu": "4", "memory": "8Gi"},
        }
    ]
    assert team.node_types("wide") == ["spot"] * 4


def test_a_job_that_does_not_tolerate_spot_runs_on_demand(team: Team) -> None:
    team.offers({"cpu": {"spot": "4", "on-demand": "4"}})
    team.apply(job(team.namespace, "careful", pods=2, pod={"tolerations": []}))
    eventually(lambda: team.states() == {"Finished": 1}, what="the Job to finish")
    assert team.node_types("careful") == ["on-demand"] * 2


def test_a_flavor_brings_its_toleration_to_the_pods(team: Team) -> None:
    team.offers({"cpu": {"spot": "4"}}, tolerations=TOLERATES_SPOT)
    team.apply(job(team.namespace, "helped", pod={"tolerations": []}))
    eventually(lambda: team.states() == {"Finished": 1}, what="the Job to finish")
    assert team.node_types("helped") == ["spot"]


def test_a_job_created_running_has_no_pod_before_it_is_admitted(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "first", seconds=None))
    eventually(lambda: team.states() == {"Admitted": 1}, what="the first Job to be admitted")
    team.apply(job(team.namespace, "eager", suspend=False))
    eventually(lambda: team.reason("eager") == "InsufficientQuota", what="the second Job to wait")
    assert team.read("job", "eager")["spec"]["suspend"] is True
    assert team.pods("eager") == []
    team.kubectl("delete", "job", "first")
    eventually(lambda: team.state("eager") == "Finished", what="the second Job to finish")
    assert len(team.pods("eager")) == 1


def test_a_job_that_is_not_queued_is_left_alone(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "free", queue=None, suspend=False, pod={"nodeSelector": {}}))
    eventually(lambda: len(team.pods("free")) == 1, what="its pod")
    assert team.states() == {}


def test_priority_then_age(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    classes = {name: team.priority_class(name, value) for name, value in (("low", 1), ("high", 100))}
    team.apply(job(team.namespace, "blocks", seconds=None))
    eventually(lambda: team.state("blocks") == "Admitted", what="the first Job to be admitted")
    team.apply(job(team.namespace, "low", pod={"priorityClassName": classes["low"]}))
    team.apply(job(team.namespace, "high", pod={"priorityClassName": classes["high"]}, seconds=None))
    for name in classes:
        eventually(lambda name=name: team.reason(name) == "InsufficientQuota", what=f"{name} to wait")  # type: ignore[misc]
    assert team.workload("high")["spec"]["priority"] == 100
    assert team.workload("high")["spec"]["priorityClassName"] == classes["high"]
    team.kubectl("delete", "job", "blocks")
    eventually(lambda: team.state("high") == "Admitted", what="the more important Job to be admitted")
    assert team.state("low") == "Pending"


def test_strict_fifo_holds_back_what_would_fit(team: Team) -> None:
    team.offers({"cpu": {"spot": "2"}}, queueingStrategy="StrictFIFO")
    team.apply(job(team.namespace, "runs", seconds=None))
    eventually(lambda: team.state("runs") == "Admitted", what="the first Job to be admitted")
    first = team.priority_class("first", 10)
    team.apply(job(team.namespace, "head", pods=2, pod={"priorityClassName": first}))
    eventually(lambda: team.reason("head") == "InsufficientQuota", what="the large Job to wait for quota")
    team.apply(job(team.namespace, "small"))
    eventually(lambda: team.reason("small") == "BehindHead", what="the small Job to wait behind the large")
    team.kubectl("delete", "job", "runs")
    eventually(lambda: team.states() == {"Finished": 2}, what="both to finish")


def test_two_queues_of_one_namespace_do_not_share_quota(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    other = team.offers({"cpu": {"spot": "1"}}, name="other", flavors=False)
    team.apply(local_queue(team.namespace, other, "side"))
    for queue in ("main", "side"):
        team.apply(*(job(team.namespace, f"{queue}-{n}", queue=queue, seconds=None) for n in range(2)))
    eventually(lambda: team.states() == {"Admitted": 2, "Pending": 2}, what="one Job a queue")
    eventually(
        lambda: (
            [team.read("lq", q).get("status", {}).get("admittedWorkloads") for q in ("main", "side")]
            == [1, 1]
        ),
        what="the queues' own counts",
    )


def test_the_queue_shows_what_is_used(team: Team) -> None:
    team.offers({"cpu": {"spot": "4", "on-demand": "2"}})
    team.apply(job(team.namespace, "runs", pods=3, seconds=None), job(team.namespace, "waits", pods=5))
    used = [
        {"name": team.flavor("spot"), "resources": [{"name": "cpu", "used": "3", "borrowed": "0"}]},
        {"name": team.flavor("on-demand"), "resources": [{"name": "cpu", "used": "0", "borrowed": "0"}]},
    ]
    eventually(
        lambda: (
            (s := team.read("cq", team.cluster_queue).get("status", {})).get("flavors") == used
            and (s["pendingWorkloads"], s["admittedWorkloads"]) == (1, 1)
        ),
        what="the queue's status",
    )

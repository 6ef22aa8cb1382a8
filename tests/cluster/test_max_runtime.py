"""The maximum run time on a real API server: each Job ends by what the status of its Workload stores."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from tests.cluster.objects import Json, job
from tests.cluster.queued_pods import pods_of, queued_pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually, have_ended

pytestmark = pytest.mark.cluster

ASKS = "admitter.dev/max-runtime"


def asking(manifest: Json, text: str) -> Json:
    manifest["metadata"].setdefault("annotations", {})[ASKS] = text
    return manifest


def time_of(team: Team, name: str, kind: str) -> float:
    """When a condition of a Job's Workload became what it is, in seconds since the epoch."""
    return datetime.fromisoformat(team.condition(name, kind)["lastTransitionTime"]).timestamp()


def run_time(team: Team, name: str) -> dict[str, Any]:
    found: Mapping[str, Any] = team.workload(name).get("status", {}).get("runTime") or {}
    return dict(found)


def deadline(team: Team, name: str) -> float:
    return datetime.fromisoformat(run_time(team, name)["deadline"]).timestamp()


def test_a_job_ends_at_its_maximum_and_the_next_gets_the_quota_at_once(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}}, lifecycle={"maxRuntime": "20s"})
    kills = team.controller.kills
    team.apply(asking(job(team.namespace, "long", seconds=None), "1h"))
    team.runs("long")
    team.apply(job(team.namespace, "next", seconds=1))
    since, until = time_of(team, "long", "QuotaReserved"), deadline(team, "long")
    assert until - since == 20
    told = team.condition("long", "Admitted")["message"]
    assert f"maxRuntime 20s of ClusterQueue {team.cluster_queue}" in told
    assert f"instead of the 1h of its annotation {ASKS}" in told
    eventually(lambda: team.state("long") == "Finished", what="the end of its time")
    assert 0 <= time_of(team, "long", "Evicted") - until < team.controller.soon(kills)
    assert team.condition("long", "Finished")["reason"] == team.reason("long") == "MaxRuntimeExceeded"
    have_ended(lambda: team.pods("long"))
    assert team.read("job", "long")["spec"]["suspend"] is True
    eventually(lambda: team.state("next") == "Finished", what="the next Job")
    assert time_of(team, "next", "QuotaReserved") - time_of(team, "long", "Finished") <= 2
    team.hears(lambda: "MaxRuntimeExceeded" in team.events("long"), kills, "the Warning")
    team.patch("job", "long", {"spec": {"suspend": False}})
    eventually(lambda: team.read("job", "long")["spec"]["suspend"] is True, what="it to stay suspended")
    assert team.state("long") == "Finished"
    team.kubectl("delete", "wl", team.workload("long")["metadata"]["name"])
    team.runs("long")  # its user lets it have all of its time again
    assert run_time(team, "long").get("usedSeconds", 0) == 0


def test_the_time_is_summed_over_an_eviction(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}}, lifecycle={"maxRuntime": "20s"})
    team.apply(job(team.namespace, "summed", seconds=None))
    team.runs("summed")
    first = time_of(team, "summed", "QuotaReserved")
    name = team.workload("summed")["metadata"]["name"]
    team.patch("wl", name, {"spec": {"active": False}})
    eventually(lambda: team.reason("summed") == "Inactive", what="its eviction")
    used = time_of(team, "summed", "Evicted") - first
    assert run_time(team, "summed")["usedSeconds"] == used
    assert "deadline" not in run_time(team, "summed")
    team.patch("wl", name, {"spec": {"active": True}})
    eventually(lambda: team.state("summed") == "Admitted", what="its next admission")
    assert deadline(team, "summed") - time_of(team, "summed", "QuotaReserved") == 20 - used
    eventually(lambda: team.state("summed") == "Finished", what="the end of its time")


def test_a_requeued_job_goes_behind_those_that_wait_and_starts_anew(team: Team) -> None:
    lifecycle = {"maxRuntime": "15s", "onMaxRuntime": "Requeue"}
    team.offers({"cpu": {"spot": "1"}}, lifecycle=lifecycle)
    team.apply(job(team.namespace, "slices", seconds=None))
    team.runs("slices")
    team.apply(job(team.namespace, "waits", seconds=None))
    eventually(lambda: team.state("waits") == "Admitted", what="the turn of the one that waits")
    found = run_time(team, "slices")
    assert (team.state("slices"), found["usedSeconds"]) == ("Pending", 0)
    assert "requeuedAt" in found
    eventually(lambda: team.state("slices") == "Admitted", what="its turn again")
    assert deadline(team, "slices") - time_of(team, "slices", "QuotaReserved") == 15
    assert team.state("waits") != "Finished"
    team.kubectl("delete", "job", "slices", "waits")


def test_a_controller_that_starts_in_between_ends_a_job_at_the_same_second(team: Team) -> None:
    team.cohort("tree", lifecycle={"maxRuntime": "25s"})
    cohort = f"{team.namespace}-tree"
    team.offers({"cpu": {"spot": "1"}}, cohort=cohort)
    team.apply(job(team.namespace, "goes-on", seconds=None))
    team.runs("goes-on")
    before = run_time(team, "goes-on")
    assert before["limit"] == f"maxRuntime 25s of Cohort {cohort}"
    team.controller.restart()
    kills = team.controller.kills
    # a deadline is fixed at the admission: no other cap moves it
    team.patch("cohort", cohort, {"spec": {"lifecycle": {"maxRuntime": "1h"}}})
    eventually(lambda: team.state("goes-on") == "Finished", what="the end of its time")
    assert run_time(team, "goes-on") == before
    late = time_of(team, "goes-on", "Evicted") - deadline(team, "goes-on")
    assert 0 <= late < team.controller.soon(kills)


def test_an_annotation_that_can_not_be_read_is_told_and_nothing_starts(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(asking(job(team.namespace, "soon", seconds=1), "soon"))
    eventually(lambda: team.reason("soon") == "InvalidAnnotation", what="the reason")
    told = team.workload("soon")["status"]["message"]
    assert told.startswith(f"the annotation {ASKS} of its Job: 'soon' is not a duration")
    team.kubectl("annotate", "job", "soon", f"{ASKS}=1m", "--overwrite")
    eventually(lambda: team.state("soon") == "Finished", what="it to run once the text is a duration")
    assert team.condition("soon", "Finished")["reason"] == "JobSucceeded"


def test_a_group_of_pods_ends_at_what_its_pods_ask_for_and_may_be_made_again(team: Team) -> None:
    team.offers({"cpu": {"spot": "2"}}, lifecycle={"maxRuntime": "1h"})
    pods = [queued_pod(team.namespace, f"rank-{n}", group="ranks", size=2) for n in range(2)]
    team.apply(*(asking(pod, "25s") for pod in pods))

    def running() -> bool:
        return [pod["status"].get("phase") for pod in pods_of(team, "ranks").values()] == ["Running"] * 2

    def workload() -> Json:
        found = [each for each in team.workloads().values() if "runTime" in each.get("status", {})]
        return found[0] if found else {}

    eventually(running, what="both pods to run")
    assert workload()["status"]["runTime"]["limit"] == f"its annotation {ASKS} of 25s"
    eventually(lambda: workload()["status"]["state"] == "Finished", what="the end of their time")
    have_ended(lambda: pods_of(team, "ranks").values())
    assert workload()["status"]["reason"] == "MaxRuntimeExceeded"
    team.apply(*pods)
    eventually(running, what="the group to run again, once its user has made it again")
    assert workload()["status"]["state"] == "Admitted"


def test_pods_that_a_controller_makes_anew_stay_out_of_a_group_that_has_had_its_time(team: Team) -> None:
    team.offers({"cpu": {"spot": "2"}}, lifecycle={"maxRuntime": "8s"})
    accounts = ("get", "serviceaccounts", "--output=name")
    eventually(lambda: "/default" in team.kubectl(*accounts), what="the account of a new namespace")
    maker = team.read("serviceaccount", "default")["metadata"]
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": maker["uid"]}

    def member(name: str) -> Json:
        made = queued_pod(team.namespace, name, group="ranks", size=1)
        made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        return made

    def ended() -> list[str]:
        found = [each["status"] for each in team.workloads().values()]
        return [each.get("reason", "") for each in found if each.get("state") == "Finished"]

    kills = team.controller.kills
    team.apply(member("first"))
    eventually(lambda: ended() == ["MaxRuntimeExceeded"], what="the end of its time")
    have_ended(lambda: pods_of(team, "ranks").values())
    team.apply(member("second"))
    team.hears(lambda: "MaxRuntimeExceeded" in team.events("second"), kills, "why it stays out")
    assert [pod["spec"].get("nodeName") for pod in pods_of(team, "ranks").values()] == [None]
    assert ended() == ["MaxRuntimeExceeded"]

"""Jobs with pods that never get ready, by each cause: how each ends, and that its quota is used again."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from admitter.sandbox.nodes import SIMULATED_ANNOTATION
from tests.cluster.objects import Json, job
from tests.cluster.queued_pods import group_workload, pods_of, queued_pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

TIMEOUT = 12
"""Seconds to be ready that a Job with trouble asks for: enough to start it if a test kills the leader."""
ROOM = 60
"""Seconds to be ready that others get: a pod without trouble may need ten on a busy machine."""
ONCE = {"base": "1h", "max": "1h"}
"""A backoff for tests that look at the first eviction: no second try comes in between."""


def offers(team: Team, cpu: str = "1", **lifecycle: Any) -> None:
    rules = {"readyTimeout": f"{ROOM}s", "backoff": {"base": "5s", "max": "10s"}, **lifecycle}
    team.offers({"cpu": {"on-demand": cpu}}, lifecycle=rules)


def hurried(made: Json, seconds: int = TIMEOUT) -> Json:
    """The same with so much time to be ready."""
    made["metadata"].setdefault("annotations", {})["admitter.dev/ready-timeout"] = f"{seconds}s"
    return made


def troubled(team: Team, name: str, trouble: str, limit: int = TIMEOUT, **more: Any) -> Json:
    """A Job with pods that never get ready on the simulated nodes, and so many seconds for that."""
    made = hurried(job(team.namespace, name, seconds=None, **more), limit)
    made["spec"]["template"]["metadata"]["annotations"]["admitter.dev/simulated-trouble"] = trouble
    return made


def readiness(team: Team, name: str) -> dict[str, Any]:
    found: dict[str, Any] = team.workload(name).get("status", {}).get("readiness") or {}
    return found


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@dataclass(frozen=True)
class Evicted:
    """What a Workload says that has been evicted: all of it as of one moment, before the next try."""

    why: str
    at: datetime
    readiness: dict[str, Any]
    status: dict[str, Any]


def evicted(team: Team, name: str, attempts: int = 1, timeout: float = 180) -> Evicted:
    """Wait until a Job has been evicted for readiness so often, and waits."""
    found: list[Evicted] = []

    def waits() -> bool:
        status = team.workload(name).get("status", {})
        known = status.get("readiness") or {}
        if status.get("state") != "Pending" or known.get("attempts", 0) < attempts:
            return False
        condition = next(each for each in status["conditions"] if each["type"] == "Evicted")
        at = moment(condition["lastTransitionTime"])
        found.append(Evicted(condition["message"], at, known, status))
        return True

    eventually(waits, what=f"{name} to be evicted {attempts} times", timeout=timeout)
    return found[0]


def admitted_at(team: Team, name: str) -> datetime:
    return moment(team.condition(name, "Admitted")["lastTransitionTime"])


def test_a_job_without_its_image_gives_its_quota_to_the_next_and_is_given_up_in_the_end(team: Team) -> None:
    offers(team, giveUp={"attempts": 2})
    team.apply(troubled(team, "broken", "image"))
    eventually(lambda: team.state("broken") == "Admitted", what="its admission")
    first = moment(readiness(team, "broken")["deadline"])
    assert TIMEOUT <= (first - admitted_at(team, "broken")).total_seconds() <= TIMEOUT + 1
    team.apply(job(team.namespace, "next", seconds=1))
    told = evicted(team, "broken")
    assert "1 of 1 pods can't pull its image: ImagePullBackOff work" in told.why
    assert told.at >= first
    eventually(lambda: team.state("next") == "Finished", what="the next Job to run on its quota")
    eventually(lambda: team.reason("broken") == "GaveUp", what="the second try to be the last")
    found = readiness(team, "broken")
    assert (found["attempts"], found["failures"]) == (2, 2)
    assert "nextTry" not in found
    assert team.workload("broken")["spec"]["active"] is False
    assert "giveUp.attempts: 2" in team.workload("broken")["status"]["message"]

    team.patch("wl", team.workload("broken")["metadata"]["name"], {"spec": {"active": True}})
    eventually(lambda: team.state("broken") == "Admitted", what="its user to set it going again")
    assert "attempts" not in readiness(team, "broken"), "that begins a new row"


def is_as_long_as_it_says(told: Evicted) -> None:
    """Its wait is 20 s the first time, and 40 s each further time, with a tenth for jitter."""
    longest = 20 if told.readiness["attempts"] == 1 else 40
    waits = (moment(told.readiness["nextTry"]) - told.at).total_seconds()
    assert 0.85 * longest <= waits <= 1.1 * longest


def test_a_job_that_crashes_waits_longer_each_time_and_holds_nothing_meanwhile(team: Team) -> None:
    offers(team, backoff={"base": "20s", "max": "40s"})
    crashes = troubled(team, "crashes", "crash", pods=2)
    crashes["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "500m"}
    team.apply(crashes)
    told = evicted(team, "crashes")
    assert "2 of 2 pods crash: container main: exit code 1" in told.why
    is_as_long_as_it_says(told)
    assert told.status["reason"] == "PodsNotReady"
    assert "admission" not in told.status
    team.controller.restart()
    known, tries = readiness(team, "crashes"), told.readiness["attempts"]
    if known["attempts"] == tries:  # on a busy machine the next try may be over
        assert known["nextTry"] == told.readiness["nextTry"]
    eventually(lambda: team.state("crashes") == "Admitted", what="the next try")
    assert admitted_at(team, "crashes") >= moment(told.readiness["nextTry"])
    is_as_long_as_it_says(evicted(team, "crashes", tries + 1))


@pytest.mark.parametrize("want", ["selector", "capacity"])
def test_want_of_a_node_is_told_and_never_given_up(team: Team, want: str) -> None:
    offers(team, cpu="1000", giveUp={"attempts": 1})
    if want == "selector":
        pod = {"nodeSelector": {"example.com/none": "there"}}
        team.apply(hurried(job(team.namespace, "nowhere", seconds=None, pod=pod)))
    else:  # the nodes have room for four at most
        team.apply(hurried(job(team.namespace, "nowhere", seconds=None, pods=7, requests={"cpu": "15"})))
    told = evicted(team, "nowhere", 2)
    assert re.search(r"[1-7] of [17] pods unschedulable: 0/", told.why)
    assert ("didn't match" if want == "selector" else "Insufficient cpu") in told.why
    assert team.workload("nowhere")["spec"].get("active", True) is True
    assert "failures" not in told.readiness


def test_a_head_that_backs_off_blocks_no_other_in_a_strict_queue(team: Team) -> None:
    rules = {"readyTimeout": f"{ROOM}s", "backoff": ONCE}
    team.offers({"cpu": {"on-demand": "1"}}, lifecycle=rules, queueingStrategy="StrictFIFO")
    team.apply(troubled(team, "head", "image"))
    eventually(lambda: team.state("head") == "Admitted", what="its admission")
    team.apply(job(team.namespace, "second"), job(team.namespace, "third"))
    evicted(team, "head")
    eventually(lambda: team.states()["Finished"] == 2, what="those behind it to run")
    assert team.reason("head") == "PodsNotReady"


def test_the_flavor_on_which_pods_were_not_ready_is_tried_last_once(team: Team) -> None:
    rules = {"backoff": {"base": "20s", "max": "20s"}}  # each eviction is seen before the next try
    team.offers({"cpu": {"spot": "1", "on-demand": "1"}}, lifecycle=rules)
    team.apply(troubled(team, "moves", "image"))
    tried = [evicted(team, "moves", attempt).readiness["triedLast"] for attempt in range(1, 4)]
    assert tried == [[team.flavor("spot")], [team.flavor("on-demand")], [team.flavor("spot")]]


def test_a_restart_while_pods_start_keeps_the_deadline_and_ready_jobs_stay(team: Team) -> None:
    offers(team, cpu="2", readyTimeout="25s", backoff=ONCE)
    team.apply(troubled(team, "broken", "image", 25), job(team.namespace, "fine", seconds=None))
    eventually(lambda: team.states()["Admitted"] == 2, what="both admissions")
    before = readiness(team, "broken")
    team.runs("fine")
    team.controller.restart()
    told = evicted(team, "broken")
    assert told.readiness["deadline"] == before["deadline"]
    assert 0 <= (told.at - moment(before["deadline"])).total_seconds() <= 30
    eventually(lambda: "readyAt" in readiness(team, "fine"), what="its readiness to be noted")
    assert team.state("fine") == "Admitted"
    assert "attempts" not in readiness(team, "fine")


def test_a_job_that_lost_its_pod_has_time_to_recover_and_is_evicted_after_it(team: Team) -> None:
    offers(team, readyTimeout="20s", recoveryTimeout="30s", backoff=ONCE)
    team.apply(job(team.namespace, "loses", seconds=None))
    eventually(lambda: "readyAt" in readiness(team, "loses"), what="its readiness to be noted")
    (pod,) = team.pods("loses")
    not_ready: Json = {"conditions": [{"type": "Ready", "status": "False"}]}
    lost = f'--patch={{"status": {{"conditions": {[*not_ready["conditions"]]}}}}}'.replace("'", '"')
    team.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", lost)
    eventually(lambda: "recoverBy" in readiness(team, "loses"), what="the loss to be noted")
    noted = readiness(team, "loses")["recoverBy"]
    by = moment(noted)
    team.controller.restart()
    assert readiness(team, "loses").get("recoverBy", noted) == noted
    told = evicted(team, "loses")
    assert "not all ready again in time: 1 of 1 pods runs and is not ready" in told.why
    assert told.at >= by


def test_a_job_that_lost_its_node_gives_its_quota_to_the_next(team: Team) -> None:
    offers(team, readyTimeout="20s", recoveryTimeout="20s", giveUp={"attempts": 1}, backoff=ONCE)
    room = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    name = f"{team.namespace}-node"
    key, value = "example.com/only", team.namespace
    labels = {"instance-type": "on-demand", key: value}
    metadata = {"name": name, "labels": labels, "annotations": {SIMULATED_ANNOTATION: "fake"}}
    # Pods of other tests would be lost with the node.
    spec = {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]}
    node = {"metadata": metadata, "spec": spec, "status": {"capacity": room}}
    team.apply({"apiVersion": "v1", "kind": "Node", **node})
    only = {"nodeSelector": {key: value}, "tolerations": [{"key": key, "operator": "Exists"}]}
    team.apply(job(team.namespace, "loses", seconds=None, pod=only))
    eventually(lambda: "readyAt" in readiness(team, "loses"), what="its readiness to be noted")
    team.apply(job(team.namespace, "next"))
    team.kubectl("delete", "node", name)
    team.made.remove(f"Node/{name}")
    told = evicted(team, "loses", timeout=300)
    assert "not all ready again in time: 1 of 1 pods unschedulable" in told.why
    assert "failures" not in told.readiness
    eventually(lambda: team.state("next") == "Finished", what="its quota to be used again")
    assert team.reason("loses") == "PodsNotReady"


def test_a_group_of_which_a_pod_never_gets_ready_is_evicted(team: Team) -> None:
    offers(team, cpu="2")
    fine = queued_pod(team.namespace, "fine", group="both", size=2)
    broken = queued_pod(team.namespace, "broken", group="both", size=2)
    broken["metadata"]["annotations"]["admitter.dev/simulated-trouble"] = "crash"
    team.apply(hurried(fine), hurried(broken))
    eventually(
        lambda: (group_workload(team, "both").get("status") or {}).get("readiness", {}).get("attempts") == 1,
        what="its eviction",
    )
    conditions = group_workload(team, "both")["status"]["conditions"]
    why = next(each for each in conditions if each["type"] == "Evicted")
    assert why["reason"] == "PodsNotReady"
    assert "1 of 2 pods crashes" in why["message"]
    eventually(lambda: not pods_of(team, "both"), what="its pods to go")
    team.apply(job(team.namespace, "next", requests={"cpu": "2"}))
    eventually(lambda: team.state("next") == "Finished", what="its quota to be used again")


def test_an_annotation_shortens_the_limit_and_a_longer_or_unreadable_one_is_told(team: Team) -> None:
    kills = team.controller.kills
    offers(team, cpu="3", readyTimeout="50s")
    for name, text in (("short", "20s"), ("long", "2h"), ("odd", "soon")):
        made = job(team.namespace, name, seconds=None)
        made["metadata"].setdefault("annotations", {})["admitter.dev/ready-timeout"] = text
        team.apply(made)
    eventually(lambda: team.states()["Admitted"] == 3, what="all admissions")
    for name, limit in (("short", 20), ("long", 50), ("odd", 50)):
        found = moment(readiness(team, name)["deadline"]) - admitted_at(team, name)
        assert limit <= found.total_seconds() <= limit + 1

    def told(name: str) -> str:
        selector = f"--field-selector=involvedObject.name={name},reason=ReadyTimeout"
        return " ".join(each["message"] for each in team.read("events", selector)["items"])

    words = {
        "long": f"2h is longer than ClusterQueue {team.cluster_queue} allows",
        "odd": f"Job {team.namespace}/odd: metadata.annotations[admitter.dev/ready-timeout]: 'soon'",
    }
    for name, expected in words.items():
        team.hears(partial(told, name), kills, f"the event of {name}")
        heard = told(name)  # nothing, if the controller was killed before it wrote the event
        assert not heard or expected in heard
    assert told("short") == ""

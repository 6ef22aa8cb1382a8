"""What is owned and given back at once, again and again: how often that evicts a borrower."""

import json
import logging
import time
from itertools import count

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job, local_queue, workload
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.scale import scaled

pytestmark = pytest.mark.cluster

ATTACK_SECONDS = scaled(8, 20)
MOST_EVICTIONS = 4
"""Two by the rule, after 0 and 10 seconds; as many more each time that another test kills the controller."""
WAITS = "PreemptionBackedOff"

log = logging.getLogger("abuse")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_what_is_made_and_deleted_again_and_again_evicts_seldom(team: Team, attacker: Attacker) -> None:
    """A Workload within its own min, made by hand: it needs no Job and no pod to take back what was lent."""
    neighbour = shared_with_a_neighbour(team)
    kills = team.controller.kills
    numbers, start = count(), time.monotonic()
    while time.monotonic() < start + ATTACK_SECONDS:
        name = f"unused-{next(numbers)}"
        attacker.create(owned(team, name))
        attacker.kubectl("delete", "workload", name)
    evictions, kills = evictions_of(team), team.controller.kills - kills
    log.info("%d attempts evicted %d times", next(numbers), evictions)
    # None, where the controller is so slow that each is gone before it is read.
    assert evictions <= MOST_EVICTIONS * (1 + kills)
    # A slow machine may need 40 seconds for the neighbour's Job: then another one has 80.
    tries = (ahead_of_a_back_off(team, attacker, neighbour, numbers) for _ in range(2))
    assert any(tries), "others of the queue take back their own at once"
    assert evictions_of(team) >= 1


def shared_with_a_neighbour(team: Team) -> str:
    """Two Jobs borrow all 4 CPUs of a queue that the namespace shares with another one; returns that one."""
    team.shares(("owner", "4"), ("borrower", "0"), preemption={"reclaimWithinCohort": "Any"})
    neighbour = f"{team.namespace}-too"
    metadata = {"name": neighbour, "labels": {"team": team.namespace}}
    team.made.append(f"namespace/{neighbour}")
    team.cluster.run_kubectl(
        *("apply", "--filename=-"),
        content=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
    )
    team.apply(local_queue(neighbour, f"{team.namespace}-owner", "owner"))
    team.apply(*(job(team.namespace, name, pods=2, queue="borrower", seconds=None) for name in ("b1", "b2")))
    team.runs("b1", pods=2)
    team.runs("b2", pods=2)
    return neighbour


def owned(team: Team, name: str) -> Json:
    """A Workload for which a borrower has to go."""
    made = workload(team.namespace, name, cpu="2")
    made["spec"]["queueName"] = "owner"
    return made


def evictions_of(team: Team) -> int:
    """How often a borrower was preempted."""
    lines = [json.loads(line) for line in team.controller.log.splitlines() if '"event":"evicted"' in line]
    return sum(line["namespace"] == team.namespace and line["reason"] == "Preempted" for line in lines)


def ahead_of_a_back_off(team: Team, attacker: Attacker, neighbour: str, numbers: "count[int]") -> bool:
    """Whether a Job of the neighbour is admitted before the end of a back-off of 40 seconds at least.

    If it is not, what waited for that end is deleted: the next back-off is twice as long.
    """
    name, until = waits(team, attacker, numbers)
    honest = f"beside-{name}"
    made = job(neighbour, honest, pods=2, queue="owner", seconds=None)
    team.cluster.run_kubectl("create", "--filename=-", content=json.dumps(made))
    eventually(lambda: admitted_at(team, neighbour, honest), what="admission of the neighbour's Job")
    if admitted_at(team, neighbour, honest) < until:
        return True
    eventually(lambda: team.state(name) == "Admitted", what="the end of a back-off")
    attacker.kubectl("delete", "workload", name)
    return False


def waits(team: Team, attacker: Attacker, numbers: "count[int]") -> tuple[str, str]:
    """Let a Workload wait for a back-off of 40 seconds at least; returns its name, and when that ends."""
    for number in numbers:
        name = f"waits-{number}"
        attacker.create(owned(team, name))
        until = backed_off(team, name)
        if until:
            return name, until
        attacker.kubectl("delete", "workload", name)
    raise AssertionError


def backed_off(team: Team, name: str) -> str:
    """The end of the back-off that a Workload waits for, if three places count; else it is admitted."""
    eventually(
        lambda: team.state(name) == "Admitted" or team.reason(name) == WAITS, what=f"{name} to be told"
    )
    told = team.workload(name)["status"].get("backOff") or {}
    if told.get("count", 0) >= 3:
        return str(told["until"])
    eventually(lambda: team.state(name) == "Admitted", what="the end of a back-off")
    return ""


def admitted_at(team: Team, namespace: str, name: str) -> str:
    """When the Workload of a Job was admitted; empty if it was not."""
    items = team.cluster.read("workloads.admitter.dev", f"--namespace={namespace}")["items"]
    of_job = (item for item in items if item["metadata"]["ownerReferences"][0]["name"] == name)
    found = (each for item in of_job for each in item.get("status", {}).get("conditions", []))
    return next(
        (c["lastTransitionTime"] for c in found if (c["type"], c["status"]) == ("Admitted", "True")), ""
    )

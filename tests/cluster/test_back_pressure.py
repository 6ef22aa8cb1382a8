"""An API server that throttles, is slow or loses connections slows admission down, and does nothing worse."""

from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.faults.controlled import Controlled, OrderAuditor, asks, controlled, for_seconds
from tests.faults.rules import Rule, cut_after, cut_before, slow, throttled
from tests.scale import scaled

pytestmark = [pytest.mark.cluster, pytest.mark.long]

QUEUES = ("strict", "left", "right")
JOBS_A_QUEUE = scaled(18, 42)
LOSING_JOBS = scaled(15, 35)
"""As many a queue while answers are lost."""
CPU = 24
LARGE = 16
LARGE_EVERY = 14
NEARLY_ALL = CPU - 2
"""What is in use at some moment, even if each write is tried twice while Jobs end."""
REFUSED_SECONDS = scaled(14, 30)
CAN_WAIT = {"event", "reason", "queue status"}


@pytest.fixture
def controller(own: ControlPlane, tmp_path: Path) -> Iterator[Controlled]:
    """The only controller of the cluster, behind a proxy of the test's own."""
    with controlled(own, tmp_path / "controller", seed=7) as running:
        yield running


@pytest.fixture
def team(own: ControlPlane, own_team: Team) -> Iterator[Team]:
    """A team with queues that share 24 CPUs, one of them strict and stopped at first."""
    own_team.shares(("strict", "8"), queueingStrategy="StrictFIFO", stopPolicy="Hold")
    own_team.shares(("left", "8"), ("right", "8"))
    yield own_team
    own.run_kubectl(
        "delete", "namespace", own_team.namespace
    )  # hundreds of Jobs: the next test begins without


def jobs(team: Team, queue: str, number: int = JOBS_A_QUEUE) -> list[dict[str, Any]]:
    """Jobs of a queue; every 14th is so large that it must wait for others to end."""
    return [
        job(team.namespace, f"{queue}-{n:03}", queue=queue, pods=LARGE if n % LARGE_EVERY == 0 else 1)
        for n in range(number)
    ]


def in_order(team: Team, queue: str) -> list[tuple[str, float]]:
    """The Workloads of a queue by their Jobs' age, then by UID, and what each asks for."""
    ages = {j["metadata"]["uid"]: j["metadata"]["creationTimestamp"] for j in team.read("jobs")["items"]}
    found = [w for w in team.workloads().values() if w["spec"]["queueName"] == queue]
    found.sort(key=lambda w: (ages[w["metadata"]["ownerReferences"][0]["uid"]], w["metadata"]["uid"]))
    return [(w["metadata"]["name"], asks(w)) for w in found]


def limits(team: Team) -> tuple[tuple[str, str], float]:
    return (team.flavor("on-demand"), "cpu"), float(CPU)


def go(team: Team) -> None:
    """Let the strict queue's Workloads compete."""
    team.patch("clusterqueue", f"{team.namespace}-strict", {"spec": {"stopPolicy": "None"}})


def run_to_the_end(team: Team, number: int, *, timeout: float) -> OrderAuditor:
    """Have Jobs of all queues admitted, watched by the auditor, until they have finished."""
    with OrderAuditor(team.cluster, team.namespace, limits(team), "strict") as auditor:
        team.apply(*(j for queue in QUEUES for j in jobs(team, queue, number)))
        eventually(lambda: len(auditor.heard) == number, timeout=timeout, what="strict Workloads")
        auditor.expect(in_order(team, "strict"))
        go(team)
        total = number * len(QUEUES)
        eventually(lambda: len(auditor.finished) == total, timeout=timeout, what="the end of all")
        assert team.states() == {"Finished": total}
    return auditor


def all_right(team: Team, auditor: OrderAuditor, number: int) -> None:
    """Each Job was admitted once, ran once, and quota was neither passed nor lost."""
    total = number * len(QUEUES)
    assert auditor.excesses == []
    assert auditor.overtaken == []
    assert auditor.most_pods <= CPU
    assert len(auditor.admissions) == total, "none was lost"
    assert set(auditor.admissions.values()) == {1}, "none was admitted twice"
    assert auditor.total[limits(team)[0]] == 0, "nothing is held in the end"
    assert auditor.highest[limits(team)[0]] >= NEARLY_ALL, "Jobs run side by side"
    labels = [pod["metadata"]["labels"] for pod in team.read("pods")["items"]]
    pods = Counter(label["batch.kubernetes.io/job-name"] for label in labels)
    expected = {
        j["metadata"]["name"]: j["spec"]["parallelism"] for q in QUEUES for j in jobs(team, q, number)
    }
    assert pods == expected, "each ran once"


def test_a_burst_ends_in_order_while_half_of_all_writes_are_refused_and_the_rest_is_slow(
    team: Team, controller: Controlled
) -> None:
    controller.proxy.rules = (
        Rule("429 and when", throttled(1), chance=0.25),
        Rule("429", throttled(None), chance=1 / 3),
        Rule("slow", slow(0.1, 0.3)),
    )
    auditor = run_to_the_end(team, JOBS_A_QUEUE, timeout=300)
    all_right(team, auditor, JOBS_A_QUEUE)
    passed = {kind: n for (kind, fate), n in controller.proxy.count().items() if fate == "slow"}
    total = JOBS_A_QUEUE * len(QUEUES)
    for kind in ("new workload", "admission", "finish"):
        assert total <= passed[kind] < 1.1 * total, f"{kind}: once each, but for a few conflicts"
    assert sum(passed.get(kind, 0) for kind in CAN_WAIT) < 3 * total, "what only tells comes second"


def test_a_server_that_refuses_everything_is_left_alone_and_memory_does_not_grow(
    team: Team, controller: Controlled
) -> None:
    team.apply(*(local_queue(team.namespace, f"{team.namespace}-left", f"more-{n:02}") for n in range(40)))
    team.apply(*(job(team.namespace, f"runs-{n:02}", queue="left", seconds=None) for n in range(CPU)))
    eventually(lambda: team.states() == {"Admitted": CPU}, what="Jobs that hold all quota")
    team.apply(*(job(team.namespace, f"waits-{n:02}", queue=f"more-{n:02}") for n in range(40)))
    eventually(lambda: team.states() == {"Admitted": CPU, "Pending": 40}, what="Jobs that wait")
    eventually(lambda: team.reason("waits-39") == "InsufficientQuota", what="the others to be told")

    # Calls for the Lease have a priority of their own; without them nothing would be written at all.
    controller.proxy.rules = (Rule("429", throttled(1), lambda call: call.writes and call.kind != "lease"),)
    team.apply(*(job(team.namespace, f"late-{n:02}", queue="right") for n in range(30)))
    stop_policy = cycle(("Hold", "None"))

    def change() -> None:
        """All 41 queues, and the reasons of all that wait, change with it."""
        spec = {"stopPolicy": next(stop_policy)}
        team.patch("clusterqueue", f"{team.namespace}-left", {"spec": spec})

    for_seconds(5, change)
    since, before, used = controller.proxy.now(), controller.memory, controller.cpu
    changes = for_seconds(REFUSED_SECONDS, change)
    seconds = controller.proxy.now() - since
    tried = controller.proxy.count(since)
    assert changes > 12, "hundreds of statuses would have been written"
    assert controller.memory - before < 10 * 2**20
    assert controller.cpu - used < seconds / 2
    writes = {kind: n for (kind, fate), n in tried.items() if fate == "429"}
    assert 1 <= sum(writes.values()) <= seconds + 2, "it is asked once a second, as it wants to be"
    assert not CAN_WAIT & set(writes), "and only for what cannot wait"

    controller.proxy.rules = ()
    if next(stop_policy) == "None":
        change()
    well = controller.proxy.now()
    eventually(lambda: len(team.workloads()) == CPU + 70, what="Workloads of the Jobs that came meanwhile")
    status = {"pendingWorkloads": 40, "admittedWorkloads": CPU}
    eventually(
        lambda: status.items() <= team.read("cq", f"{team.namespace}-left")["status"].items(),
        what="the queue's status",
    )
    eventually(lambda: team.reason("late-29") == "InsufficientQuota", what="reasons to be told")
    # Some seconds on an idle machine. Pauses that had grown while all was refused would be minutes.
    assert controller.proxy.now() - well < 60


def test_answers_that_are_lost_neither_lose_quota_nor_book_it_twice(
    team: Team, controller: Controlled
) -> None:
    controller.proxy.rules = (
        Rule("cut after", cut_after, chance=0.3),
        Rule("cut before", cut_before, chance=0.1),
    )
    auditor = run_to_the_end(team, LOSING_JOBS, timeout=240)
    all_right(team, auditor, LOSING_JOBS)
    lost = {kind: n for (kind, fate), n in controller.proxy.count().items() if fate == "cut after"}
    assert {"new workload", "admission", "job", "finish"} <= set(lost)

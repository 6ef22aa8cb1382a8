"""What a tenant reads of others in the messages and events of its own Workloads: not their names."""

from collections.abc import Iterator

import pytest

from tests.cluster.abuse import Attacker
from tests.cluster.objects import job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually, later_than

pytestmark = pytest.mark.cluster

RECLAIM = {"reclaimWithinCohort": "Any"}
SECRET = "secret-project"
ANOTHER = "a Workload of another namespace"


@pytest.fixture
def other(team: Team) -> Iterator[Team]:
    """Another tenant's namespace, which the same ClusterQueues select."""
    name = f"{team.namespace}-b"
    team.cluster.run_kubectl("create", "namespace", name)
    team.cluster.run_kubectl("label", "namespace", name, f"team={team.namespace}")
    yield Team(team.cluster, name, team.controller)
    team.cluster.run_kubectl("delete", "namespace", name, "--wait=false")


def read(attacker: Attacker) -> str:
    """All messages that the user reads: of its Workloads, and of events in its namespace."""
    paths = {
        "workloads.admitter.dev": "{.items[*].status.message} {.items[*].status.conditions[*].message} "
        "{.items[*].status.preemption.message}",
        "events": "{.items[*].message}",
    }
    return "\n".join(
        attacker.kubectl("get", kind, f"--output=jsonpath={path}") for kind, path in paths.items()
    )


def has_told(reason: str, team: Team, *jobs: str) -> bool:
    """Whether an event says so. What a killed controller was about to tell, the next one does not."""
    return any(reason in team.events(job) for job in jobs)


def names_nobody(attacker: Attacker, other: Team) -> None:
    words = read(attacker)
    assert SECRET not in words
    assert other.namespace not in words


@pytest.mark.timeout(600)
def test_an_eviction_does_not_name_a_workload_of_another_namespace(
    team: Team, other: Team, attacker: Attacker
) -> None:
    kills = team.controller.kills
    team.shares(("a", "1"), ("own", "1"), preemption=RECLAIM | {"gracePeriod": 20})
    other.apply(local_queue(other.namespace, f"{team.namespace}-own"))
    for name in ("first", "second"):
        attacker.create(job(team.namespace, name, seconds=None, queue="a"))
        team.runs(name)
    other.apply(job(other.namespace, SECRET, seconds=None))
    eventually(lambda: f"for {ANOTHER} in ClusterQueue" in read(attacker), what="the end that is told")
    names_nobody(attacker, other)
    eventually(lambda: "preempted for" in read(attacker), what="the eviction")
    eventually(lambda: other.state(SECRET) == "Admitted", what="the other's Job")
    # Both may be admitted in one second: then chance decides which of them is evicted.
    team.hears(lambda: has_told("Preempted", team, "first", "second"), kills, "an event of it")
    names_nobody(attacker, other)


def test_an_admission_out_of_order_does_not_name_a_workload_of_another_namespace(
    team: Team, other: Team, attacker: Attacker
) -> None:
    kills, queue = team.controller.kills, team.offers({"cpu": {"on-demand": "2"}})
    other.apply(local_queue(other.namespace, queue))
    attacker.create(job(team.namespace, "first", seconds=None))
    team.runs("first")
    other.apply(job(other.namespace, SECRET, seconds=None, requests={"cpu": "2"}))
    eventually(lambda: other.reason(SECRET) == "InsufficientQuota", what="the other's Job that waits")
    later_than(team.cluster, other.read("job", SECRET)["metadata"]["creationTimestamp"])
    attacker.create(job(team.namespace, "passes", seconds=None))
    eventually(lambda: f"ahead of {ANOTHER}" in read(attacker), what="an admission out of order")
    team.hears(lambda: has_told("Admitted", team, "passes"), kills, "an event of it")
    names_nobody(attacker, other)

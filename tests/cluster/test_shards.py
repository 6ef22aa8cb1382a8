"""Controllers that share the cohort trees: each admits in its own, whichever processes come and go."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from admitter.client.errors import ClusterError, is_fenced
from admitter.client.transport import HttpTransport
from admitter.election.elector import lease_name
from admitter.election.rendezvous import ranked, shard_of
from admitter.names import MEMBER_LABEL, NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.auditor import Auditor
from tests.cluster.objects import (
    ADMITTER,
    DELETE_IN_USE,
    Json,
    cluster_queue,
    job,
    local_queue,
    resource_flavor,
)
from tests.cluster.replicas import Replica
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.scale import scaled

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(600)]

SHARDS = 4
FIRST_JOBS, SECOND_JOBS = scaled(6, 10), scaled(3, 5)
"""As many in each queue before and after a replica is killed."""


class Set:
    """A replica set.

    Attributes:
        replicas: all that were started, in order.
    """

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.replicas: list[Replica] = []
        self.account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder / "account")
        self._plane, self._folder = plane, folder

    def add(self, number: int = SHARDS) -> Replica:
        """Start one more."""
        log = self._folder / f"replica-{len(self.replicas)}.log"
        made = Replica.start(self.account, log, "--shards", str(number))
        self.replicas.append(made)
        return made

    def holders(self) -> list[str]:
        """The holder of each shard; empty: none."""
        leases = self._plane.read("leases", f"--namespace={NAMESPACE}")["items"]
        named = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity", "") for lease in leases}
        return [named.get(lease_name(shard), "") for shard in range(SHARDS)]

    def led(self) -> list[int]:
        """The shards that replicas say that they lead."""
        roles = [replica.role for replica in self.replicas if replica.process.poll() is None]
        words = [role.partition(" of shard")[2].removeprefix("s").strip() for role in roles]
        return sorted(int(number) for each in words if each for number in each.split(", "))

    def settles(self) -> None:
        """Wait until every shard is led by the process with the right to it."""
        eventually(self._is_settled, timeout=120, what=f"{SHARDS} shards to be led")

    def _is_settled(self) -> bool:
        running = [replica for replica in self.replicas if replica.process.poll() is None]
        members = self._members()
        rightful = [ranked(members, shard)[0] for shard in range(SHARDS)] if members else []
        return len(members) == len(running) and self.holders() == rightful and self.led() == [*range(SHARDS)]

    def _members(self) -> list[str]:
        """The processes that have renewed their Lease as a member within the last seconds."""
        leases = self._plane.read("leases", f"--namespace={NAMESPACE}", f"--selector={MEMBER_LABEL}")["items"]
        recent = datetime.now(UTC) - timedelta(seconds=5)
        return [
            lease["spec"]["holderIdentity"]
            for lease in leases
            if datetime.fromisoformat(lease["spec"]["renewTime"]) > recent
        ]

    def terms(self) -> dict[tuple[int, int], int]:
        """Shard and epoch of every term that there was, and which replica's it was."""
        found = {}
        for number, replica in enumerate(self.replicas):
            for line in replica.logged("deciding"):
                assert (line["shard"], line["epoch"]) not in found, "no epoch is of two"
                found[line["shard"], line["epoch"]] = number
        return found

    def close(self) -> None:
        for replica in self.replicas:
            if replica.process.poll() is None:
                replica.end()


@pytest.fixture
def replicas(own: ControlPlane, tmp_path: Path) -> Iterator[Set]:
    """No replica yet."""
    made = Set(own, tmp_path)
    yield made
    made.close()


@pytest.fixture
def team(own_team: Team) -> Team:
    """A team without quota."""
    return own_team


def trees(team: Team) -> list[str]:
    """The names of cohorts, one of each shard."""
    names = map(f"{team.namespace}-{{}}".format, count())
    found: dict[int, str] = {}
    while len(found) < SHARDS:
        name = next(names)
        found.setdefault(shard_of(name, SHARDS), name)
    return [found[shard] for shard in range(SHARDS)]


def offers(team: Team, cohort: str, flavor: str, cpu: str = "2") -> str:
    """Give a cohort a ClusterQueue of some CPUs, with a LocalQueue of the same name."""
    labels = {"nodeLabels": {"instance-type": "on-demand"}}
    quotas = {"cpu": {flavor: cpu}}
    queue = f"{cohort}-queue"
    team.apply(
        resource_flavor(flavor, labels),
        cluster_queue(queue, quotas, team.namespace, cohort=cohort),
        local_queue(team.namespace, queue, queue),
    )
    return queue


def jobs(team: Team, queue: str, name: str, number: int) -> list[Json]:
    return [job(team.namespace, f"{name}-{n}", queue=queue) for n in range(number)]


def admitting_queues(team: Team) -> set[str]:
    """The ClusterQueues that have admitted any Workload."""
    admissions = (w.get("status", {}).get("admission") for w in team.workloads().values())
    return {each["clusterQueue"] for each in admissions if each}


def test_all_finish_while_one_replica_is_killed_and_another_comes(replicas: Set, team: Team) -> None:
    for _ in range(3):
        replicas.add()
    replicas.settles()
    flavors = [f"{team.namespace}-flavor-{shard}" for shard in range(SHARDS)]
    queues = [offers(team, *each) for each in zip(trees(team), flavors, strict=True)]
    limits = {(flavor, "cpu"): 2.0 for flavor in flavors}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        for number, queue in enumerate(queues):
            team.apply(*jobs(team, queue, f"first-{number}", FIRST_JOBS))
        eventually(lambda: admitting_queues(team) == set(queues), what="some of each to be admitted")
        # Two replicas admit for sure only if the one that ends leads a shard.
        leaders = [replica for replica in replicas.replicas if replica.role.startswith("leader")]
        leaders[0].end()
        replicas.add()
        for number, queue in enumerate(queues):
            team.apply(*jobs(team, queue, f"second-{number}", SECOND_JOBS))
        replicas.settles()
        eventually(
            lambda: team.states() == {"Finished": SHARDS * (FIRST_JOBS + SECOND_JOBS)},
            timeout=180,
            what="all Jobs to finish",
        )
    assert auditor.excesses == []
    assert set(auditor.admissions.values()) == {1}, "none was admitted twice"
    terms = replicas.terms()
    admissions = [workload["status"]["admission"] for workload in team.workloads().values()]
    for admission in admissions:
        shard = queues.index(admission["clusterQueue"])
        assert admission.get("shard", 0) == shard
        assert (shard, admission["epoch"]) in terms
    admitting = {terms[each.get("shard", 0), each["epoch"]] for each in admissions}
    assert len(admitting) >= 2, "several have admitted"


def test_cohorts_of_two_owners_that_are_joined_give_no_quota_away_twice(replicas: Set, team: Team) -> None:
    for _ in range(3):
        replicas.add()
    replicas.settles()
    # The shards fall to replicas by their random names: one replica may get them all.
    while len(set(replicas.holders())) < 2:
        replicas.add()
        replicas.settles()
    holders, names = replicas.holders(), trees(team)
    one = 0
    other = next(shard for shard in range(SHARDS) if holders[shard] != holders[one])
    flavor = f"{team.namespace}-flavor"
    queues = [offers(team, names[shard], flavor, "3") for shard in (one, other)]
    with Auditor(team.cluster, team.namespace, {(flavor, "cpu"): 6.0}) as auditor:
        for number, queue in enumerate(queues):
            team.apply(*jobs(team, queue, f"busy-{number}", 15))
        eventually(lambda: len(auditor.admissions) >= 6, what="both to be busy")
        spec = {"parent": names[other]}
        metadata = {"name": names[one], "annotations": {**DELETE_IN_USE}}
        team.apply({"apiVersion": ADMITTER, "kind": "Cohort", "metadata": metadata, "spec": spec})
        for number, queue in enumerate(queues):
            team.apply(*jobs(team, queue, f"more-{number}", 5))
        eventually(lambda: team.states() == {"Finished": 40}, timeout=180, what="all Jobs to finish")
        last = job(team.namespace, "last", pods=6, queue=queues[0])
        team.apply(last)
        eventually(
            lambda: team.state("last") == "Finished", timeout=60, what="one to borrow all of the other"
        )
    assert auditor.excesses == []
    assert set(auditor.admissions.values()) == {1}
    admission = team.workload("last")["status"]["admission"]
    assert admission.get("shard", 0) == other, "the owner of the tree that it joined"


async def test_an_admission_for_a_shard_is_refused_in_any_other_epoch(replicas: Set, team: Team) -> None:
    replicas.add()
    replicas.settles()
    (alone,) = replicas.replicas
    assert alone.role == "leader of shards 0, 1, 2, 3"
    names = trees(team)
    queue = offers(team, names[3], f"{team.namespace}-flavor")
    team.apply(job(team.namespace, "holds", requests={"cpu": "2"}, seconds=None, queue=queue))
    eventually(lambda: team.state("holds") == "Admitted", what="the first to be admitted")
    team.apply(job(team.namespace, "waits", requests={"cpu": "2"}, seconds=None, queue=queue))
    eventually(lambda: team.reason("waits") == "InsufficientQuota", what="the second to wait")
    admission = team.workload("holds")["status"]["admission"]
    assert admission["shard"] == 3
    waits = team.workload("waits")["metadata"]["name"]
    path = f"/apis/{ADMITTER}/namespaces/{team.namespace}/workloads/{waits}/status"
    async with await HttpTransport.connect(replicas.account) as transport:

        async def admit(**wrong: int | None) -> None:
            body = {"status": {"admission": {**admission, **wrong}}}
            await transport.patch(path, body, query={"dryRun": "All"})

        await admit()
        for wrong in ({"epoch": admission["epoch"] - 1}, {"shard": None}, {"shard": 2}, {"shard": 64}):
            with pytest.raises(ClusterError, match="another controller leads") as caught:
                await admit(**wrong)
            assert is_fenced(caught.value)


def test_a_process_with_another_number_of_shards_waits_and_says_so(replicas: Set) -> None:
    replicas.add()
    replicas.settles()
    odd = replicas.add(number=2)
    odd.becomes("follower: waits for processes that run with --shards 4, and not 2")
    replicas.replicas[0].send(signal.SIGTERM)
    odd.becomes("leader of shards 0, 1")
    eventually(lambda: replicas.holders()[2:] == ["", ""], what="no such shards any more")

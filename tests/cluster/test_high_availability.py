"""Two controllers: one leads, the other follows it when it crashes, stops or is paused."""

import signal
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from admitter.client.errors import ClusterError, is_fenced
from admitter.client.transport import HttpTransport
from admitter.names import EPOCH_ANNOTATION, NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.control_plane import ControlPlane
from tests import commands
from tests.cluster.auditor import Auditor
from tests.cluster.controller import Controller
from tests.cluster.objects import ADMITTER, job
from tests.cluster.replicas import Replica
from tests.cluster.team import Team
from tests.cluster.waiting import eventually
from tests.faults.proxy import FaultProxy
from tests.faults.rules import Rule, held_up

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

Start = Callable[[Path, Path], Replica]

TAKEN_OVER_SECONDS = 15
"""After a crash it is five; a test runs beside others."""
HANDED_OVER_SECONDS = 4
"""It takes less than one, and after a crash at least the four in which no process decides."""


def admitter(cluster: Cluster, *arguments: str) -> None:
    done = commands.admitter(*arguments, f"--kubeconfig={cluster.kubeconfig}")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def account(own: ControlPlane, tmp_path: Path) -> Path:
    """A kubeconfig of the controller's account."""
    return own.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, tmp_path / "account")


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts controllers, which end with the test."""
    started: list[Replica] = []

    def begin(kubeconfig: Path, log_file: Path) -> Replica:
        started.append(Replica.start(kubeconfig, log_file))
        return started[-1]

    yield begin
    for replica in started:
        replica.end()


@pytest.fixture
def pair(start: Start, account: Path, tmp_path: Path) -> tuple[Replica, Replica]:
    """A leader and a follower."""
    leader = start(account, tmp_path / "first.log")
    leader.becomes("leader")
    follower = start(account, tmp_path / "second.log")
    follower.becomes("follower")
    return leader, follower


@pytest.fixture
def team(own_team: Team) -> Team:
    """A team with four CPUs."""
    own_team.offers({"cpu": {"on-demand": "4"}})
    return own_team


def is_admitted(team: Team, name: str) -> None:
    team.apply(job(team.namespace, name))
    eventually(lambda: team.state(name) in {"Admitted", "Finished"}, what=f"{name} to be admitted")


def seconds_until(replica: Replica, since: datetime) -> float:
    """How long after a moment a replica began to decide, by its own log."""
    (decides,) = replica.logged("deciding")
    return (datetime.fromisoformat(decides["timestamp"]) - since).total_seconds()


def epoch_of(team: Team, name: str) -> int:
    return int(team.workload(name)["status"]["admission"]["epoch"])


def epoch(own: Cluster) -> int:
    account = own.read("serviceaccount", SERVICE_ACCOUNT, f"--namespace={NAMESPACE}")
    return int(account["metadata"]["annotations"][EPOCH_ANNOTATION])


def test_a_follower_takes_over_when_the_leader_crashes(
    own: ControlPlane, pair: tuple[Replica, Replica], team: Team
) -> None:
    first, second = pair
    is_admitted(team, "before")
    assert epoch_of(team, "before") == epoch(own)
    killed = datetime.now(UTC)
    first.send(signal.SIGKILL)
    is_admitted(team, "after")
    assert seconds_until(second, killed) < TAKEN_OVER_SECONDS
    assert second.role == "leader"
    assert epoch_of(team, "after") == epoch(own) > epoch_of(team, "before")
    assert [line["epoch"] for line in second.logged("deciding")] == [epoch_of(team, "after")]


def test_a_leader_that_is_stopped_hands_over(pair: tuple[Replica, Replica], team: Team) -> None:
    first, second = pair
    first.send(signal.SIGTERM)
    assert first.process.wait(timeout=180) == 0
    (stopped,) = first.logged("stopped")
    second.becomes("leader")
    is_admitted(team, "after")
    assert second.logged("leading")[0]["handed_over"]
    assert seconds_until(second, datetime.fromisoformat(stopped["timestamp"])) < HANDED_OVER_SECONDS


def test_a_leader_that_was_paused_follows_and_has_changed_nothing(
    pair: tuple[Replica, Replica], team: Team
) -> None:
    first, second = pair
    limits = {(team.flavor("on-demand"), "cpu"): 4.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(*(job(team.namespace, f"early-{number}") for number in range(30)))
        eventually(lambda: len(auditor.admissions) >= 8, what="some to be admitted")
        first.send(signal.SIGSTOP)
        second.becomes("leader")
        team.apply(*(job(team.namespace, f"late-{number}") for number in range(20)))
        eventually(lambda: second.logged("started"), what="the second to start Jobs")
        first.send(signal.SIGCONT)
        eventually(lambda: first.logged("no longer leading"), what="the first to notice")
        first.becomes("follower")
        eventually(lambda: team.states() == {"Finished": 50}, timeout=300, what="all Jobs to finish")
    assert second.role == "leader"
    assert auditor.excesses == []
    assert set(auditor.admissions.values()) == {1}, "none was admitted twice"
    assert auditor.most_pods <= 4


@pytest.mark.usefixtures("pair")
async def test_an_admission_of_an_earlier_leader_is_refused(
    own: ControlPlane, team: Team, account: Path
) -> None:
    team.apply(job(team.namespace, "holds", requests={"cpu": "3"}, seconds=None))
    eventually(lambda: team.state("holds") == "Admitted", what="the first to be admitted")
    team.apply(job(team.namespace, "waits", requests={"cpu": "3"}, seconds=None))
    eventually(lambda: team.reason("waits") == "InsufficientQuota", what="the second to wait")
    admission = team.workload("holds")["status"]["admission"]
    waits = team.workload("waits")["metadata"]["name"]
    path = f"/apis/{ADMITTER}/namespaces/{team.namespace}/workloads/{waits}/status"

    async with await HttpTransport.connect(account) as transport:

        async def admit(epoch: int | None) -> None:
            body = {"status": {"admission": {**admission, "epoch": epoch}}}
            await transport.patch(path, body, query={"dryRun": "All"})

        now = epoch(own)
        await admit(now)
        for wrong in (now - 1, now + 1, None):
            with pytest.raises(ClusterError, match="another controller leads") as caught:
                await admit(wrong)
            assert is_fenced(caught.value)


async def test_a_grant_of_more_pods_by_an_earlier_leader_is_refused(
    own: ControlPlane, pair: tuple[Replica, Replica], team: Team, account: Path
) -> None:
    first, second = pair
    team.apply(job(team.namespace, "holds", seconds=None))
    eventually(lambda: team.state("holds") == "Admitted", what="it to be admitted")
    first.end()
    second.becomes("leader")
    eventually(lambda: epoch(own) > epoch_of(team, "holds"), what="another leader")
    path = f"/apis/{ADMITTER}/namespaces/{team.namespace}/workloads"
    path += f"/{team.workload('holds')['metadata']['name']}/status"

    async with await HttpTransport.connect(account) as transport:

        async def grant(granted: int, epoch: int) -> None:
            resize = {"granted": granted, "wanted": 9, "changedAt": "2026-01-01T00:00:00Z"}
            body = {"status": {"resize": resize, "admission": {"epoch": epoch}}}
            await transport.patch(path, body, query={"dryRun": "All"})

        with pytest.raises(ClusterError, match="another controller leads") as caught:
            await grant(2, epoch_of(team, "holds"))
        assert is_fenced(caught.value)
        await grant(2, epoch(own))


def test_a_start_that_arrives_too_late_starts_nothing(
    own: ControlPlane, team: Team, account: Path, start: Start, tmp_path: Path
) -> None:
    go = threading.Event()
    held = Rule("held up", held_up(go), lambda call: call.kind == "job")
    with FaultProxy(own, tmp_path / "proxy", 1, [held]) as proxy:
        first = start(proxy.kubeconfig(account, tmp_path / "slowly"), tmp_path / "first.log")
        first.becomes("leader")
        team.apply(job(team.namespace, "late", requests={"cpu": "4"}, seconds=None))
        eventually(lambda: proxy.count()["job", "held up"] == 1, what="the start to be on its way")
        first.end()
        team.patch("workload", team.workload("late")["metadata"]["name"], {"spec": {"active": False}})
        team.apply(job(team.namespace, "next", requests={"cpu": "4"}, seconds=None))
        start(account, tmp_path / "second.log")
        team.runs("next")
        assert team.state("late") == "Pending"
        before = team.read("job", "late")
        assert before["metadata"]["annotations"]["admitter.dev/returned"]
        go.set()
        eventually(lambda: proxy.answered["job"] == 1, what="the start to arrive")
        assert team.read("job", "late")["spec"]["suspend"], "it was for the Job as it had been"
        assert team.pods("late") == []


def test_admissions_are_taken_after_admitter_was_removed_and_installed_again(
    own: ControlPlane, start: Start, tmp_path: Path
) -> None:
    """The last one: it leaves nothing of Admitter."""
    for number in range(2):
        admitter(own, "install", "--without-deployment")
        account = own.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, tmp_path / f"account-{number}")
        replica = start(account, tmp_path / f"{number}.log")
        name = f"time-{number}"
        own.run_kubectl("create", "namespace", name)
        own.run_kubectl("label", "namespace", name, f"team={name}")
        team = Team(own, name, Controller(tmp_path / "none"))
        team.offers({"cpu": {"on-demand": "4"}})
        team.apply(job(name, "runs", seconds=None))
        team.runs("runs")
        replica.send(signal.SIGTERM)
        assert replica.process.wait(timeout=180) == 0
        admitter(own, "uninstall", "--yes")

"""What a user with the role `edit` in one namespace can ask and do, by a token of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from admitter.cli.complaints import CommandError
from admitter.cli.main import app
from admitter.client.errors import DeniedError
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


class Tenant:
    """The user of the team's namespace, at a terminal."""

    def __init__(self, team: Team, user: Cluster, folder: Path) -> None:
        self.team = team
        self._user = user
        self._folder = folder
        user.run_kubectl("config", "set-context", "--current", f"--namespace={team.namespace}")

    def run(self, *arguments: str) -> Result:
        """Run a command in the context of the namespace."""
        return CliRunner().invoke(app, [*arguments, f"--kubeconfig={self._user.kubeconfig}"])

    def says(self, *arguments: str) -> str:
        """What a command prints that works."""
        answer = self.run(*arguments)
        assert answer.exit_code == 0, (answer.stderr, answer.exception)
        return answer.stdout

    def tries(self, name: str, cpu: str) -> str:
        """What what-if says of a further Job."""
        answer = json.loads(self.says("what-if", "-f", self.file(name, cpu), "-o", "json"))
        assert answer["restricted"].endswith("ClusterRole admitter-reader gives it.")
        (found,) = answer["workloads"]
        assert (found["namespace"], found["name"]) == (self.team.namespace, name)
        return str(found["effect"])

    def file(self, name: str, cpu: str) -> str:
        """A file with a Job of the namespace."""
        path = self._folder / f"{name}.json"
        made = self.job(name, cpu)
        del made["metadata"]["namespace"]  # that of the context counts, as for kubectl
        path.write_text(json.dumps(made))
        return str(path)

    def job(self, name: str, cpu: str) -> Json:
        """A Job of the namespace that asks for so much."""
        return job(self.team.namespace, name, requests={"cpu": cpu}, seconds=None)

    def seen(self) -> Json:
        """What the LocalQueue says of its ClusterQueue."""
        found: Json = self.team.read("localqueue", "main").get("status", {}).get("clusterQueue") or {}
        return found


@pytest.fixture
def tenant(team: Team, user: Cluster, tmp_path: Path) -> Tenant:
    team.offers({"cpu": {"on-demand": "4"}})
    return Tenant(team, user, tmp_path)


def test_a_tenant_learns_quota_use_and_line_and_tries_jobs(tenant: Tenant) -> None:
    """What is foretold of two Jobs by the LocalQueue alone then happens to them."""
    team = tenant.team
    team.apply(tenant.job("runs", "3"))
    eventually(lambda: team.state("runs") == "Admitted", what="an admission")
    team.apply(tenant.job("large", "2"))
    eventually(lambda: (tenant.seen().get("line") or [{}])[0].get("position") == 1, what="a line of one")
    eventually(lambda: tenant.seen()["flavors"][0]["resources"][0]["free"] == "1", what="the use")

    rows = [line.split() for line in tenant.says("get", "workloads").splitlines()[1:]]
    assert [(row[1], row[3], row[5], row[6]) for row in rows[1:]] == [
        ("large", team.cluster_queue, "Pending", "1")
    ]
    told = tenant.says("explain", "large").splitlines()
    assert told[2:] == [
        "It is number 1 in line.",
        f"ClusterQueue {team.cluster_queue}, as LocalQueue main told it last: 1 wait, 1 hold quota",
        f"  {team.flavor('on-demand')}: 3 of 4 cpu in use; 1 free, at most 4",
    ]
    answers = {name: tenant.tries(name, cpu) for name, cpu in (("small", "1"), ("more", "2"), ("huge", "5"))}
    assert answers == {"small": "admitted", "more": "waits", "huge": "can never run"}
    team.apply(tenant.job("small", "1"), tenant.job("huge", "5"))
    eventually(lambda: team.state("small") == "Admitted", what="an admission")
    eventually(lambda: team.reason("huge") == "NeverFits", what="a refusal")


def test_what_the_administrator_hides_is_not_told(tenant: Tenant) -> None:
    team = tenant.team
    team.apply(tenant.job("runs", "3"))
    team.runs("runs")
    team.apply(tenant.job("large", "2"))
    in_use = f"3 of 4 cpu of {team.flavor('on-demand')} in use, 1 free, 2 asked (at "

    def message() -> str:
        return str(team.condition("large", "QuotaReserved").get("message"))

    eventually(lambda: in_use in message(), what="a message with the use")
    eventually(lambda: tenant.seen().get("pendingWorkloads") == 1, what="a pending Workload")
    team.patch("clusterqueue", team.cluster_queue, {"spec": {"visibility": "Namespace"}})
    eventually(lambda: not tenant.seen(), what="nothing to be seen")
    plain = f": too much of the 4 cpu of {team.flavor('on-demand')} is in use"
    eventually(lambda: message().endswith(plain), what="a message without the use")
    assert tenant.says("explain", "large").splitlines()[2:] == [
        f"LocalQueue main leads to ClusterQueue {team.cluster_queue}, and tells no more of it."
    ]
    assert " large " in tenant.says("get", "workloads")
    refused = tenant.run("what-if", "-f", tenant.file("further", "1"))
    assert "LocalQueue main tells nothing of its ClusterQueue." in str(refused.exception)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("get", "workloads", "-A"), "in the whole cluster; ClusterRole admitter-reader gives it."),
        (("history", "-A"), "to list workloads in the whole cluster; ClusterRole admitter-reader gives it."),
        (("what-if", "--without", "Cohort/all"), "only further Jobs of one namespace can be tried."),
        (("lint", "--live"), "in the whole cluster; ClusterRole admitter-reader gives it."),
        (("snapshot",), "in the whole cluster; ClusterRole admitter-reader gives it."),
        (("web", "--bind=127.0.0.1:0"), "in the whole cluster; ClusterRole admitter-reader gives it."),
        (("hold", "cq/{queue}"), "to get clusterqueues in the whole cluster; ClusterRole admitter-admin"),
        (("drain", "lq/main"), "to patch localqueues in namespace {namespace}; ClusterRole admitter-admin"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_needs_more_rights_says_which_and_the_role(
    tenant: Tenant, command: tuple[str, ...], words: str
) -> None:
    names = {"queue": tenant.team.cluster_queue, "namespace": tenant.team.namespace}
    answer = tenant.run(*(part.format(**names) for part in command))
    assert answer.exit_code == 1
    assert isinstance(answer.exception, DeniedError | CommandError)
    said = str(answer.exception)
    assert said.startswith("A right is missing: ")
    assert words.format(**names) in said
    assert ("\n" in said, "forbidden" in said) == (False, False)


def test_a_tenant_reads_what_happened_or_that_nothing_is_known(tenant: Tenant) -> None:
    team = tenant.team
    team.apply(tenant.job("runs", "3"))
    eventually(lambda: "Admitted" in tenant.says("history", "job/runs"), what="an entry")
    where = f"in namespace {team.namespace}; -A: in any"
    for asked, words in (
        (("job/gone",), f"no history of job/gone {where}\n"),
        (("--reason", "Preempted"), f"no history of Workloads by reason Preempted {where}\n"),
    ):
        answer = tenant.run("history", *asked)
        assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "", words)


def test_a_tenant_pauses_and_resumes_a_job(tenant: Tenant) -> None:
    team = tenant.team
    team.apply(tenant.job("runs", "1"))
    team.runs("runs")
    assert "It is evicted: its pods end" in tenant.says("pause", "job/runs")
    eventually(lambda: team.reason("runs") == "Inactive" and not team.pods("runs"), what="a pause")
    assert "It competes for quota again in LocalQueue main." in tenant.says("resume", "job/runs")
    team.runs("runs")


def test_an_administrator_holds_drains_and_resumes_a_queue_by_kubectl(tenant: Tenant) -> None:
    team = tenant.team

    def kubectl(*arguments: str) -> list[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        access = {"KUBECONFIG": str(team.cluster.kubeconfig), "PATH": path}
        context = [f"--context={team.cluster.context}"] if team.cluster.context else []
        command = [str(team.cluster.kubectl), "admitter", *arguments, *context]
        answer = subprocess.run(
            command, env={**os.environ, **access}, capture_output=True, text=True, check=True
        )
        return answer.stdout.splitlines()

    queue = f"cq/{team.cluster_queue}"
    team.apply(tenant.job("runs", "3"))
    team.runs("runs")
    team.apply(tenant.job("waits", "1"))
    team.runs("waits")
    eventually(
        lambda: team.read("clusterqueue", team.cluster_queue).get("status", {}).get("admittedWorkloads") == 2,
        what="two that hold quota",
    )
    assert kubectl("hold", queue)[1] == "  2 with quota: they run to their end"
    team.apply(tenant.job("later", "1"))
    eventually(lambda: team.reason("later") == "ClusterQueueStopped", what="a hold")
    assert team.states()["Admitted"] == 2
    assert "stopPolicy Hold -> HoldAndDrain" in kubectl("drain", queue)[0]
    eventually(lambda: team.states() == {"Pending": 3}, what="an empty queue")
    assert kubectl("resume", queue)[0].endswith("stopPolicy HoldAndDrain -> None")
    eventually(lambda: team.states()["Admitted"] >= 2, what="admissions")


@pytest.fixture
def reader(tenant: Tenant) -> Iterator[Tenant]:
    """The same user, with the ClusterRole for reading."""
    team = tenant.team
    account = f"--serviceaccount={team.namespace}:user"
    name = f"{team.namespace}-reads"
    command = ("create", "clusterrolebinding", name, "--clusterrole=admitter-reader", account)
    team.cluster.run_kubectl(*command)
    yield tenant
    team.cluster.run_kubectl("delete", "clusterrolebinding", name)


def test_the_role_admitter_reader_gives_whole_answers_and_writes_nothing(reader: Tenant) -> None:
    team = reader.team
    team.apply(reader.job("large", "5"))
    eventually(lambda: team.reason("large") == "NeverFits", what="a refusal")
    eventually(lambda: reader.run("snapshot").exit_code == 0, what="API server that knows the binding")
    answer = json.loads(reader.says("explain", "large", "-o", "json"))
    assert answer["never"]
    assert "restricted" not in answer
    assert " large " in reader.says("get", "workloads", "-A")
    harm = reader.run("what-if", "--without", f"ClusterQueue/{team.cluster_queue}", "-o", "json")
    assert (harm.exit_code, "restricted" in harm.stdout) == (0, False)
    assert reader.run("hold", f"cq/{team.cluster_queue}").exit_code == 1

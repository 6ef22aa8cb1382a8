"""What is seen of a controller and done with it: metrics, log, events, configuration file, and its end."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.metrics_core import Metric

from admitter.controllers.lifecycle import STOP_SECONDS
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.test_run import answer, running_controller
from tests.cluster.waiting import eventually
from tests.faults.controlled import Controlled, controlled
from tests.faults.rules import Call, Rule, cut_after, held_up
from tests.metrics import against_conventions, documented, families, labels

pytestmark = pytest.mark.cluster

DECISIONS = {"admitted", "started", "evicted", "released", "finished"}


@pytest.fixture
def controller(own: ControlPlane, tmp_path: Path) -> Iterator[Controlled]:
    """The only controller of the cluster, behind a proxy of the test's own."""
    with controlled(own, tmp_path / "controller", seed=7) as running:
        yield running


@pytest.fixture
def team(own_team: Team) -> Team:
    """A team without quota."""
    return own_team


def lines(folder: Path) -> list[dict[str, Any]]:
    """The log, line by line; the last one may not be complete yet."""
    return [json.loads(line) for line in (folder / "log").read_text().splitlines() if line.endswith("}")]


def told(folder: Path, name: str) -> list[str]:
    """What was decided about a Job, in order."""
    return [each["event"] for each in lines(folder) if each.get("job") == name and each["event"] in DECISIONS]


def page_of(folder: Path) -> str:
    found = re.search(r'"probes":\s*"([0-9.:]+)"', (folder / "log").read_text())
    assert found is not None
    with urlopen(f"http://{found[1]}/metrics") as response:
        return str(response.read().decode())


def total(found: dict[str, Metric], name: str, **wanted: str) -> float:
    """The sum of a metric's series that have these labels."""
    ends = (name, f"{name}_count")
    samples = [s for family in found.values() for s in family.samples if s.name in ends]
    return sum(s.value for s in samples if wanted.items() <= s.labels.items())


class Once:
    """Concerns the first admission alone."""

    def __init__(self) -> None:
        self.done = False

    def __call__(self, call: Call) -> bool:
        first = call.kind == "admission" and not self.done
        self.done = self.done or first
        return first


def preempt(team: Team) -> None:
    """One Job is evicted for another one, and runs again after it; a third can never run."""
    team.offers({"cpu": {"on-demand": "2"}}, preemption={"withinClusterQueue": "LowerPriority"})
    urgent = team.priority_class("urgent", 1000)
    team.apply(job(team.namespace, "low", requests={"cpu": "2"}, seconds=None))
    team.runs("low")
    team.apply(job(team.namespace, "big", requests={"cpu": "5"}))
    eventually(lambda: team.reason("big") == "NeverFits", what="the large one to be told")
    pod = {"priorityClassName": urgent}
    team.apply(job(team.namespace, "high", requests={"cpu": "2"}, seconds=3, pod=pod))
    eventually(lambda: team.state("high") == "Finished", what="the urgent one to finish")
    team.runs("low")


def test_each_decision_is_one_line_and_counts_once_though_an_answer_was_lost(
    team: Team, controller: Controlled
) -> None:
    controller.proxy.rules = (Rule("cut after", cut_after, Once()),)
    preempt(team)
    expected = ["admitted", "started", "evicted", "released", "admitted", "started"]
    eventually(lambda: told(controller.folder, "low") == expected, what="all lines of the first")
    whole = ["admitted", "started", "finished"]
    eventually(lambda: told(controller.folder, "high") == whole, what="all lines of the second")
    assert controller.proxy.count()["admission", "cut after"] == 1
    eventually(lambda: "Preempted" in team.events("low"), what="an event that says so")

    (evicted,) = [each for each in lines(controller.folder) if each["event"] == "evicted"]
    workload = team.workload("high")["metadata"]["name"]
    assert evicted["by"] == f"{team.namespace}/{workload}"
    named = {"namespace": team.namespace, "job": "low", "cluster_queue": team.cluster_queue}
    assert evicted.items() >= (named | {"reason": "Preempted", "level": "info"}).items()
    (refused,) = [each for each in lines(controller.folder) if each.get("job") == "big"]
    assert (refused["event"], refused["queue"], refused["reason"]) == ("refused", "main", "NeverFits")
    token = yaml.safe_load((controller.folder / "kubeconfig").read_text())["users"][0]["user"]["token"]
    assert token not in controller.log

    queue = {"cluster_queue": team.cluster_queue, "kind": "ClusterQueue"}
    spot = queue | {"flavor": team.flavor("on-demand"), "resource": "cpu"}
    counts = {
        ("admitter_admissions_total", 3): queue,
        ("admitter_admission_wait_seconds", 3): queue,
        ("admitter_evictions_total", 1): queue | {"reason": "Preempted"},
        ("admitter_finished_workloads_total", 1): queue | {"reason": "JobSucceeded"},
        ("admitter_pending_workloads", 1): queue | {"status": "active"},
        ("admitter_pending_workloads", 0): queue | {"status": "inadmissible"},
        ("admitter_admitted_workloads", 1): queue,
        ("admitter_quota_used", 2): spot,
        ("admitter_quota_min", 2): spot,
        ("admitter_quota_free", 0): spot,
    }

    def wrong() -> dict[tuple[str, int], float]:
        shown = families(page_of(controller.folder))
        values = {key: total(shown, key[0], **wanted) for key, wanted in counts.items()}
        return {key: value for key, value in values.items() if value != key[1]}

    eventually(lambda: wrong() == {}, what="all counts")
    patched = {"verb": "patch", "resource": "workloads/status", "code": "200"}
    # Two of the three admissions, since the answer of one was lost; evicted, released, finished, refused. Why
    # a Workload waits for a moment only is written or not, as the server has time.
    found = families(page_of(controller.folder))
    assert total(found, "admitter_api_calls_total", **patched) >= 6
    assert total(found, "admitter_cycle_duration_seconds") > 0


@pytest.mark.usefixtures("controller")
def test_events_tell_why_a_job_waits_and_when_it_is_admitted(team: Team) -> None:
    """This controller is not killed: what one was about to tell, the next one does not."""
    team.offers({"cpu": {"spot": "1"}})
    team.apply(job(team.namespace, "first", seconds=None))
    eventually(lambda: team.state("first") == "Admitted", what="the first Job to be admitted")
    team.apply(job(team.namespace, "second"))
    eventually(lambda: "InsufficientQuota" in team.events("second"), what="the event that says why it waits")
    spot = team.flavor("spot")
    words = (
        f"asks for 1 cpu from ClusterQueue {team.cluster_queue}: 1 of 1 cpu of {spot} in use, 0 free, "
        "1 asked (at 2"
    )
    message = team.events("second")["InsufficientQuota"]
    assert message.startswith(words)
    condition = team.condition("second", "QuotaReserved")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "InsufficientQuota",
        message,
    )
    rows = {row.split()[0]: row.split() for row in team.kubectl("get", "wl").splitlines()}
    assert rows["NAME"][1:5] == ["KIND", "OBJECT", "QUEUE", "CLUSTERQUEUE"]
    shown = rows[team.workload("second")["metadata"]["name"]][1:5]
    assert shown == ["Job", "second", "main", team.cluster_queue]

    def columns() -> tuple[list[str], list[str]]:
        heading, queue = team.kubectl("get", "cq", team.cluster_queue).splitlines()
        return heading.split()[-4:], queue.split()[-7:-1]

    headings = ["SCARCEST", "ACTIVE", "REASON", "AGE"]
    expected = headings, ["1/1", "cpu", "of", spot, "True", "Ready"]
    eventually(lambda: columns() == expected, what="the columns of the queue")
    team.kubectl("delete", "job", "first")
    eventually(lambda: "Admitted" in team.events("second"), what="the event of its admission")


def test_what_a_controller_shows_is_what_the_documentation_says(team: Team, controller: Controlled) -> None:
    preempt(team)
    page = page_of(controller.folder)
    found, written = families(page), documented()
    assert "_created" not in page
    assert {name: family.type for name, family in found.items()} == {n: d.kind for n, d in written.items()}
    assert {n: labels(f) for n, f in found.items() if f.samples} == {
        n: d.labels for n, d in written.items() if found[n].samples
    }
    assert list(against_conventions(found.values())) == []
    assert "process_resident_memory_bytes" in page


def test_a_workload_without_a_queue_or_in_a_stopped_one_is_inadmissible(
    team: Team, controller: Controlled
) -> None:
    queue = team.offers({"cpu": {"on-demand": "2"}}, stopPolicy="Hold")
    team.apply(job(team.namespace, "held"), job(team.namespace, "lost", queue="nowhere"))
    eventually(lambda: team.reason("held") and team.reason("lost"), what="both to be told")

    def inadmissible() -> list[float]:
        found, wanted = families(page_of(controller.folder)), {"status": "inadmissible"}
        return [
            total(found, "admitter_pending_workloads", cluster_queue=name, **wanted) for name in (queue, "")
        ]

    eventually(lambda: inadmissible() == [1, 1], what="one in the stopped queue, and one in none")


def test_a_controller_with_a_configuration_file(own: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: config.admitter.dev/v1alpha1\nkind: Configuration\nbind: 127.0.0.2:0\n")
    with running_controller(own, tmp_path, "--config", str(file)):
        eventually(lambda: answer(tmp_path, "/readyz"), what="an answer")
        assert '"probes":"127.0.0.2:' in (tmp_path / "log").read_text()


@pytest.fixture
def go(team: Team, controller: Controlled) -> Iterator[threading.Event]:
    """An admission is under way, and does not come to its end before this is set."""
    made = threading.Event()
    controller.proxy.rules = (Rule("held up", held_up(made), lambda call: call.kind == "admission"),)
    team.offers({"cpu": {"on-demand": "2"}})
    team.apply(job(team.namespace, "first"))
    eventually(lambda: controller.proxy.count()["admission", "held up"] == 1, what="an admission on its way")
    yield made
    made.set()


def test_what_is_being_written_comes_to_its_end_before_the_process_does(
    team: Team, controller: Controlled, go: threading.Event
) -> None:
    controller.process.send_signal(signal.SIGTERM)
    eventually(lambda: '"event":"stopping"' in controller.log, what="the signal to be taken")
    team.apply(job(team.namespace, "late"))
    go.set()
    assert controller.process.wait(timeout=180) == 0
    assert team.state("first") == "Admitted"
    assert told(controller.folder, "first") == ["admitted"], "nothing is begun any more"
    assert team.events("first").get("Admitted"), "its user is told"
    assert team.state("late") in {"", "Pending"}
    assert lines(controller.folder)[-1]["event"] == "stopped"


def test_what_takes_too_long_is_broken_off(team: Team, controller: Controlled, go: threading.Event) -> None:
    began = controller.proxy.now()
    controller.process.send_signal(signal.SIGTERM)
    assert controller.process.wait(timeout=180) == 0
    assert controller.proxy.now() - began >= STOP_SECONDS
    assert not go.is_set()
    assert team.state("first") != "Admitted"


def test_a_second_signal_ends_it_at_once(controller: Controlled, go: threading.Event) -> None:
    controller.process.send_signal(signal.SIGTERM)
    eventually(lambda: '"event":"stopping"' in controller.log, what="the signal to be taken")
    controller.process.send_signal(signal.SIGTERM)
    assert controller.process.wait(timeout=180) == -signal.SIGTERM
    assert not go.is_set()
    assert '"event":"stopped"' not in controller.log

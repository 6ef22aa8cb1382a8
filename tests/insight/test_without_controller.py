"""Commands in a cluster: they say whether a controller decides, and promise nothing without one."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.client.errors import api_error
from admitter.client.transport import HttpTransport
from admitter.election.leases import LEASES
from tests.apiserver.server import ApiServer
from tests.insight.asking import AT_LEISURE
from tests.insight.states import State

Json = dict[str, Any]
ONCE = "nothing stands in its way: it is admitted"


class Cluster(ApiServer):
    """An API server with the objects of a state.

    Attributes:
        denied: parts of paths that its user may not list.
    """

    host = "https://127.0.0.1:6443"

    def __init__(self, state: State) -> None:
        super().__init__()
        self.denied: tuple[str, ...] = ()
        for plural, raws in state.objects.items():
            for raw in raws:
                metadata = raw["metadata"]
                self.objects[plural][metadata.get("namespace", ""), metadata["name"]] = raw

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        if any(part in path for part in self.denied):
            raise api_error(403, {"message": f"tina cannot list {path}"})
        return await super().get(path, query)

    def lease(self, age: float) -> None:
        """The Lease of a controller that renewed it some seconds ago."""
        then = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.objects["leases"]["admitter-system", "admitter-controller"] = {
            "metadata": {
                "namespace": "admitter-system",
                "name": "admitter-controller",
                "resourceVersion": "7",
                "labels": {"app.kubernetes.io/part-of": "admitter", "admitter.dev/shard": "0"},
                "annotations": {"admitter.dev/shards": "1"},
            },
            "spec": {
                "holderIdentity": "pod_1",
                "leaseDurationSeconds": 60,
                "acquireTime": then,
                "renewTime": then,
            },
        }


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A queue with room for one more Job, and one Job that waits; no controller has run yet."""
    state = State()
    state.queue("team-a", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "team-a")
    state.holds("a", "runs", {"cpu": ("2", "default")}, cluster_queue="team-a")
    state.holds("a", "done", {"cpu": ("2", "default")}, cluster_queue="team-a", since=-900, finished=-800)
    state.waits("a", "fits", {"cpu": "2"}, created=-10)
    state.waits("a", "queued", {"cpu": "2"}, created=-5)
    made = Cluster(state)

    async def connected(*_: object, **__: object) -> Cluster:
        return made

    monkeypatch.setattr(HttpTransport, "connect", connected)
    return made


def told(*arguments: str) -> tuple[str, str]:
    """What a command prints, and what it prints as a warning."""
    answer = CliRunner().invoke(app, [*arguments])
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    return answer.stdout, answer.stderr


def explained(name: str, *options: str) -> list[str]:
    return told("explain", name, "-n", "a", *AT_LEISURE, *options)[0].splitlines()


def answered(name: str) -> Json:
    answer: Json = json.loads("\n".join(explained(name, "-o", "json")))
    return answer


def test_explain_says_below_the_headline_that_no_controller_decides(cluster: Cluster) -> None:
    _, rule, controller, *_ = explained("fits")
    assert rule == f"  {ONCE} once a controller decides"
    assert controller.startswith("  No controller has run here yet: there is no Lease admitter-system/")
    assert "admitter run" in controller
    cluster.lease(age=240.0)
    _, rule, controller, *rest = explained("queued")
    assert rule.startswith("  waits for 2 × cpu")
    assert "was last renewed 4 min " in controller
    assert "ago by pod_1. Nothing is admitted until one runs" in controller
    assert rest[-1].startswith("Start, counted from when a controller runs: ")
    assert any("No controller decides" in line for line in explained("runs")), "its quota is never freed"
    assert not any("controller" in line for line in explained("done"))


def test_explain_of_a_cluster_with_a_controller_is_as_it_was(cluster: Cluster) -> None:
    cluster.lease(age=0.0)
    assert explained("fits")[1:] == [f"  {ONCE} at once"]
    assert explained("queued")[-1].startswith("Start: ")


def test_who_may_not_read_the_lease_is_promised_nothing_and_told_nothing_wrong(cluster: Cluster) -> None:
    cluster.denied = (LEASES,)
    assert explained("fits")[1:] == [f"  {ONCE} at once if a controller runs"]
    controller = answered("fits")["controller"]
    assert (controller["state"], controller["holder"], controller["shards"]) == ("Unknown", None, [])
    assert controller["message"] == f"Whether a controller runs is unknown: tina cannot list {LEASES}"
    assert told("get", "workloads", "-A")[1] == ""


def test_programs_are_told_by_explain(cluster: Cluster) -> None:
    answer = answered("fits")
    assert (answer["controller"]["state"], answer["message"]) == (
        "Absent",
        f"{ONCE} once a controller decides",
    )
    cluster.lease(age=0.0)
    answer = answered("fits")
    assert (answer["controller"]["state"], answer["controller"]["holder"]) == ("Leading", "pod_1")
    assert answer["message"] == f"{ONCE} at once"


@pytest.mark.parametrize("form", ["table", "wide", "json"])
def test_get_and_what_if_warn_beside_their_answer(cluster: Cluster, form: str) -> None:
    command = ("get", "workloads", "-A", "-o", form)
    printed, warned = told(*command)
    assert "fits" in printed
    assert "No controller" not in printed
    assert warned.startswith("Warning: No controller has run here yet: ")
    assert told("what-if", "--without", "ClusterQueue/team-a", *AT_LEISURE)[1] == warned
    cluster.lease(age=0.0)
    assert told(*command)[1] == ""
    assert told("what-if", "--without", "ClusterQueue/team-a", *AT_LEISURE)[1] == ""


def test_a_user_that_sees_the_status_alone_is_told_too(cluster: Cluster) -> None:
    cluster.denied = ("/nodes",)
    printed, warned = told("explain", "runs", "-n", "a")
    assert printed.startswith("a/runs: Admitted")
    assert warned.startswith("Warning: No controller has run here yet: ")
    answer = json.loads(told("explain", "runs", "-n", "a", "-o", "json")[0])
    assert answer["controller"]["state"] == "Absent"


@pytest.mark.usefixtures("cluster")
def test_a_snapshot_is_of_no_controller(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(told("snapshot")[0])
    assert explained("fits", "--state", str(path))[1:] == [f"  {ONCE} at once"]
    answer = json.loads("\n".join(explained("fits", "--state", str(path), "-o", "json")))
    assert answer["controller"] is None
    assert told("get", "workloads", "-A", "--state", str(path))[1] == ""


def test_lint_finds_that_no_controller_decides(cluster: Cluster) -> None:
    def linted() -> list[Json]:
        answer = CliRunner().invoke(app, ["lint", "--live", "-o", "json"])
        found: list[Json] = json.loads(answer.stdout)
        assert answer.exit_code == any(each["severity"] == "error" for each in found)
        return [each for each in found if each["rule"] == "NoController"]

    (found,) = linted()
    assert (found["severity"], found["object"]) == ("error", "Lease admitter-system/admitter-controller")
    assert found["message"].startswith("No controller has run here yet: ")
    cluster.lease(age=240.0)
    assert "was last renewed 4 min" in linted()[0]["message"]
    cluster.lease(age=0.0)
    assert linted() == []
    cluster.denied = (LEASES,)
    assert linted() == [], "it is not known"

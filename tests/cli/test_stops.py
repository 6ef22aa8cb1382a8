"""`admitter pause`, `hold`, `drain` and `resume`, on an API server in memory."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from admitter.cache.world import OWN
from admitter.cli import stops
from admitter.cli.complaints import CommandError
from admitter.cli.main import app
from admitter.client.errors import DeniedError, api_error
from admitter.documents import ManifestError
from admitter.insight.controller_status import ControllerStatus
from tests.apiserver.loop import run
from tests.apiserver.server import ApiServer, Json
from tests.cli.test_alike import JOB_NAMES

COUNTS = {"pendingWorkloads": 3, "admittedWorkloads": 2}


class Desk:
    """A cluster with a queue and a Job, and a user with a terminal."""

    def __init__(self) -> None:
        self.server = ApiServer()
        self.make("/api/v1/namespaces/blue")
        self.queue = f"{OWN}/clusterqueues/gpus"
        self.local = f"{OWN}/namespaces/blue/localqueues/main"
        self.workload = f"{OWN}/namespaces/blue/workloads/job-train-7"
        self.make(self.queue, spec={})
        self.make(self.local, spec={"clusterQueue": "gpus"})
        for queue in (self.queue, self.local):
            self.tell(queue, **COUNTS)
        owner = {"kind": "Job", "name": "train-7", "uid": "u", "controller": True}
        pod_sets = [{"name": "main", "count": 1}]
        self.make(self.workload, owners=[owner], spec={"queueName": "main", "podSets": pod_sets}, status={})

    def make(
        self, path: str, *, labels: Json | None = None, owners: list[Json] | None = None, **body: Any
    ) -> None:
        """Make an object."""
        above, _, name = path.rpartition("/")
        metadata = {"name": name, "labels": labels or {}, "ownerReferences": owners or []}
        self._act(partial(self.server.make, above, {"metadata": metadata, **body}))

    def tell(self, path: str, **status: Any) -> None:
        """Write the status of an object."""
        self._act(partial(self.server.write, f"{path}/status", {"status": status}))

    @staticmethod
    def _act(act: Callable[[], Any]) -> None:
        """Change something at the API server, which takes the time from an event loop."""

        async def acting() -> None:
            act()

        run(acting())

    def spec(self, path: str) -> Json:
        """What an object has in its spec."""
        found: Json = self.server.find(path)["spec"]
        return found

    def ask(
        self, _kubeconfig: Path | None, _context: str | None, question: Callable[[Any], Awaitable[Any]]
    ) -> tuple[Any, ControllerStatus]:
        """Takes the place of what asks a cluster."""

        async def asked() -> Any:
            return await question(self.server)

        return run(asked()), ControllerStatus((), 0.0, "not asked")

    def say(self, *arguments: str, within: tuple[str, ...] = ("-n", "blue")) -> list[str]:
        """The lines that a command prints."""
        answer = CliRunner().invoke(app, [*arguments, *within])
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        assert answer.exit_code == 0, answer.stderr
        return answer.stdout.splitlines()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk()
    monkeypatch.setattr(stops, "ask_beside", made.ask)
    return made


def test_a_queue_on_hold_lets_run_what_runs(desk: Desk) -> None:
    assert desk.say("hold", "cq/gpus") == [
        "ClusterQueue gpus: stopPolicy None -> Hold",
        "  2 with quota: they run to their end",
        "  3 waiting: they keep their places, and none is admitted until admitter resume cq/gpus",
    ]
    assert desk.spec(desk.queue)["stopPolicy"] == "Hold"
    assert desk.say("hold", "cq/gpus") == [
        "ClusterQueue gpus has stopPolicy Hold already: nothing is changed."
    ]


@pytest.mark.parametrize("name", ["lq/main", "LocalQueue/main", "localqueues.admitter.dev/main"])
def test_a_drained_queue_evicts_and_is_resumed(desk: Desk, name: str) -> None:
    title, runs, waits = desk.say("drain", name)
    assert title == "LocalQueue blue/main: stopPolicy None -> HoldAndDrain"
    assert runs == "  2 with quota: they are evicted, their pods end, and they wait in line again"
    assert waits.endswith("until admitter resume lq/main -n blue")
    assert desk.spec(desk.local)["stopPolicy"] == "HoldAndDrain"
    assert desk.say("resume", name)[1:] == [
        "  2 with quota: they run on",
        "  3 waiting: they compete for quota again",
    ]
    assert desk.spec(desk.local)["stopPolicy"] == "None"


@pytest.mark.parametrize("name", ["train-7", *JOB_NAMES, "wl/job-train-7", "job-train-7"])
def test_a_job_is_paused_and_resumed(desk: Desk, name: str) -> None:
    title, what = desk.say("pause", name)
    assert title == "Job blue/train-7: active of Workload job-train-7 true -> false"
    words = "  It waits already, and keeps its place in line until admitter resume job/train-7 -n blue."
    assert what == words
    assert desk.spec(desk.workload)["active"] is False
    assert desk.say("pause", name) == ["Job blue/train-7 is paused already: nothing is changed."]
    assert desk.say("resume", name)[1:] == ["  It competes for quota again in LocalQueue main."]
    assert desk.spec(desk.workload)["active"] is True


def test_a_workload_of_the_name_of_a_job_is_another_one(desk: Desk) -> None:
    by_hand = f"{OWN}/namespaces/blue/workloads/train-7"
    pod_sets = [{"name": "main", "count": 1}]
    desk.make(by_hand, spec={"queueName": "main", "podSets": pod_sets}, status={})
    assert desk.say("pause", "job/train-7")[0].startswith("Job blue/train-7: ")
    assert (desk.spec(desk.workload).get("active"), desk.spec(by_hand).get("active")) == (False, None)
    title, what = desk.say("pause", "wl/train-7")
    assert title.startswith("Workload blue/train-7: ")
    assert "until admitter resume wl/train-7 -n blue" in what
    desk.say("resume", "job/train-7")
    assert (desk.spec(desk.workload)["active"], desk.spec(by_hand)["active"]) == (True, False)


def test_the_workloads_are_listed_once_for_all_that_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, get = list[str](), desk.server.get

    async def noted(path: str, query: Any = None) -> Json:
        asked.append(path)
        return await get(path, query)

    monkeypatch.setattr(desk.server, "get", noted)
    assert len(desk.say("pause", "train-7", "job/train-7", "train-7")) == 4
    assert asked == [f"{OWN}/namespaces/blue/workloads"]


def test_a_job_that_runs_is_evicted(desk: Desk) -> None:
    pod_set = {"name": "main", "count": 1, "flavors": {"cpu": "any"}, "usage": {"cpu": "1"}}
    admission = {"clusterQueue": "gpus", "podSets": [pod_set]}
    desk.tell(desk.workload, state="Admitted", admission=admission)
    assert desk.say("pause", "train-7")[1].startswith("  It is evicted: its pods end")


def test_what_else_is_in_the_way_is_said(desk: Desk) -> None:
    stopped = {
        "type": "Active",
        "status": "False",
        "reason": "Stopped",
        "message": "stopped by its stopPolicy",
    }
    desk.tell(desk.local, conditions=[stopped])
    desk.tell(desk.queue, conditions=[stopped])
    desk.say("pause", "train-7")
    words = "admits nothing now: stopped by its stopPolicy"
    assert desk.say("resume", "train-7")[-1] == f"  LocalQueue main {words}"
    desk.say("hold", "lq/main")
    assert desk.say("resume", "lq/main")[-1] == f"  ClusterQueue gpus {words}"


def test_a_queue_without_a_controller_has_no_counts(desk: Desk) -> None:
    desk.make(f"{OWN}/clusterqueues/new", spec={})
    assert desk.say("drain", "cq/new")[1:] == [
        "  How many Workloads run and wait is not known: no controller has counted them."
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ("pause", "cq/gpus"),
            "admitter hold cq/gpus lets run what runs, and admitter drain cq/gpus evicts it",
        ),
        (("hold", "job/train-7"), "admitter pause job/train-7 stops one Job"),
        (("drain", "train-7"), "admitter pause job/train-7 stops one Job"),
        (("hold", "cq/gups"), "there is no ClusterQueue gups"),
        (("pause", "train-8"), "there is no Workload train-8 in namespace blue, nor one of a Job train-8"),
        (("pause", "job/job-train-7"), "there is no Workload of a Job job-train-7 in namespace blue"),
        (("resume", "wl/train-7"), "there is no Workload train-7 in namespace blue"),
    ],
)
def test_what_can_not_be_stopped_so_is_refused_with_what_helps(
    desk: Desk, command: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError) as refused:
        desk.say(*command)
    assert words in str(refused.value)


def test_what_the_controller_would_undo_is_refused(desk: Desk) -> None:
    labels = {"admitter.dev/generated-for": "red", "admitter.dev/generated-by": "annotations"}
    desk.make(f"{OWN}/clusterqueues/red", labels=labels, spec={})
    with pytest.raises(CommandError, match="the controller would undo a change"):
        desk.say("hold", "cq/red")


def test_a_finished_job_is_not_paused(desk: Desk) -> None:
    over = {"type": "Finished", "status": "True", "reason": "JobSucceeded", "message": "it has succeeded"}
    over["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    desk.tell(desk.workload, conditions=[over])
    with pytest.raises(CommandError, match="has finished"):
        desk.say("pause", "train-7")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("hold", "cq/gpus"), "to patch clusterqueues in the whole cluster; ClusterRole admitter-admin"),
        (("drain", "lq/main"), "to patch localqueues in namespace blue; ClusterRole admitter-admin"),
        (("pause", "train-7"), "to patch workloads in namespace blue; ClusterRole edit"),
    ],
)
def test_a_right_that_is_missing_is_named_with_the_role_that_gives_it(
    desk: Desk, command: tuple[str, ...], words: str
) -> None:
    def forbid(*_: object) -> None:
        raise api_error(403, {"reason": "Forbidden", "message": "user cannot patch"})

    desk.server.policies.append(forbid)
    with pytest.raises(DeniedError) as denied:
        desk.say(*command)
    assert words in str(denied.value)


def test_an_object_of_a_described_kind_is_paused_by_its_name(desk: Desk) -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "o"}
    path, spec = f"{OWN}/namespaces/blue/workloads/jobset-train", desk.spec(desk.workload)
    labels = {"admitter.dev/job-uid": "o"}
    desk.make(path, labels=labels, owners=[owner | {"controller": True}], spec=spec, status={})
    title, what = desk.say("pause", "jobset/train")
    assert title == "jobset/train in namespace blue: active of Workload jobset-train true -> false"
    assert what.endswith("until admitter resume jobset/train -n blue.")
    for name in ("train", "jobsets.jobset.x-k8s.io/train"):
        assert desk.say("pause", name) == [
            "jobset/train in namespace blue is paused already: nothing is changed."
        ]
    assert desk.spec(path)["active"] is False


def test_what_may_be_several_objects_is_not_paused(desk: Desk) -> None:
    for kind in ("JobSet", "RayJob"):
        owner = {"apiVersion": "x.io/v1", "kind": kind, "name": "train", "uid": kind, "controller": True}
        path, spec = f"{OWN}/namespaces/blue/workloads/{kind.lower()}-train", desk.spec(desk.workload)
        desk.make(path, labels={"admitter.dev/job-uid": kind}, owners=[owner], spec=spec, status={})
    with pytest.raises(ManifestError, match="may be any of jobset/train, rayjob/train"):
        desk.say("pause", "train")
    with pytest.raises(CommandError, match=r"no Workload of study/train .*; -n names the namespace"):
        desk.say("pause", "study/train")

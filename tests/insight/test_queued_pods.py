"""Queued pods and their groups in a snapshot, and each command that is asked about them."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from admitter.api.conditions import WaitingReason
from admitter.cli.main import app
from admitter.convert.settings import DEFAULTS
from admitter.insight.history import HistoryEntry, read
from admitter.insight.live import Mirror
from admitter.insight.snapshot_file import dump, facts, load
from admitter.insight.taking import take
from admitter.policy.snapshot import QUEUED_PODS, Snapshot
from admitter.top.scene import scene
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.cluster.pods import group_pod, pod
from tests.convergence.pods import PodScene
from tests.convergence.scene import TEAM
from tests.insight.asking import AT_LEISURE

SECRET = "hunter2"
IN = ("-n", TEAM, *AT_LEISURE)
"""Of explain."""


async def busy() -> PodScene:
    """Of five CPUs `train` has one and the group `tune` four; `next` and the group `rest` wait."""
    made = PodScene({"a": 5})
    made.kubelet.lasts = lambda _: 3000.0
    await made.start()
    secret = {"name": "main", "env": [{"name": "TOKEN", "value": SECRET}]}
    container = {**secret, "resources": {"requests": {"cpu": "1"}}}
    tuned = made.group("tune", 4, expected_runtime="20m")
    await made.settled(lambda: made.started(tuned) == 4)
    made.pod("train", spec={"containers": [container]}, expected_runtime="10m")
    await made.settled(lambda: made.has_started("train"))
    made.pod("next")
    made.group("rest", 1, size=2)
    await made.settled(lambda: made.says("rest", "QuotaReserved")[0] == "False")
    await made.settled(lambda: made.condition("next", "QuotaReserved") == "False")
    return made


class Reader:
    """A user with a snapshot of that in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.json"
        self.change = folder / "change.yaml"
        self.events: dict[str, list[HistoryEntry]] = {}
        run(self._live())

    async def _live(self) -> None:
        made = await busy()
        taken = await take(made.server, DEFAULTS, lambda: clock().timestamp())
        self.path.write_bytes(dump(taken))
        for kind, name in (("pod", "train"), ("podgroup", "tune"), ("pod", "tune-0")):
            self.events[f"{kind}/{name}"] = await read(made.server, TEAM, (kind, name))
        await made.kill()

    def ask(self, *words: str, exit_code: int = 0) -> str:
        answer = CliRunner().invoke(app, [*words, "--state", str(self.path)])
        assert answer.exit_code == exit_code, (answer.output, answer.exception)
        return answer.output if exit_code != 1 else str(answer.exception)

    def try_out(self, *manifests: Any, exit_code: int = 0) -> Any:
        """What further pods would do."""
        self.change.write_text(yaml.safe_dump_all(manifests))
        words = ("what-if", "-f", str(self.change), "--estimate-for", "0s", "-o", "json")
        answer = self.ask(*words, exit_code=exit_code)
        if exit_code:
            return answer
        return {each["name"]: each["effect"] for each in json.loads(answer)["workloads"]}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return Reader(tmp_path_factory.mktemp("pods"))


def test_a_snapshot_has_queued_pods_as_the_controller_reads_them_and_no_more(reader: Reader) -> None:
    assert SECRET not in reader.path.read_text()
    known = facts(load(reader.path))
    pods = known.views[QUEUED_PODS]
    assert {name for _, name in pods} == {"train", "next", "rest-0", *(f"tune-{n}" for n in range(4))}
    world = Snapshot(known).world
    tune = world.job_titled(TEAM, "podgroup/tune")
    assert tune is not None
    assert (tune.count(), tune.suspended) == (4, False)
    assert known.views["workloads"][TEAM, tune.workload].job == ("podgroup/tune", tune.uid)
    train = world.job_titled(TEAM, "pod/train")
    assert train is not None
    assert train.is_started_by(known.views["workloads"][TEAM, train.workload])


def test_the_same_is_held_as_in_the_controller(reader: Reader) -> None:
    snapshot = Snapshot(facts(load(reader.path)))
    book = snapshot.engine.ledger.real
    assert book.cell("a", ("any", "cpu")).used == 5000


def test_lists_call_pods_and_groups_by_kind_and_name(reader: Reader) -> None:
    rows = [row.split() for row in reader.ask("get", "workloads", "-n", TEAM).splitlines()[1:]]
    assert {row[1] for row in rows} == {"pod/train", "pod/next", "podgroup/tune", "podgroup/rest"}


def test_pods_and_groups_are_explained(reader: Reader) -> None:
    for name in ("pod/next", "pods/next", "po/next", "next"):
        answer = reader.ask("explain", name, *IN)
        assert "team/pod/next: Pending" in answer
        assert "team/pod/train, priority 0, expected to end in 9 min" in answer
    assert "1 of its 2 pods is there" in reader.ask("explain", "podgroup/rest", *IN)
    assert "team/podgroup/tune: Admitted" in reader.ask("explain", "podgroup/tune", *IN)
    assert "there is no" in reader.ask("explain", "pod/tune", *IN, exit_code=1)


def test_a_pod_of_a_group_is_explained_by_its_group(reader: Reader) -> None:
    whole = reader.ask("explain", "podgroup/rest", *IN)
    assert reader.ask("explain", "pod/rest-0", *IN) == reader.ask("explain", "rest-0", *IN) == whole


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("deployment/chat", "each of its pods waits by itself, as pod/NAME"),
        ("statefulsets/store", "its pods wait as podgroup/store"),
        ("leaderworkerset/llm", "its replicas wait as podgroup/llm-0 and so on"),
    ],
)
def test_what_makes_pods_is_explained_by_these(reader: Reader, name: str, instead: str) -> None:
    said = " ".join(reader.ask("explain", name, *IN, exit_code=2).replace("│", "").split())
    assert instead in said


def test_further_pods_are_tried(reader: Reader) -> None:
    assert reader.try_out(pod(TEAM, "third", "a")) == {"pod/third": "waits"}
    assert "Pod team/next: is there already" in reader.try_out(pod(TEAM, "next", "a"), exit_code=1)
    group = [group_pod(TEAM, f"more-{n}", "more") for n in range(2)]
    for each in group:
        each["metadata"]["labels"]["admitter.dev/queue-name"] = "a"
    assert reader.try_out(*group) == {"podgroup/more": "waits"}


def test_what_the_end_of_a_pod_would_let_in_is_known(reader: Reader) -> None:
    words = ("what-if", "--without", f"pod/{TEAM}/train", "--estimate-for", "0s", "-o", "json")
    effects = {each["name"]: each["effect"] for each in json.loads(reader.ask(*words))["workloads"]}
    assert effects["pod/next"] == "admitted"


def test_a_simulation_goes_on_from_there(reader: Reader) -> None:
    answer = CliRunner().invoke(app, ["simulate", str(reader.path), "--until", "2h", "-o", "json"])
    assert answer.exit_code == 0, answer.output
    rows = {row["job"]: row["state"] for row in json.loads(answer.stdout)["workloads"]}
    assert rows == {
        "pod/train": "Finished",
        "podgroup/tune": "Finished",
        "pod/next": "Admitted",
        "podgroup/rest": "Pending",
    }


def test_history_of_a_group_has_the_events_on_its_pods(reader: Reader) -> None:
    assert "Admitted" in {each.what for each in reader.events["pod/train"]}
    of_tune = reader.events["podgroup/tune"]
    assert "Admitted" in {each.what for each in of_tune}
    assert {each.name for each in of_tune} <= {"podgroup/tune", *(f"pod/tune-{n}" for n in range(4))}
    assert {each.name for each in reader.events["pod/tune-0"]} <= {"pod/tune-0"}


def test_what_is_followed_has_queued_pods() -> None:
    async def story() -> None:
        made = await busy()
        mirror = Mirror(made.server, DEFAULTS, Random(1), lambda: clock().timestamp())
        async with mirror.following():
            known = mirror.facts()
            rows = scene(known, Snapshot(known)).rows["a"]
            assert {row.job for row in rows} == {"pod/train", "podgroup/tune", "pod/next", "podgroup/rest"}
        await made.kill()

    run(story())


def test_without_queued_pods_workloads_say_what_is_to_be_known() -> None:
    async def story() -> None:
        made = await busy()
        taken = await take(made.server, DEFAULTS, lambda: clock().timestamp(), {"workloads", "clusterqueues"})
        assert QUEUED_PODS not in taken.objects
        snapshot = Snapshot(facts(taken))
        view = snapshot.find(TEAM, "podgroup/rest")
        assert view is not None
        assert snapshot.waiting[view.uid].reason is WaitingReason.QUEUE_NOT_FOUND
        await made.kill()

    run(story())

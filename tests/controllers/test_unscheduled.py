"""Jobs with pods that wait for a scheduler that says nothing, and when that is told."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from admitter.cache.pod_views import PodView, parse_pod
from admitter.cache.views import parse_job, timestamp
from admitter.cache.world import World
from admitter.controllers.workload import unscheduled as unanswered
from admitter.controllers.workload.unscheduled import ANSWER_SECONDS, UnscheduledPods
from admitter.names import WORKLOAD_LABEL

Json = dict[str, Any]

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
SCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def metadata(name: str, version: int, **more: Any) -> Json:
    made = {"namespace": "team", "name": name, "uid": name, "resourceVersion": str(version)}
    return made | {"creationTimestamp": timestamp(BEGAN)} | more


class Cluster:
    """A Job and its pods, with events that are kept; its clock goes when a test says so.

    Attributes:
        told: reason and message of each event, in order.
        closed: whether this process only follows.
    """

    def __init__(self) -> None:
        self.world = World()
        self.told: list[tuple[str, str]] = []
        self.closed = False
        self.seconds = 0.0
        self.version = 1
        template: Json = {"spec": {"containers": []}}
        job = parse_job({"metadata": metadata("lost", 1), "spec": {"template": template}})
        self.world.jobs.apply(job)
        self.name = job.workload
        world = cast(
            "Any", SimpleNamespace(owners=self, pods_named=self.world.pods_named, job_of=self.world.job_of)
        )
        self.unanswered = UnscheduledPods(world, cast("Any", self), self.now)

    def owns(self, key: tuple[str, str]) -> bool:
        return key == ("team", self.name)

    def now(self) -> datetime:
        return datetime.fromtimestamp(BEGAN.timestamp() + self.seconds, UTC)

    def record(self, subject: Any, reason: str, message: str, *, lasting: bool) -> None:
        assert (subject.kind, subject.name, lasting) == ("Job", "lost", True)
        self.told.append((reason, message))

    def pod(self, name: str = "pod", status: Json | None = None, **spec: str) -> PodView:
        self.version += 1
        made = metadata(name, self.version, labels={WORKLOAD_LABEL: self.name})
        view = parse_pod({"metadata": made, "spec": {"containers": []} | spec, "status": status or {}})
        self.world.pods.apply(view)
        self.unanswered.pod_changed(view)
        return view


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(UnscheduledPods, "_look_later", looks_at_once)
    return Cluster()


def looks_at_once(self: UnscheduledPods, key: tuple[str, str], seconds: float) -> None:
    """Timers go off with the next turn of the loop, whatever the clock says."""
    assert seconds > 0
    self._timers[key] = asyncio.get_running_loop().call_soon(self._look, key)  # type: ignore[assignment]


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_scheduler_that_says_nothing_is_named_once(cluster: Cluster) -> None:
    cluster.pod(schedulerName="of-nobody")
    await turns()
    assert cluster.told == []
    cluster.seconds = ANSWER_SECONDS
    await turns()
    ((reason, message),) = cluster.told
    assert reason == "NoScheduler"
    assert "their schedulerName is of-nobody" in message
    another = cluster.pod("another", schedulerName="of-nobody")
    await turns()
    assert len(cluster.told) == 1
    cluster.unanswered.pod_changed(another, gone=True)
    assert cluster.unanswered._told == set(), "nothing is kept of those that are over"
    assert cluster.unanswered._timers == {}


@pytest.mark.parametrize(
    ("status", "spec"),
    [
        pytest.param(SCHEDULED, {}, id="it says why it finds no node"),
        pytest.param({}, {"nodeName": "n"}, id="it has a node"),
        pytest.param({"phase": "Failed"}, {}, id="it has ended"),
    ],
)
async def test_one_that_answers_is_not_told(cluster: Cluster, status: Json, spec: dict[str, str]) -> None:
    assert cluster.pod().unanswered_scheduler == "default-scheduler"
    assert cluster.pod(status=status, **spec).unanswered_scheduler == ""
    cluster.seconds = ANSWER_SECONDS
    await turns()
    assert cluster.told == []
    assert cluster.unanswered._timers == {}


async def test_a_follower_tells_when_it_leads(cluster: Cluster) -> None:
    cluster.closed = True
    cluster.pod()
    cluster.seconds = ANSWER_SECONDS
    await turns()
    assert cluster.told == []
    cluster.closed = False
    await turns()
    assert [reason for reason, _ in cluster.told] == ["NoScheduler"]


async def test_timers_are_for_later_and_end_with_the_manager() -> None:
    made = Cluster()
    made.pod()
    (timer,) = made.unanswered._timers.values()
    assert timer.when() - asyncio.get_running_loop().time() > unanswered.ANSWER_SECONDS / 2
    made.unanswered.close()
    assert timer.cancelled()
    assert made.unanswered._timers == {}

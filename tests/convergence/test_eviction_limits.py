"""Limits on evictions with all controllers running, on a clock that jumps: no window has more."""

import asyncio
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from admitter.cache.timestamps import seconds
from admitter.cache.world import OWN
from admitter.client.errors import api_error
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.convergence.scene import Scene
from tests.scale import scaled

Json = dict[str, Any]

PER = 300.0
MOST_OF_A_START = 10
"""An eviction with its record, and the start of the Job that it is for, take more changes than that."""


class Watched(Scene):
    """Notes each eviction by preemption at the moment at which it is written.

    Attributes:
        evictions: when, of which Workload and from which ClusterQueue.
        recorded: whether each has to be in the record of its queue by then.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        super().__init__(cpu, **preemption)
        self.evictions: list[tuple[float, str, str]] = []
        self.recorded = True
        self.jobs.lasts = lambda _: 1_000_000.0
        self.server.listen(self._look)

    def _look(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "workloads" and after is not None and _preempted(after) and not _preempted(before):
            queue, uid = after["status"]["admission"]["clusterQueue"], after["metadata"]["uid"]
            self.evictions.append((clock().timestamp(), uid, queue))
            if self.recorded:
                written = [seconds(at) for at in after["status"]["evictedAt"]]
                times = [at for at, each in self.record(queue) if each == uid]
                assert max(times) >= max(written), "it is recorded before, and no earlier than it begins"

    def record(self, queue: str) -> list[tuple[float, str]]:
        """What a ClusterQueue remembers."""
        status = self.server.objects["clusterqueues"]["", queue].get("status") or {}
        return [(seconds(each["at"]), each["uid"]) for each in status.get("evictions") or ()]

    def limit(self, plural: str, name: str, **limits: Json) -> None:
        """An administrator limits evictions."""
        self.server.write(f"{OWN}/{plural}/{name}", {"spec": {"preemption": limits}})

    def most(self, per: float = PER) -> int:
        """The most evictions that any window had."""
        times = [at for at, *_ in self.evictions]
        return max((sum(end - per < at <= end for at in times) for end in times), default=0)

    def says(self, job: str) -> tuple[str, str]:
        """Why a Job's Workload waits."""
        status = (self.workload(job) or {}).get("status") or {}
        return status.get("reason") or "", status.get("message") or ""


def _preempted(raw: Json | None) -> bool:
    conditions = ((raw or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Preempted" and each["status"] == "True" for each in conditions)


async def full(count: int, **limits: Json) -> Watched:
    """A queue full of Jobs of one CPU that never end, with limits."""
    scene = Watched({"a": count}, withinClusterQueue="LowerPriority")
    scene.limit("clusterqueues", "a", **limits)
    await scene.start()
    for number in range(count):
        scene.submit(f"low-{number}", "a", 1, "low")
        await scene.settled(lambda n=number: scene.runs(f"low-{n}") == 1)  # type: ignore[misc]
    return scene


@pytest.mark.parametrize("dies", [False, True], ids=["one controller", "another one in the window"])
def test_what_a_window_has_no_room_for_waits_with_numbers_and_goes_when_it_opens(dies: bool) -> None:
    async def story() -> None:
        scene = await full(3, maxEvictions={"count": 1, "per": "5m"})
        scene.submit("first", "a", 1, "high")
        await scene.settled(lambda: scene.runs("first") == 1)
        ((first, *_),) = scene.evictions
        scene.submit("second", "a", 1, "high")
        await scene.settled(lambda: scene.says("second")[0] == "EvictionsLimited")
        words = "; ClusterQueue a allows 1 eviction for others within 5m, and there were so many: next at "
        assert words in scene.says("second")[1]
        opens = seconds(scene.says("second")[1].rpartition(" ")[2])
        assert 0 <= opens - (first + PER) <= 2
        if dies:
            await scene.kill()
            await asyncio.sleep(100)
            await scene.start()
        await scene.settled(lambda: scene.runs("second") == 1)
        assert 0 <= scene.evictions[1][0] - opens <= 2
        assert scene.most() == 1
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_restart_counts_evictions_of_jobs_that_are_deleted() -> None:
    async def story() -> None:
        scene = await full(3, maxEvictions={"count": 1, "per": "5m"})
        scene.submit("first", "a", 1, "high")
        await scene.settled(lambda: scene.runs("first") == 1)
        ((first, uid, _),) = scene.evictions
        assert [each for _, each in scene.record("a")] == [uid]
        evicted = next(n for n in range(3) if scene.condition(f"low-{n}", "Preempted") == "True")
        scene.delete(f"low-{evicted}")
        await scene.settled()
        await asyncio.sleep(30)
        await scene.kill()
        await scene.start()
        scene.submit("second", "a", 1, "high")
        await scene.settled(lambda: scene.runs("second") == 1)
        assert scene.evictions[1][0] - first >= PER
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_queue_without_a_limit_says_nothing_of_evictions() -> None:
    async def story() -> None:
        scene = await full(1)
        scene.recorded = False
        scene.submit("first", "a", 1, "high")
        await scene.settled(lambda: scene.runs("first") == 1)
        assert "evictions" not in scene.server.objects["clusterqueues"]["", "a"]["status"]
        await scene.kill()

    run(story())


def test_a_cohort_limits_what_is_taken_back_from_all_its_queues() -> None:
    async def story() -> None:
        scene = Watched({"a": 4, "b": 0, "c": 0}, reclaimWithinCohort="Any")
        scene.limit("cohorts", "all", maxEvictions={"count": 1, "per": "5m"})
        await scene.start()
        for queue in ("b", "c"):
            scene.submit(f"of-{queue}", queue, 2)
            await scene.settled(lambda q=queue: scene.runs(f"of-{q}") == 1)  # type: ignore[misc]
        scene.submit("owner", "a", 2)
        await scene.settled(lambda: scene.runs("owner") == 1)
        scene.submit("again", "a", 2)
        await scene.settled(lambda: scene.says("again")[0] == "EvictionsLimited")
        assert (
            "; Cohort all allows 1 eviction for others within 5m, and there were so" in scene.says("again")[1]
        )
        await scene.settled(lambda: scene.runs("again") == 1)
        assert scene.most() == 1
        assert {queue for *_, queue in scene.evictions} == {"b", "c"}
        await scene.kill()

    run(story())


def test_a_pending_eviction_counts_also_after_a_restart() -> None:
    async def story() -> None:
        scene = await full(3, maxEvictions={"count": 1, "per": "5m"})
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"preemption": {"gracePeriod": "2m"}}})
        await scene.settled()
        scene.submit("first", "a", 1, "high")
        victims = [f"low-{number}" for number in range(3)]
        await scene.server.until(
            lambda: any(scene.condition(each, "EvictionPending") == "True" for each in victims)
        )
        await scene.kill()
        await scene.start()
        scene.submit("second", "a", 1, "high")
        await scene.settled(lambda: scene.says("second")[0] == "EvictionsLimited")
        await scene.settled(lambda: scene.runs("first") + scene.runs("second") == 2)
        assert len(scene.evictions) == 2
        assert scene.most() == 1
        await scene.kill()

    run(story())


async def killed_after(change: int) -> tuple[Watched, bool]:
    """The controller dies after so many changes of the first eviction, and what is evicted is deleted.

    Returns also whether it was evicted, and the Job that it was for had started, before so many changes.
    """
    scene = await full(3, maxEvictions={"count": 1, "per": "5m"})
    dead, changes = asyncio.Event(), 0

    def count(*_: object) -> None:
        nonlocal changes
        changes += 1
        if changes == change:
            dead.set()

    scene.submit("first", "a", 1, "high")
    scene.server.listen(count)
    over = asyncio.create_task(scene.server.until(lambda: scene.runs("first") == 1))
    dies = asyncio.create_task(dead.wait())
    await asyncio.wait([over, dies], return_when=asyncio.FIRST_COMPLETED)
    await scene.kill()
    scene.server.ignore(count)
    done = not dead.is_set()
    for task in (over, dies):
        task.cancel()
    for name in [f"low-{number}" for number in range(3)]:
        if scene.condition(name, "Preempted") == "True":
            scene.delete(name)
    return scene, done


def test_a_controller_that_dies_after_any_change_counts_no_eviction_too_few() -> None:
    async def story(change: int) -> bool:
        scene, done = await killed_after(change)
        await asyncio.sleep(1)
        await scene.start()
        scene.submit("second", "a", 1, "high")
        await scene.settled(lambda: scene.runs("first") + scene.runs("second") == 2)
        assert scene.evictions
        assert scene.most() == 1
        assert scene.excesses == []
        await scene.kill()
        return done

    changes = 1
    while not run(story(changes)):
        changes += 1
    assert changes > MOST_OF_A_START, "it died in between"


def test_an_eviction_that_is_not_written_counts_no_longer() -> None:
    """The API server refuses to evict the first victim: the record is corrected, and another try succeeds."""

    async def story() -> None:
        scene = await full(1, maxEvictions={"count": 1, "per": "5m"})
        refused = 0

        def refuse(plural: str, before: Json | None, after: Json | None) -> None:
            nonlocal refused
            if plural == "workloads" and _preempted(after) and not _preempted(before) and not refused:
                refused += 1
                raise api_error(403, {"reason": "Forbidden", "message": "not now"})

        scene.server.policies.append(refuse)
        began = clock().timestamp()
        scene.submit("first", "a", 1, "high")
        await scene.server.until(lambda: bool(refused))
        await asyncio.sleep(1)
        assert scene.record("a") == []
        await scene.settled(lambda: scene.runs("first") == 1)
        assert clock().timestamp() < began + PER
        assert len(scene.record("a")) == 1
        await scene.kill()

    run(story())


@pytest.mark.parametrize("seed", range(scaled(4, 120)))
def test_random_jobs_limits_and_controllers_that_die_pass_no_window(seed: int) -> None:
    draw = Random(seed)

    async def story() -> None:
        scene = Watched({"a": 2, "b": 2}, withinClusterQueue="LowerPriority", reclaimWithinCohort="Any")
        scene.jobs.lasts = lambda _: draw.choice((5.0, 1000.0))
        most = draw.randint(1, 3)
        scene.limit("cohorts", "all", maxEvictions={"count": most, "per": "5m"})
        scene.limit("clusterqueues", "b", maxEvictions={"count": 1, "per": "2m"})
        scene.limit("clusterqueues", "a", maxEvictionsPerWorkload={"count": 1, "per": "5m"})
        await scene.start(seed)
        for number in range(25):
            queue, priority = draw.choice("ab"), draw.choice(("low", "", "high"))
            scene.submit(f"job-{number}", queue, draw.randint(1, 2), priority)
            await asyncio.sleep(draw.choice((0.0, 0.3, 5.0, 40.0)))
            if draw.random() < 0.2:  # at any moment, also between two writes
                await scene.kill()
                await asyncio.sleep(draw.choice((0.0, 20.0)))
                await scene.start(seed + number)
            if draw.random() < 0.2:
                done = [key for key in scene.server.objects["jobs"] if draw.random() < 0.1]
                for _, name in done:
                    scene.delete(name)
        await asyncio.sleep(400)
        await scene.settled()
        assert 0 < scene.most() <= most
        assert len(scene.record("a")) + len(scene.record("b")) >= len(scene.evictions)
        of_b = sorted(at for at, _, queue in scene.evictions if queue == "b")
        assert all(later - earlier >= 120 for earlier, later in pairwise(of_b))
        of_each = {uid for _, uid, queue in scene.evictions if queue == "a"}
        for uid in of_each:
            times = sorted(at for at, each, queue in scene.evictions if (each, queue) == (uid, "a"))
            assert all(later - earlier >= PER for earlier, later in pairwise(times))
        assert scene.excesses == []
        await scene.kill()

    run(story())

"""Maximum run times with all controllers running, on a clock that jumps."""

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import pytest

from admitter.cache.run_time_status import RunTimeStatus, run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import parse_workload
from admitter.cache.world import OWN
from admitter.names import MAX_RUNTIME_ANNOTATION
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.convergence.pods import PodScene
from tests.convergence.scene import JOBS, TEAM, Scene

Json = dict[str, Any]


def limited(**lifecycle: str) -> Scene:
    """A queue of one CPU; Jobs with names that begin with `long` never end by themselves."""
    scene = Scene({"a": 1})
    scene.jobs.lasts = lambda pod: 10_000.0 if pod["metadata"]["name"].startswith("long") else 5.0
    cap(scene, **lifecycle)
    return scene


def cap(scene: Scene, **lifecycle: str) -> None:
    scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"lifecycle": lifecycle}})


def time_of(scene: Scene, job: str, kind: str) -> float:
    conditions = ((scene.workload(job) or {}).get("status") or {}).get("conditions") or ()
    return next(seconds(each["lastTransitionTime"]) for each in conditions if each["type"] == kind)


def run_time(scene: Scene, job: str) -> RunTimeStatus:
    return run_time_of((scene.workload(job) or {}).get("status") or {})


def test_a_job_ends_at_its_second_and_the_next_gets_the_quota() -> None:
    async def story() -> None:
        scene = limited(maxRuntime="60s")
        await scene.start()
        scene.submit("long", "a", 1)
        await scene.settled(lambda: scene.runs("long") == 1)
        scene.submit("next", "a", 1)
        until = run_time(scene, "long").deadline
        assert until == time_of(scene, "long", "QuotaReserved") + 60
        await scene.settled(lambda: scene.is_done("next"))
        assert time_of(scene, "long", "Evicted") == until
        assert time_of(scene, "next", "QuotaReserved") - time_of(scene, "long", "Finished") <= 1
        assert "MaxRuntimeExceeded" in scene.events("long")
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_job_that_has_had_its_time_is_suspended_again_if_its_user_resumes_it() -> None:
    """No policy of the API server holds it here."""

    async def story() -> None:
        scene = limited(maxRuntime="60s")
        await scene.start()
        scene.submit("long", "a", 1)
        await scene.settled(lambda: scene.is_done("long"))
        scene.server.write(f"{JOBS}/long", {"spec": {"suspend": False}})
        await scene.settled(lambda: scene.job("long")["spec"]["suspend"] is True)
        await scene.settled(lambda: scene.runs("long") == 0 and "Suspended" in scene.events("long"))
        assert "for as long as it may" in scene.events("long")["Suspended"]
        assert scene.used("a") == 0
        await scene.kill()

    run(story())


@pytest.mark.parametrize(("dies", "back"), [(20, 40), (50, 75)], ids=["before its end", "across its end"])
def test_a_controller_that_starts_in_between_goes_by_what_is_stored(dies: int, back: int) -> None:
    async def story() -> None:
        scene = limited(maxRuntime="60s")
        await scene.start()
        scene.submit("long", "a", 1)
        await scene.settled(lambda: scene.runs("long") == 1)
        stored = run_time(scene, "long")
        assert stored.deadline is not None
        await asyncio.sleep(dies)
        await scene.kill()
        cap(scene, maxRuntime="1h")
        await asyncio.sleep(back - dies)
        started = clock().timestamp()
        await scene.start()
        await scene.settled(lambda: scene.is_done("long"))
        assert run_time(scene, "long") == stored
        late = time_of(scene, "long", "Evicted") - max(stored.deadline, int(started))
        assert 0 <= late <= 2
        assert late == 0 or started > stored.deadline
        await scene.kill()

    run(story())


@pytest.mark.parametrize("lifecycle", [{}, {"maxRuntime": "1h"}], ids=["without a maximum", "with one"])
def test_a_job_that_just_runs_costs_no_write_more(lifecycle: dict[str, str]) -> None:
    async def story() -> None:
        scene, writes = limited(**lifecycle), Counter[str]()
        scene.server.listen(lambda plural, *_: writes.update([plural]))
        await scene.start()
        scene.submit("short", "a", 1)
        await scene.settled(lambda: scene.is_done("short"))
        assert writes["workloads"] == 3, "it is made, admitted and finished"
        (raw,) = scene.server.objects["workloads"].values()
        assert ("runTime" in parse_workload(raw).status) is bool(lifecycle)
        await scene.kill()

    run(story())


def test_the_annotation_of_a_job_counts_once_it_can_be_read() -> None:
    async def story() -> None:
        scene = limited()
        await scene.start()
        scene.submit("long", "a", 1)
        scene.server.write(f"{JOBS}/long", {"metadata": {"annotations": {MAX_RUNTIME_ANNOTATION: "30s"}}})
        scene.submit("long-too", "a", 1)
        note = {"metadata": {"annotations": {MAX_RUNTIME_ANNOTATION: "soon"}}}
        scene.server.write(f"{JOBS}/long-too", note)
        await scene.settled(lambda: scene.is_done("long"))
        assert "InvalidAnnotation" in scene.events("long-too")
        assert scene.condition("long-too", "QuotaReserved") == "False"
        note = {"metadata": {"annotations": {MAX_RUNTIME_ANNOTATION: "20"}}}
        scene.server.write(f"{JOBS}/long-too", note)
        await scene.settled(lambda: scene.is_done("long-too"))
        assert time_of(scene, "long-too", "Evicted") - time_of(scene, "long-too", "QuotaReserved") == 20
        await scene.kill()

    run(story())


def lasting(**lifecycle: str) -> PodScene:
    """A queue of two CPUs; its pods never end by themselves."""
    scene = PodScene({"a": 2})
    scene.kubelet.lasts = lambda _: 10_000.0
    cap(scene, **lifecycle)
    return scene


def test_pods_that_a_controller_makes_anew_stay_out_of_a_group_that_has_had_its_time() -> None:
    async def story() -> None:
        scene = lasting(maxRuntime="60s")
        owner = {"apiVersion": "example.com/v1", "kind": "Maker", "name": "maker", "uid": "uid-of-maker"}
        await scene.start()
        first = scene.group("tune", 2, owner=owner)
        await scene.settled(lambda: scene.started(first) == 2)
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "MaxRuntimeExceeded"))
        second = scene.group("tune", 2, first=2, owner=owner)
        await scene.settled(lambda: "MaxRuntimeExceeded" in scene.events(second[0]))
        await asyncio.sleep(600)
        assert scene.started(second) == 0
        assert scene.says("tune", "Finished") == ("True", "MaxRuntimeExceeded")
        scene.server.remove(f"{OWN}/namespaces/{TEAM}/workloads/{scene.made_for('tune')['metadata']['name']}")
        await scene.settled(lambda: scene.started(second) == 2)
        await scene.kill()

    run(story())


def test_a_group_that_is_made_again_by_its_user_begins_a_new_life() -> None:
    async def story() -> None:
        scene = lasting(maxRuntime="60s")
        await scene.start()
        first = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(first) == 2)
        second: list[str] = []

        def make_again(*_: object) -> None:
            """In the same second."""
            if not second and scene.says("tune", "Finished") == ("True", "MaxRuntimeExceeded"):
                second.extend(("tune-2", "tune-3"))
                asyncio.get_running_loop().call_soon(partial(scene.group, "tune", 2, first=2))

        scene.server.listen(make_again)
        await scene.settled(lambda: bool(second) and scene.started(second) == 2)
        await scene.kill()

    run(story())


def test_a_pod_that_waits_when_its_group_has_had_its_time_is_deleted() -> None:
    """It comes in the place of another one while the group is evicted: it is not of the next life."""

    async def story() -> None:
        scene = lasting(maxRuntime="60s")
        await scene.start()
        first = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(first) == 2)
        await scene.server.until(lambda: scene.says("tune", "Evicted")[0] == "True")
        late = scene.group("tune", 1, size=2, first=2)
        await scene.settled(lambda: scene.says("tune", "Finished") == ("True", "MaxRuntimeExceeded"))
        await scene.server.until(lambda: all(name not in late for _, name in scene.server.objects["pods"]))
        assert scene.says("tune", "Finished") == ("True", "MaxRuntimeExceeded")
        await scene.kill()

    run(story())


def test_a_requeued_group_waits_for_its_pods_behind_another() -> None:
    async def story() -> None:
        scene = lasting(maxRuntime="60s", onMaxRuntime="Requeue")
        await scene.start()
        first = scene.group("tune", 2)
        await scene.settled(lambda: scene.started(first) == 2)
        other = scene.group("other", 2)
        await scene.settled(lambda: scene.started(other) == 2)
        assert scene.says("tune", "Evicted") == ("True", "MaxRuntimeExceeded")
        assert scene.says("tune", "Finished") == ("", "")
        again = scene.group("tune", 2, first=2)
        await scene.settled(lambda: scene.started(again) == 2)
        assert scene.says("other", "Evicted") == ("True", "MaxRuntimeExceeded")
        assert scene.excesses == []
        await scene.kill()

    run(story())

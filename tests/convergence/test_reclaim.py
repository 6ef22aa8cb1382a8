"""Pods of a Job end one by one: what they used is for others, and what comes back needs quota again."""

from typing import Any

from tests.apiserver.job_controller import is_live, is_owned
from tests.apiserver.loop import run
from tests.convergence.scene import JOBS, TEAM, Scene

Json = dict[str, Any]

LONG = 10_000.0


def scene_of(cpu: int) -> Scene:
    """A queue in which Jobs end by what a test does, and not by themselves."""
    scene = Scene({"a": cpu})
    scene.jobs.lasts = lambda _: LONG
    return scene


def end_pods(scene: Scene, name: str, count: int) -> None:
    """Some pods of a Job succeed, and the Job controller counts them."""
    uid = scene.job(name)["metadata"]["uid"]
    live = [p for p in scene.server.objects["pods"].values() if is_owned(p, uid) and is_live(p)]
    for pod in live[:count]:
        path = f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}/status"
        scene.server.write(path, {"status": {"phase": "Succeeded"}})
    status = scene.job(name).get("status") or {}
    active, succeeded = status["active"] - count, status.get("succeeded", 0) + count
    scene.server.write(f"{JOBS}/{name}/status", {"status": {"active": active, "succeeded": succeeded}})


def held(scene: Scene, name: str) -> int | None:
    """For how many pods the status of a Job's Workload says that it holds quota; None if it says nothing."""
    said = ((scene.workload(name) or {}).get("status") or {}).get("held")
    return said[0]["count"] if said else None


def workload(scene: Scene, name: str) -> Json:
    """The Workload of a Job, which there is."""
    found = scene.workload(name)
    assert found is not None
    return found


def writes(scene: Scene, name: str) -> int:
    """A number that grows with each write of a Job's Workload."""
    return int(workload(scene, name)["metadata"]["resourceVersion"])


def test_the_quota_of_ended_pods_starts_the_next_job() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("wide", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("wide") == 4)
        scene.submit("next", "a", 1, pods=2)
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        end_pods(scene, "wide", 2)
        await scene.settled(lambda: scene.runs("next") == 2)
        assert (held(scene, "wide"), scene.runs("wide"), scene.used("a")) == (2, 2, 4000)
        assert scene.excesses == []
        await scene.kill()

    run(story())


def test_a_restart_in_the_middle_comes_to_the_same() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("wide", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("wide") == 4)
        scene.submit("next", "a", 1, pods=2)
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        await scene.kill()
        end_pods(scene, "wide", 2)
        await scene.start(seed=2)
        await scene.settled(lambda: scene.runs("next") == 2)
        await scene.kill()
        await scene.start(seed=3)
        scene.submit("third", "a", 1)
        await scene.settled(lambda: scene.condition("third", "QuotaReserved") == "False")
        assert (held(scene, "wide"), scene.used("a")) == (2, 4000)
        end_pods(scene, "wide", 1)
        await scene.settled(lambda: scene.runs("third") == 1)
        assert (held(scene, "wide"), scene.used("a"), scene.excesses) == (1, 4000, [])
        await scene.kill()

    run(story())


def test_pods_that_all_end_at_about_the_same_time_cost_no_write() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("wide", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("wide") == 4)
        before = scene.workload("wide")
        written: list[Json] = []
        scene.server.listen(
            lambda plural, _, after: written.append(after or {}) if plural == "workloads" else None
        )
        end_pods(scene, "wide", 2)
        end_pods(scene, "wide", 2)
        done = [{"type": "Complete", "status": "True"}]
        scene.server.write(f"{JOBS}/wide/status", {"status": {"conditions": done}})
        await scene.settled(lambda: scene.is_done("wide"))
        assert before is not None
        assert held(scene, "wide") is None
        assert len(written) == 1, "it is said that it has finished, and nothing else"
        await scene.kill()

    run(story())


def test_more_work_than_pods_gives_nothing_back_before_its_end_comes_near() -> None:
    """Twelve pods, four at a time: the fifth takes the place of the first."""

    async def story() -> None:
        scene = scene_of(4)
        scene.submit("long", "a", 1, pods=4)
        scene.server.write(f"{JOBS}/long", {"spec": {"completions": 12}})
        await scene.start()
        await scene.settled(lambda: scene.runs("long") == 4)
        before = writes(scene, "long")
        scene.server.write(f"{JOBS}/long/status", {"status": {"active": 4, "succeeded": 8}})
        scene.submit("next", "a", 1)
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        assert (held(scene, "long"), writes(scene, "long")) == (None, before)
        scene.server.write(f"{JOBS}/long/status", {"status": {"active": 4, "succeeded": 9}})
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        assert held(scene, "long") is None, "four pods live still, whatever is left to be done"
        end_pods(scene, "long", 1)
        await scene.settled(lambda: scene.runs("next") == 1)
        assert (held(scene, "long"), scene.excesses) == (3, [])
        await scene.kill()

    run(story())


def test_a_job_that_needs_again_what_it_gave_back_is_stopped_and_waits_for_it() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("wide", "a", 1, pods=4)
        scene.server.write(f"{JOBS}/wide", {"spec": {"completions": 8}})
        await scene.start()
        await scene.settled(lambda: scene.runs("wide") == 4)
        scene.submit("next", "a", 1, pods=2)
        await scene.settled(lambda: scene.condition("next", "QuotaReserved") == "False")
        scene.server.write(f"{JOBS}/wide", {"spec": {"parallelism": 2}})
        end_pods(scene, "wide", 2)
        await scene.settled(lambda: scene.runs("next") == 2)
        assert held(scene, "wide") == 2
        scene.server.write(f"{JOBS}/wide", {"spec": {"parallelism": 4}})
        await scene.server.until(lambda: scene.condition("wide", "Evicted") == "True")
        words = "its Job asks for 4 pods again, and has given back all but 2 of 4"
        assert workload(scene, "wide")["status"]["message"] == words
        await scene.settled(
            lambda: scene.runs("wide") == 0 and scene.condition("wide", "Admitted") == "False"
        )
        assert (held(scene, "wide"), scene.excesses) == (None, [])
        assert workload(scene, "wide")["spec"]["podSets"][0]["count"] == 4
        await scene.kill()

    run(story())


def test_an_evicted_job_asks_only_for_what_is_left() -> None:
    async def story() -> None:
        scene = scene_of(4)
        scene.submit("wide", "a", 1, pods=4)
        await scene.start()
        await scene.settled(lambda: scene.runs("wide") == 4)
        end_pods(scene, "wide", 3)
        await scene.settled(lambda: held(scene, "wide") == 1)
        name = workload(scene, "wide")["metadata"]["name"]
        path = f"/apis/admitter.dev/v1alpha1/namespaces/{TEAM}/workloads/{name}"
        scene.server.write(path, {"spec": {"active": False}})
        await scene.settled(lambda: scene.condition("wide", "Admitted") == "False")
        await scene.settled(lambda: workload(scene, "wide")["spec"]["podSets"][0]["count"] == 1)
        scene.server.write(path, {"spec": {"active": True}})
        await scene.settled(lambda: scene.condition("wide", "Admitted") == "True")
        status = workload(scene, "wide")["status"]
        assert (status["admission"]["podSets"][0]["count"], held(scene, "wide")) == (1, None)
        assert scene.used("a") == 1000
        await scene.kill()

    run(story())

"""What users are told by statuses and events, with all controllers running."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from admitter.cache.world import OWN
from admitter.client.errors import api_error
from tests.apiserver.loop import run
from tests.apiserver.server import Changed, Json
from tests.convergence.scene import JOBS, TEAM, Scene

FORBIDDEN = (403, "Forbidden")
CONFLICT = (409, "Conflict")


def refusing(plural: str, field: str, answer: tuple[int, str] = FORBIDDEN) -> Changed:
    """A policy that refuses each status of a kind with another value of a field."""
    status, reason = answer

    def policy(changed: str, before: Json | None, after: Json | None) -> None:
        old, new = ((each or {}).get("status") or {} for each in (before, after))
        if changed == plural and old.get(field) != new.get(field):
            raise api_error(status, {"reason": reason, "message": f"policy gold forbids {field}"})

    return policy


def types(scene: Scene, name: str, kind: str = "Job") -> dict[str, str]:
    """The type of each reason of events on an object."""
    found = scene.server.objects["events"].values()
    of = {"kind": kind, "name": name}
    return {
        event["reason"]: event["type"] for event in found if of.items() <= event["involvedObject"].items()
    }


def test_a_waiting_workload_says_where_it_waits_and_how_much_is_in_use() -> None:
    """A controller that starts again does not write the same anew, though less is in use by then."""

    async def story() -> None:
        scene = Scene({"a": 3})
        scene.jobs.lasts = lambda job: 20.0 if job["metadata"]["name"] == "second" else 100.0
        for name, cpu in (("first", 1), ("second", 1), ("waits", 3)):
            scene.submit(name, "a", cpu)
        await scene.start()
        await scene.settled(lambda: scene.condition("waits", "QuotaReserved") == "False")
        before = scene.workload("waits") or {}
        assert before["status"]["clusterQueue"] == "a"
        assert before["status"]["message"].startswith(
            "asks for 3 cpu from ClusterQueue a: 2 of 3 cpu of any in use, 1 free, 3 asked (at 2"
        )
        await scene.server.until(lambda: "InsufficientQuota" in types(scene, "waits"))
        assert scene.events("waits")["InsufficientQuota"] == before["status"]["message"]
        assert types(scene, "waits") == {"InsufficientQuota": "Normal"}
        await scene.settled(lambda: scene.is_done("second"))
        await scene.kill()
        await scene.start()
        await asyncio.sleep(10)
        assert scene.workload("waits") == before
        await scene.settled(lambda: scene.runs("waits") == 1)
        assert (scene.workload("waits") or {})["status"]["clusterQueue"] == "a"
        await scene.kill()

    run(story())


def test_a_queue_says_what_is_scarcest_and_why_it_works_no_more() -> None:
    flavor = f"{OWN}/resourceflavors/any"

    async def story() -> None:
        scene = Scene({"a": 2, "b": 0})
        scene.submit("runs", "a", 1)
        await scene.start()

        def status(queue: str) -> Json:
            return scene.server.objects["clusterqueues"]["", queue].get("status") or {}

        await scene.settled(lambda: scene.runs("runs") == 1 and "scarcest" in status("b"))
        assert status("a")["scarcest"] == "1/2 cpu of any"
        assert status("b")["scarcest"] == "0/2 cpu of any", "what it may borrow: it has nothing of its own"
        (active,) = status("a")["conditions"]
        assert (active["reason"], active["message"]) == ("Ready", "ready")
        assert types(scene, "a", "ClusterQueue") == {}, "it works since it was made"
        scene.server.remove(flavor)
        await scene.server.until(lambda: "FlavorNotFound" in types(scene, "a", "ClusterQueue"))
        assert types(scene, "a", "ClusterQueue") == {"FlavorNotFound": "Warning"}
        scene.server.make(f"{OWN}/resourceflavors", {"metadata": {"name": "any"}})
        await scene.server.until(lambda: "Ready" in types(scene, "a", "ClusterQueue"))
        assert types(scene, "a", "ClusterQueue")["Ready"] == "Normal"
        await scene.kill()

    run(story())


def test_the_scarcest_resource_is_the_one_of_which_the_largest_part_is_used() -> None:
    """Neither the one of which most is used, nor the first or the last that a queue counts."""
    gpu, disk, queue = "example.com/gpu", "example.com/disk", f"{OWN}/clusterqueues/a"

    async def story() -> None:
        scene = Scene({"a": 4})
        scene.jobs.lasts = lambda _: 1000.0
        quota = {"cpu": "4", gpu: "4", disk: "100"}
        scene.server.write(queue, {"spec": {"resources": [_counted(*each) for each in quota.items()]}})
        scene.submit("runs", "a", 1)
        requests = {"cpu": "1", gpu: "3", disk: "20"}
        containers = [{"resources": {"requests": requests}}]
        scene.server.write(f"{JOBS}/runs", {"spec": {"template": {"spec": {"containers": containers}}}})
        await scene.start()

        def status() -> Json:
            return scene.server.find(queue).get("status") or {}

        await scene.server.until(lambda: status().get("admittedWorkloads") == 1)
        assert status()["scarcest"] == f"3/4 {gpu} of any"
        await scene.kill()

    run(story())


def _counted(resource: str, amount: str) -> Json:
    return {"name": resource, "flavors": [{"name": "any", "quota": {"min": amount}}]}


def test_a_flavor_says_why_it_works_no_more_and_when_it_works_again() -> None:
    flavor = f"{OWN}/resourceflavors/any"

    async def story() -> None:
        scene = Scene({"a": 1})
        await scene.start()

        def reason() -> str:
            conditions = (scene.server.find(flavor).get("status") or {}).get("conditions") or (
                {"reason": ""},
            )
            return str(conditions[0]["reason"])

        await scene.settled(lambda: reason() == "Ready")
        assert types(scene, "any", "ResourceFlavor") == {}, "it works since it was made"
        scene.server.write(flavor, {"spec": {"gpuMemoryGB": 0}})
        await scene.server.until(lambda: bool(types(scene, "any", "ResourceFlavor")))
        assert types(scene, "any", "ResourceFlavor") == {"InvalidSpec": "Warning"}
        assert "gpuMemoryGB" in scene.events("any")["InvalidSpec"]
        await scene.server.until(lambda: "FlavorInvalid" in types(scene, "a", "ClusterQueue"))
        scene.server.write(flavor, {"spec": {"gpuMemoryGB": 40}})
        await scene.server.until(lambda: "Ready" in types(scene, "any", "ResourceFlavor"))
        told = {"InvalidSpec": "Warning", "Ready": "Normal"}
        assert types(scene, "any", "ResourceFlavor") == told
        await scene.kill()

    run(story())


def test_an_eviction_and_a_queue_that_is_missing_are_warnings() -> None:
    async def story() -> None:
        scene = Scene({"a": 1}, withinClusterQueue="LowerPriority")
        scene.submit("victim", "a", 1, "low")
        scene.submit("lost", "nowhere", 1)
        await scene.start()
        await scene.settled(lambda: scene.runs("victim") == 1 and "QueueNotFound" in types(scene, "lost"))
        assert "clusterQueue" not in (scene.workload("lost") or {})["status"]
        scene.submit("preemptor", "a", 1, "high")
        await scene.settled(lambda: scene.runs("preemptor") == 1)
        assert types(scene, "lost") == {"QueueNotFound": "Warning"}
        assert types(scene, "victim")["Preempted"] == "Warning"
        assert types(scene, "victim")["Admitted"] == "Normal"
        await scene.kill()

    run(story())


def _pause(scene: Scene) -> None:
    name = (scene.workload("job") or {})["metadata"]["name"]
    scene.server.write(f"{OWN}/namespaces/{TEAM}/workloads/{name}", {"spec": {"active": False}})


def _drain(scene: Scene) -> None:
    scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "HoldAndDrain"}})


def _grow(scene: Scene) -> None:
    scene.server.write(f"{JOBS}/job", {"spec": {"parallelism": 2, "completions": 2}})


def _preempt(scene: Scene) -> None:
    scene.submit("preemptor", "a", 2, "high")


@pytest.mark.parametrize(
    ("act", "reason", "kind", "words"),
    [
        (_pause, "Deactivated", "Normal", "paused"),
        (_drain, "ClusterQueueStopped", "Normal", "ClusterQueue a is stopped and drained"),
        (_grow, "JobChanged", "Warning", "its Job asks for more"),
        (_preempt, "Preempted", "Warning", "preempted for Workload"),
    ],
)
def test_each_eviction_is_told_on_the_job_once(
    act: Callable[[Scene], None], reason: str, kind: str, words: str
) -> None:
    async def story() -> None:
        scene = Scene({"a": 2}, withinClusterQueue="LowerPriority")
        scene.jobs.lasts = lambda _: 1000.0
        scene.submit("job", "a", 1, "low")
        await scene.start()
        await scene.settled(lambda: scene.runs("job") == 1)
        act(scene)
        await scene.settled(lambda: scene.runs("job") == 0)
        await scene.server.until(lambda: reason in types(scene, "job"))
        said = [
            event["message"]
            for event in scene.server.objects["events"].values()
            if (event["involvedObject"]["name"], event["reason"]) == ("job", reason)
            and event["message"].startswith(words)
        ]
        assert len(said) == 1, said
        assert types(scene, "job")[reason] == kind
        await scene.kill()

    run(story())


def test_a_refused_status_is_logged_once() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        refuses = refusing("clusterqueues", "scarcest")
        scene.server.policies.append(refuses)
        with capture_logs() as lines:
            await scene.start()
            await asyncio.sleep(30)
        failed = [line for line in lines if line["event"] == "status not written"]
        assert len(failed) > 5
        (loud,) = [line for line in failed if line["log_level"] == "warning"]
        assert (loud["kind"], loud["name"], loud["error"]) == (
            "clusterqueues",
            "a",
            "policy gold forbids scarcest",
        )
        scene.server.policies.remove(refuses)
        await scene.settled()
        await scene.kill()

    run(story())


def test_a_refused_admission_is_logged_once_and_told_on_the_job() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        refuses = refusing("workloads", "admission")
        scene.server.policies.append(refuses)
        scene.submit("job", "a", 1)
        with capture_logs() as lines:
            await scene.start()
            await asyncio.sleep(60)
        failed = [line for line in lines if line["event"] == "admission not written"]
        assert len(failed) > 2
        assert [line["workload"] for line in failed if line["log_level"] == "warning"] == [
            (scene.workload("job") or {})["metadata"]["name"]
        ]
        assert scene.events("job")["WriteRefused"].endswith("policy gold forbids admission")
        scene.server.policies.remove(refuses)
        await scene.settled(lambda: scene.is_done("job"))
        await scene.kill()

    run(story())


@pytest.mark.long
def test_an_admission_that_meets_changes_is_no_refused_one() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        meets = refusing("workloads", "admission", CONFLICT)
        scene.server.policies.append(meets)
        scene.submit("job", "a", 1)
        with capture_logs() as lines:
            await scene.start()
            await asyncio.sleep(60)
        assert len([line for line in lines if line["event"] == "admission not written"]) > 2
        scene.server.policies.remove(meets)
        await scene.settled(lambda: scene.is_done("job"))
        assert "WriteRefused" not in scene.events("job")
        await scene.kill()

    run(story())


def test_a_hold_is_told_once_and_is_no_warning() -> None:
    async def story() -> None:
        scene = Scene({"a": 1})
        queue, local = f"{OWN}/clusterqueues/a", f"{OWN}/namespaces/{TEAM}/localqueues/a"
        scene.server.write(queue, {"spec": {"stopPolicy": "Hold"}})
        scene.submit("waits", "a", 1)
        await scene.start()

        def active() -> str:
            conditions = (scene.server.find(local).get("status") or {}).get("conditions") or ({"reason": ""},)
            return str(conditions[0]["reason"])

        await scene.settled(lambda: active() == "ClusterQueueInactive")
        scene.server.write(queue, {"spec": {"stopPolicy": "None"}})
        await scene.settled(lambda: active() == "Ready")
        told = {"Stopped": "Normal", "Ready": "Normal"}
        await scene.server.until(lambda: types(scene, "a", "ClusterQueue") == told)
        await scene.settled(lambda: scene.is_done("waits"))
        scene.server.write(local, {"spec": {"stopPolicy": "Hold"}})
        scene.submit("later", "a", 1)
        await scene.server.until(lambda: "QueueStopped" in types(scene, "later"))
        await scene.server.until(lambda: bool(types(scene, "a", "LocalQueue")))
        assert types(scene, "a", "LocalQueue") == {"Stopped": "Normal"}, "its own, not its ClusterQueue's"
        assert set((types(scene, "waits") | types(scene, "later")).values()) == {"Normal"}
        assert "ClusterQueueStopped" in types(scene, "waits")
        await scene.kill()

    run(story())

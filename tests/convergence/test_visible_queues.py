"""What LocalQueues say of their ClusterQueue, and how often it is written."""

import asyncio
from collections import Counter

from admitter.cache.world import OWN
from admitter.controllers.quota_status.visible_queues import REFRESH_SECONDS, REFRESHED, SHOWN
from tests.apiserver.loop import run
from tests.apiserver.server import Json
from tests.convergence.scene import TEAM, Scene

MANY = 60


def seen(scene: Scene, queue: str, namespace: str = TEAM) -> Json | None:
    """What a LocalQueue says of its ClusterQueue."""
    raw = scene.server.find(f"{OWN}/namespaces/{namespace}/localqueues/{queue}")
    found: Json | None = (raw.get("status") or {}).get("clusterQueue")
    return found


def counts(scene: Scene, queue: str, namespace: str = TEAM) -> tuple[int, int]:
    """How many wait and hold quota in the ClusterQueue, by a LocalQueue; negative: it does not say."""
    told = seen(scene, queue, namespace) or {}
    return told.get("pendingWorkloads", -1), told.get("admittedWorkloads", -1)


def test_a_local_queue_tells_quota_use_and_line_of_its_cluster_queue() -> None:
    async def story() -> None:
        scene = Scene({"a": 2, "b": 1})
        scene.jobs.lasts = lambda _: 1000.0
        for number in range(4 + SHOWN):
            scene.submit(f"job-{number}", "a", 1)
        scene.submit("elsewhere", "b", 1)
        await scene.start()
        await scene.server.until(lambda: counts(scene, "a") == (SHOWN + 2, 2))
        told = seen(scene, "a")
        assert told is not None
        (flavor,) = told["flavors"]
        assert flavor == {
            "name": "any",
            "resources": [
                {"name": "cpu", "quota": "2", "max": "3", "used": "2", "borrowed": "0", "free": "0"}
            ],
        }
        assert [each["position"] for each in told["line"]] == list(range(1, SHOWN + 1))
        names = {each["metadata"]["name"] for each in scene.server.objects["workloads"].values()}
        assert {each["name"] for each in told["line"]} < names
        await scene.server.until(lambda: counts(scene, "b") == (0, 1))
        await scene.kill()

    run(story())


def test_an_administrator_may_hide_a_cluster_queue() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        scene.jobs.lasts = lambda _: 1000.0
        scene.submit("job", "a", 1)
        await scene.start()
        await scene.server.until(lambda: seen(scene, "a") is not None)
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"visibility": "Namespace"}})
        await scene.server.until(lambda: seen(scene, "a") is None)
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"visibility": "Queue"}})
        await scene.server.until(lambda: seen(scene, "a") is not None)
        await scene.kill()

    run(story())


def test_what_the_cohort_has_free_is_told_to_those_that_do_nothing() -> None:
    async def story() -> None:
        scene = Scene({"a": 2, "b": 1})
        scene.jobs.lasts = lambda _: 1000.0
        await scene.start()

        def free() -> str:
            told = seen(scene, "b") or {"flavors": [{"resources": [{"free": ""}]}]}
            return str(told["flavors"][0]["resources"][0]["free"])

        await scene.server.until(lambda: free() == "3")
        scene.submit("job", "a", 2)
        await scene.server.until(lambda: free() == "1")
        await scene.kill()

    run(story())


def test_what_others_do_costs_few_writes_and_reaches_every_local_queue() -> None:
    """Sixty idle LocalQueues hear of one busy one, a few of them at a time."""

    async def story() -> None:
        scene = Scene({"a": 2})
        scene.jobs.lasts = lambda _: 1.0
        others = [f"other-{number}" for number in range(MANY)]
        for other in others:
            scene.server.make("/api/v1/namespaces", {"metadata": {"name": other}})
            path = f"{OWN}/namespaces/{other}/localqueues"
            scene.server.make(path, {"metadata": {"name": "main"}, "spec": {"clusterQueue": "a"}})
        await scene.start()
        await scene.server.until(lambda: all(counts(scene, "main", other) == (0, 0) for other in others))
        writes: Counter[str] = Counter()

        def count(plural: str, before: Json | None, after: Json | None) -> None:
            if plural == "localqueues" and before and after and before["status"] != after["status"]:
                writes[after["metadata"]["namespace"]] += 1

        scene.server.listen(count)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(30):
            scene.submit(f"job-{number}", "a", 1)
        await scene.settled(lambda: all(scene.is_done(f"job-{number}") for number in range(30)))
        rounds = (loop.time() - began) // REFRESH_SECONDS + 1
        assert sum(writes[other] for other in others) <= rounds * REFRESHED
        await scene.server.until(lambda: all(counts(scene, "main", other) == (0, 0) for other in others))
        assert writes[others[-1]], "the last one has had its turn"
        settled = loop.time()
        assert settled - began <= (rounds + 2 * MANY / REFRESHED + 2) * REFRESH_SECONDS
        writes.clear()
        await asyncio.sleep(20 * REFRESH_SECONDS)
        assert not writes, "nothing is written once all is said"
        await scene.kill()

    run(story())

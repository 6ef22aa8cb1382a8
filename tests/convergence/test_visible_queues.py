"""What LocalQueues say of their ClusterQueue, and how often it is written."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from admitter.cache.world import OWN
from admitter.client.store import Key
from admitter.controllers.app import App
from admitter.controllers.quota_status.visible_queues import (
    REFRESH_SECONDS,
    REFRESHED,
    SHOWN,
    VisibleQueues,
)
from admitter.election.elector import ElectionListener
from admitter.election.lease_lock import Term
from tests.apiserver.loop import run
from tests.apiserver.server import ApiServer, Json, clock
from tests.convergence.scene import TEAM, Alone, Scene

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


def crowd(scene: Scene) -> list[str]:
    """Namespaces before the team's in order, each with a LocalQueue `main` that leads to ClusterQueue `a`."""
    others = [f"other-{number}" for number in range(MANY)]
    for other in others:
        scene.server.make("/api/v1/namespaces", {"metadata": {"name": other}})
        path = f"{OWN}/namespaces/{other}/localqueues"
        scene.server.make(path, {"metadata": {"name": "main"}, "spec": {"clusterQueue": "a"}})
    return others


async def seconds_until(scene: Scene, condition: Callable[[], bool]) -> float:
    """How long something takes."""
    began = asyncio.get_running_loop().time()
    await scene.server.until(condition)
    return asyncio.get_running_loop().time() - began


def test_a_tenant_that_acts_hears_of_the_cluster_queue_before_others() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        others = crowd(scene)
        await scene.start()
        await scene.server.until(lambda: all(counts(scene, "main", other) == (0, 0) for other in others))
        await asyncio.sleep(2 * REFRESH_SECONDS)
        scene.submit("job", "a", 3)
        taken = await seconds_until(scene, lambda: counts(scene, "a") == (1, 0))
        assert (seen(scene, "a") or {})["line"] == [], "what never fits has no place"
        scene.submit("runs", "a", 2)
        scene.submit("waits", "a", 1)
        taken = max(taken, await seconds_until(scene, lambda: counts(scene, "a") == (2, 1)))
        assert [each["position"] for each in (seen(scene, "a") or {})["line"]] == [1]
        assert taken <= REFRESH_SECONDS + 3
        await scene.kill()

    run(story())


def test_tenants_that_act_leave_turns_to_others() -> None:
    async def story() -> None:
        app, touched = App(ApiServer(), clock, Random(1)), list[Key]()
        visible = VisibleQueues(app.world, app.catalog, app.engine, lambda _: {}, touched.append)
        for number in range(REFRESHED):
            visible.defer(("idle", str(number)))
            visible.defer(("acts", str(number)))
            visible.hasten(("acts", str(number)))
        visible.refresh()
        assert Counter(namespace for namespace, _ in touched) == {"acts": 10, "idle": 10}
        visible.hasten(("idle", "0"))
        visible.refresh()
        visible.refresh()
        assert touched[REFRESHED] == ("idle", "0"), "it has acted since"
        assert set(touched) == {
            (namespace, str(n)) for namespace in ("acts", "idle") for n in range(REFRESHED)
        }
        assert len(touched) == 2 * REFRESHED + 1

    run(story())


def test_what_is_hidden_is_gone_at_once_and_from_messages_too() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        scene.jobs.lasts = lambda _: 1000.0
        others = crowd(scene)
        scene.submit("runs", "a", 1)
        scene.submit("waits", "a", 2)
        await scene.start()
        await scene.server.until(lambda: all(counts(scene, "main", other) == (1, 1) for other in others))
        plain = "asks for 2 cpu from ClusterQueue a: too much of the 2 cpu of any is in use"
        in_use = "asks for 2 cpu from ClusterQueue a: 1 of 2 cpu of any in use, 1 free, 2 asked (at "

        def message() -> str:
            return str(((scene.workload("waits") or {}).get("status") or {}).get("message"))

        await scene.server.until(lambda: message().startswith(in_use))
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"visibility": "Namespace"}})
        tenants = [("a", TEAM), *(("main", other) for other in others)]
        taken = await seconds_until(scene, lambda: not any(seen(scene, *tenant) for tenant in tenants))
        assert taken <= 3
        await scene.server.until(lambda: message() == plain)
        await scene.server.until(lambda: scene.events("waits")["InsufficientQuota"] == plain)
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"visibility": "Queue"}})
        await scene.server.until(lambda: counts(scene, "a") == (1, 1) and message().startswith(in_use))
        await scene.kill()

    run(story())


def test_a_namespace_that_is_not_selected_is_told_nothing() -> None:
    async def story() -> None:
        scene = Scene({"a": 2})
        await scene.start()
        await scene.server.until(lambda: seen(scene, "a") is not None)
        selector = {"matchLabels": {"team": "gold"}}
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"namespaceSelector": selector}})
        await scene.server.until(lambda: seen(scene, "a") is None)
        namespace = f"/api/v1/namespaces/{TEAM}"
        scene.server.write(namespace, {"metadata": {"labels": {"team": "gold"}}})
        await scene.server.until(lambda: seen(scene, "a") is not None)
        scene.server.write(namespace, {"metadata": {"labels": {"team": "red"}}})
        await scene.server.until(lambda: seen(scene, "a") is None)
        await scene.kill()

    run(story())


def test_what_another_leader_changed_is_not_told_as_it_was_before() -> None:
    class Lent(Alone):
        """The shard goes to another process for a while."""

        lent = False

        def start(self, listener: ElectionListener) -> None:
            self.listener = listener
            super().start(listener)

        def release(self, _shard: int) -> None:
            self.lent = True

    async def story() -> None:
        scene, candidacy = Scene({"a": 2}), Lent()
        await scene.start(candidacy=candidacy)
        await scene.server.until(lambda: counts(scene, "a") == (0, 0))
        await asyncio.sleep(2 * REFRESH_SECONDS)
        candidacy.listener.release_requested(0)
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert candidacy.lent
        quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": "3"}}]}]
        scene.server.write(f"{OWN}/clusterqueues/a", {"spec": {"resources": quota}})
        scene.submit("job", "a", 1)
        await asyncio.sleep(1)
        candidacy.listener.acquired(0, Term(handed_over=True))
        told = list[str]()

        def note(plural: str, before: Json | None, after: Json | None) -> None:
            if plural == "localqueues" and after and before != after:
                told.append(after["status"]["clusterQueue"]["flavors"][0]["resources"][0]["quota"])
                assert after["status"]["pendingWorkloads"]

        scene.server.listen(note)
        await scene.server.until(lambda: bool(told))
        assert told[0] == "3"
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
        others = crowd(scene)
        await scene.start()
        await scene.server.until(lambda: all(counts(scene, "main", other) == (0, 0) for other in others))
        writes: Counter[str] = Counter()

        def count(plural: str, before: Json | None, after: Json | None) -> None:
            if plural == "localqueues" and before and after and before["status"] != after["status"]:
                writes[after["metadata"]["namespace"]] += 1

        scene.server.listen(count)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(50):
            scene.submit(f"job-{number}", "a", 1)
        await scene.settled(lambda: all(scene.is_done(f"job-{number}") for number in range(50)))
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

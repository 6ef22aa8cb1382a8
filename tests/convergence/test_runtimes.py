"""Runtimes of TrainJobs that change: at a bad moment, or while the API server fails."""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from admitter.cache.world import OWN
from admitter.client.errors import api_error
from admitter.names import QUEUE_LABEL
from tests.apiserver.loop import run
from tests.convergence.lab import template
from tests.convergence.test_children import JOINED, RUNTIME, TRAINJOBS, Operated

Json = dict[str, Any]


async def begin(lab: Operated) -> None:
    """Start the controller, and make a TrainJob and its runtime."""
    spec = {"template": {"spec": {"replicatedJobs": JOINED}}}
    lab.server.make(RUNTIME, {"metadata": {"name": "torch"}, "spec": spec})
    await lab.start()
    metadata = {"name": "train", "labels": {QUEUE_LABEL: "a"}}
    body = {"metadata": metadata, "spec": {"suspend": True, "runtimeRef": {"name": "torch"}}}
    lab.server.make(TRAINJOBS, body)


@pytest.mark.parametrize(
    ("later", "used"),
    [(JOINED[:1], 2000), ([], 0), (None, 0)],
    ids=["one is left", "none is left", "it goes"],
)
def test_a_runtime_that_shrinks_between_admission_and_start_leaves_no_quota_without_pods(
    later: list[Json] | None, used: int
) -> None:
    async def story() -> None:
        lab = Operated()
        lab.jobs.lasts = lambda _: 500.0
        changed = False

        def operate(plural: str, before: Json | None, after: Json | None) -> None:
            """As the operator; the runtime changes just before it acts on the first start."""
            nonlocal changed
            if plural == "trainjobs" and after and not after["spec"]["suspend"] and not changed:
                changed = True
                if later is None:
                    lab.server.remove(f"{RUNTIME}/torch")
                else:
                    replaced = {"template": {"spec": {"replicatedJobs": later}}}
                    lab.server.write(f"{RUNTIME}/torch", {"spec": replaced})
            if plural != "trainjobs" or ("", "torch") in lab.server.objects["clustertrainingruntimes"]:
                lab._operate(plural, before, after)

        lab.server.ignore(lab._operate)
        lab.server.listen(operate)
        await begin(lab)
        await lab.server.until(lambda: lab.used("a") == 3000)
        await lab.settled(lambda: lab.used("a") == used)
        assert "fewer pods than were admitted" in lab.events("train")["JobChanged"]
        if used:
            await lab.settled(lambda: lab.runs("train-w") == 1)
            assert lab.used("a") == used
        await lab.kill()

    run(story())


class Adding(Operated):
    """A lab with an operator that adds a container to each pod, which the runtime does not say."""

    def _operate_jobset(self, jobs: Json) -> None:
        jobs = deepcopy(jobs)
        for each in jobs["spec"]["replicatedJobs"]:
            containers = each["template"]["spec"]["template"]["spec"]["containers"]
            containers.append({"name": "sidecar", "resources": {"requests": {"cpu": "100m"}}})
        super()._operate_jobset(jobs)


def test_pods_that_an_operator_makes_otherwise_are_stopped_and_tried_again_ever_more_seldom() -> None:
    async def story() -> None:
        lab = Adding()
        lab.jobs.lasts = lambda _: 500.0
        admitted = 0

        def count(plural: str, before: Json | None, after: Json | None) -> None:
            nonlocal admitted
            had, has = (bool(((each or {}).get("status") or {}).get("admission")) for each in (before, after))
            admitted += plural == "workloads" and has and not had

        lab.server.listen(count)
        await begin(lab)
        await asyncio.sleep(300)
        assert 2 <= admitted <= 6
        await lab.settled(lambda: lab.used("a") == 0)
        assert "its operator has made other pods than were admitted" in lab.events("train")["NotStarted"]
        await lab.kill()

    run(story())


@pytest.mark.parametrize("status", [403, 500], ids=["refused", "the server fails"])
def test_an_object_that_cant_be_read_anew_holds_up_none_of_the_others(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        lab = Operated()
        lab.server.ignore(lab._operate)
        jobs = [{"name": "w", "template": {"spec": {"template": template(2)}}}]
        runtime = {"metadata": {"name": "torch"}, "spec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        lab.server.make(RUNTIME, runtime)
        for name in ("a", "b", "c"):
            metadata = {"name": name, "labels": {QUEUE_LABEL: "a"}}
            spec = {"suspend": True, "runtimeRef": {"name": "torch"}}
            lab.server.make(TRAINJOBS, {"metadata": metadata, "spec": spec})
        lab.server.write(f"{OWN}/clusterqueues/a", {"spec": {"stopPolicy": "Hold"}})
        await lab.start()
        await lab.server.until(lambda: len(lab.server.objects["workloads"]) == 3)
        get, failing = lab.server.get, {f"{TRAINJOBS}/{name}" for name in "ab"}

        async def answered(path: str, query: Mapping[str, str] | None = None) -> Json:
            if path in failing:
                raise api_error(status, {"message": "its webhook fails"})
            return await get(path, query)

        monkeypatch.setattr(lab.server, "get", answered)
        jobs = [{"name": "w", "template": {"spec": {"template": template(1)}}}]
        lab.server.write(f"{RUNTIME}/torch", {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}})

        def asks() -> dict[str, str]:
            found = lab.server.objects["workloads"].values()
            return {
                each["metadata"]["ownerReferences"][0]["name"]: each["spec"]["podSets"][0]["requests"]["cpu"]
                for each in found
            }

        await lab.server.until(lambda: asks() == {"a": "2", "b": "2", "c": "1"}, seconds=60)
        failing.clear()
        await lab.server.until(lambda: set(asks().values()) == {"1"}, seconds=60)
        await lab.kill()

    run(story())

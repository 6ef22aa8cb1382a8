"""Conditions of JobKinds by whether their policies are there; the API server fails for one of them."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

from admitter.api.conditions import ActiveReason
from admitter.cache.views import ObjectView, parse_object
from admitter.cache.world import World
from admitter.client.errors import NotFoundError, UnreachableError
from admitter.client.signal import Signal
from admitter.client.transport import Json, Transport
from admitter.controllers.quota_status.job_kinds import JobKindConditions
from admitter.following.kind_informers import KindInformers
from tests.kinds.described import experiment


class Server:
    """Has policies of no JobKind, and gives no answer about that of the first one."""

    async def get(self, path: str, _query: Mapping[str, str] | None = None) -> Json:
        if path.endswith("/v1"):
            return {"resources": [{"kind": "MutatingAdmissionPolicy"}]}
        if path.endswith("/admitter-kind-first"):
            raise UnreachableError("no answer")
        raise NotFoundError(404, "NotFound", path)


def job_kind(name: str) -> ObjectView:
    metadata = {
        "name": name,
        "uid": name,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return parse_object({**experiment(), "metadata": metadata})


async def test_one_that_cant_be_looked_at_leaves_the_conditions_of_others() -> None:
    world = World()
    for name in ("first", "second"):
        world.job_kinds.apply(job_kind(name))
    wrong = (ActiveReason.INVALID_SPEC, "spec.active: does not compile")
    problems = {"first": None, "second": None, "third": wrong}
    informers = cast("KindInformers", SimpleNamespace(problems=problems, judged=Signal[[]]()))
    conditions = JobKindConditions(world, informers, cast("Transport", Server()))
    told: list[str] = []
    conditions.changed.listen(told.append)
    running = asyncio.create_task(conditions.run())
    while len(told) < len(problems):  # noqa: ASYNC110  # each is told once it has been looked at
        await asyncio.sleep(0)
    running.cancel()
    words = "it is not known whether its policies are there: no answer"
    assert conditions.found["first"] == (ActiveReason.NO_POLICY, words)
    lacking = conditions.found["second"]
    assert lacking is not None
    assert lacking[0] is ActiveReason.NO_POLICY
    assert "its policies are missing" in lacking[1]
    assert conditions.found["third"] == wrong

"""A cluster that is followed: snapshots of it are as it is, and what stands in the way is known."""

import asyncio
import json
import time
from random import Random

import pytest

from admitter.client.errors import ApiError
from admitter.client.transport import HttpTransport
from admitter.convert.settings import DEFAULTS
from admitter.insight.live import Mirror
from admitter.insight.overview import overview
from admitter.sandbox.cluster import Cluster
from admitter.top.scene import Live
from tests.cluster.objects import cluster_queue
from tests.cluster.waiting import eventually
from tests.top.terminal import terminal

pytestmark = pytest.mark.cluster


async def test_a_queue_that_is_made_is_in_one_of_the_next_pictures(
    installed: Cluster, namespace: str
) -> None:
    name = f"{namespace}-live"
    manifest = json.dumps(cluster_queue(name, {"cpu": {"default": "4"}}, namespace))
    async with (
        await HttpTransport.connect(installed.kubeconfig, installed.context) as transport,
        asyncio.timeout(120),
    ):
        mirror = Mirror(transport, DEFAULTS, Random(1), time.time)
        async with mirror.following():
            snapshots = mirror.snapshots()
            _, snapshot = await anext(snapshots)
            before, revision = {line.node for line in overview(snapshot)}, mirror.revision
            await asyncio.to_thread(installed.run_kubectl, "apply", "-f", "-", content=manifest)
            try:
                found = before
                while ("queue", name) not in found:
                    _, snapshot = await anext(snapshots)
                    found = {line.node for line in overview(snapshot)}
            finally:
                await asyncio.to_thread(installed.run_kubectl, "delete", "clusterqueue", name)
            assert ("queue", name) not in before
            assert mirror.revision > revision
            assert mirror.failure is None


async def test_a_user_that_may_not_read_a_cluster_reads_so(user: Cluster) -> None:
    async with await HttpTransport.connect(user.kubeconfig, repeats=False) as transport:
        mirror = Mirror(transport, DEFAULTS, Random(1), time.time)
        live = Live(mirror, "test")
        following = asyncio.create_task(live.follow(lambda _: None))
        try:
            await asyncio.to_thread(eventually, lambda: mirror.failure is not None, what="a refusal")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert mirror.failure is not None
        error = mirror.failure[1]
        assert isinstance(error, ApiError)
        assert error.status == 403
        assert live.trouble().startswith("A right is missing: to list ")
        assert "ClusterRole admitter-reader gives it" in live.trouble()


def test_top_shows_a_queue_as_soon_as_it_is_made(installed: Cluster, namespace: str) -> None:
    name = f"{namespace}-top"
    manifest = json.dumps(cluster_queue(name, {"cpu": {"default": "4"}}, namespace))
    access = [f"--kubeconfig={installed.kubeconfig}"]
    access += [f"--context={installed.context}"] if installed.context else []
    with terminal("top", *access, environment={}) as shown:
        shown.until("in the last minute")
        shown.press(f"/{name}")
        shown.until(name)
        installed.run_kubectl("apply", "-f", "-", content=manifest)
        try:
            shown.until(f"ClusterQueue {name}")
        finally:
            installed.run_kubectl("delete", "clusterqueue", name)
        shown.press("\rq")
        assert shown.ended() == 0

"""A patch of a grant that is still on its way when pods have to end again comes too late."""

import asyncio

import pytest

from tests.apiserver import server as apiserver
from tests.apiserver.loop import run
from tests.apiserver.rays import group
from tests.apiserver.server import Fate
from tests.convergence.scene import Scene
from tests.convergence.test_growing import Growing
from tests.convergence.test_growing_kinds import Rays

LATE_SECONDS = 300.0


class Network:
    """Delays the next patch of a job object, and refuses those after it, while it is `bad`."""

    def __init__(self, scene: Scene, path: str) -> None:
        self.bad = False
        self.sent = 0
        self._path, self._called = path, ""
        scene.server.called.append(self._call)
        scene.server.fate = self._fate

    def _call(self, path: str, _name: str) -> None:
        self._called = path

    def _fate(self) -> Fate:
        if not self.bad or not self._called.endswith(self._path):
            return Fate.DONE
        self.sent += 1
        return Fate.LATE if self.sent == 1 else Fate.BUSY


@pytest.fixture(autouse=True)
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver, "LATE_SECONDS", LATE_SECONDS)


@pytest.mark.parametrize("killed", [False, True])
def test_a_bound_that_was_raised_for_a_grant_of_before(killed: bool) -> None:
    async def story() -> None:
        scene = Rays({"a": 6})
        network = Network(scene, "/rayclusters/tune")
        scene.cluster("tune", "a", group("small", 2, 4), autoscales=False)
        await scene.start()
        await scene.settled(lambda: scene.workers("tune") == 2)
        network.bad = True
        scene.ask("tune", 4)
        await scene.server.until(lambda: network.sent > 0)
        assert scene.parts("tune") == {"small": (4, 4)}
        if killed:
            await scene.kill()
            await scene.start(2)
        scene.submit("next", "a", 1, pods=3)
        await scene.server.until(lambda: scene.parts("tune") == {"small": (4, 2)})
        network.bad = False
        await scene.settled(lambda: scene.runs("next") == 3)
        await asyncio.sleep(2 * LATE_SECONDS)
        assert (scene.workers("tune"), scene.bounds("tune")) == (2, [2])
        assert scene.condition("tune", "Evicted") == ""
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())


@pytest.mark.parametrize("killed", [False, True])
def test_a_parallelism_that_was_raised_for_a_grant_of_before(killed: bool) -> None:
    async def story() -> None:
        scene = Growing({"a": 8})
        network = Network(scene, "/jobs/sweep")
        scene.able("sweep", "a", 4, "6")
        await scene.start()
        await scene.settled(lambda: scene.runs("sweep") == 6)
        scene.submit("first", "a", 1, pods=4)
        await scene.settled(lambda: scene.runs("first") == 4 and scene.runs("sweep") == 4)
        network.bad = True
        scene.delete("first")
        await scene.server.until(lambda: network.sent > 0)
        assert scene.resize("sweep") == (6, 6)
        if killed:
            await scene.kill()
            await scene.start(2)
        scene.submit("next", "a", 1, pods=4)
        await scene.server.until(lambda: scene.resize("sweep") == (6, 4))
        network.bad = False
        await scene.settled(lambda: scene.runs("next") == 4)
        await asyncio.sleep(2 * LATE_SECONDS)
        assert scene.runs("sweep") == 4
        assert scene.condition("sweep", "Evicted") == ""
        assert (scene.beyond, scene.excesses) == ([], [])
        await scene.kill()

    run(story())

"""How scenes come about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from admitter.insight.forecast.deadline import NO_LIMIT
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Facts, Snapshot
from admitter.web.scene import WebScene
from admitter.web.stage import Stage
from tests.web.pages import LEADS, department


class Changing:
    """A cluster in which the second change comes while the first snapshot is made, in another thread."""

    controllers = LEADS

    def __init__(self) -> None:
        self.revision = 1

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        yield

    async def snapshots(self) -> AsyncIterator[tuple[Facts, Snapshot]]:
        for jobs in (1, 2):
            known = facts(department(jobs).snapshot())
            self.revision = 2
            yield known, Snapshot(known)


async def test_each_scene_has_a_revision_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, scenes = Stage(Changing(), NO_LIMIT), list[WebScene]()
    monkeypatch.setattr(stage, "put", scenes.append)
    await stage.run()
    assert [len(scene.rows) for scene in scenes] == [3, 4]
    assert scenes[0].revision < scenes[1].revision

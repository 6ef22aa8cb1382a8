"""Long work beside the screen."""

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from admitter.insight.estimates import Estimator
from admitter.insight.playing import interruptible
from admitter.simulate.picture import Picture
from admitter.top.background import AbandonedError, in_background
from tests.top.clusters import GPU, company
from tests.top.screens import scene_of, watching


async def test_its_result_and_its_failure_come_back() -> None:
    assert await in_background(lambda _: 7) == 7

    def fails(_: Callable[[], None]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await in_background(fails)


async def test_work_that_nobody_waits_for_ends_when_it_looks() -> None:
    began, ended = Event(), Event()

    def works(proceed: Callable[[], None]) -> None:
        began.set()
        try:
            while True:
                proceed()
        except AbandonedError:
            ended.set()
            raise

    task = asyncio.create_task(in_background(works))
    assert await asyncio.to_thread(began.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 30)


def test_an_estimate_looks_before_each_run() -> None:
    known = scene_of(company()).known
    picture = Picture(known)
    (wanted,) = [view for view in picture.world.workloads if view.job and view.job[0] == "train-7"]
    looked: list[str] = []
    player = interruptible(lambda: looked.append(GPU))
    Estimator(known, picture, runs=3, play=player).of([wanted])
    assert len(looked) == 3


async def test_who_leaves_an_explanation_ends_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()

    def endless(estimator: Estimator, _: object) -> None:
        try:
            while True:
                estimator._play([lambda: None])
        finally:
            ended.set()

    monkeypatch.setattr(Estimator, "of", endless)
    async with watching(company()) as glass:
        await glass.press("down", "enter", "slash", *"train-7", "enter", "enter")
        while "Start: trying the future …" not in "\n".join(await glass.lines()):
            assert not ended.is_set()
        await glass.press("escape")
        assert await asyncio.to_thread(ended.wait, 30)
        assert "1–1 of 1" in (await glass.lines())[2]

"""Long work beside the screen."""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from admitter.insight.explain.outlook import first
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.forecast.estimates import Estimator
from admitter.top import explanation
from admitter.top.background import AbandonedError, in_background
from tests.top.clusters import company
from tests.top.screens import watching


async def test_its_result_and_its_failure_come_back() -> None:
    assert await in_background(lambda _: 7) == 7

    def fails(_: Callable[[], None]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await in_background(fails)


async def test_work_that_no_reader_waits_for_ends_when_it_looks() -> None:
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


async def test_an_estimate_that_is_not_there_in_time_is_said_to_be_missing() -> None:
    async with watching(company(), allowance=Allowance(0.0)) as glass:
        await glass.press("down", "enter", "slash", *"train-7", "enter", "enter")
        text = "\n".join(await glass.explained())
        assert "waits for" in text
        assert "Blocking workloads: not found in time" in text
        assert "Start: no estimate in time" in text


async def test_what_its_status_says_is_there_while_a_workload_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = Event()

    def slow(*arguments: Any) -> Any:
        go_on.wait()
        return first(*arguments)

    monkeypatch.setattr(explanation, "first", slow)
    async with watching(company()) as glass:
        text = "\n".join(await glass.press("down", "enter", "slash", *"train-7", "enter", "enter"))
        go_on.set()
        assert "train-7: Pending" in text
        assert "Asking …" in text
        assert "Asking …" not in "\n".join(await glass.explained())


@pytest.mark.long
async def test_a_user_that_leaves_an_explanation_ends_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()

    def endless(estimator: Estimator, _: object) -> None:
        try:
            while True:
                estimator._playing.proceed()
        finally:
            ended.set()

    monkeypatch.setattr(Estimator, "of", endless)
    async with watching(company()) as glass:
        await glass.press("down", "enter", "slash", *"train-7", "enter", "enter")
        while "Start: running playouts …" not in "\n".join(await glass.lines()):
            assert not ended.is_set()
        await glass.press("escape")
        assert await asyncio.to_thread(ended.wait, 30)
        assert "1–1 of 1" in (await glass.lines())[2]

"""The forecast that all users share: once, in pieces between estimates, and in time or not at all."""

import asyncio

import pytest

from admitter.insight.forecast.deadline import NO_LIMIT, Allowance
from admitter.insight.forecast.schedule import Forecaster
from admitter.web.forecasting import OLD_SECONDS, TOO_OLD_SECONDS, Forecasts
from admitter.web.turns import Limits
from tests.insight.test_schedule import line, spoken
from tests.web.histories import scene
from tests.web.pages import department


class Clock:
    """A clock that goes on by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


async def test_one_forecast_is_for_all() -> None:
    forecasts = Forecasts(Limits(NO_LIMIT))
    shown = scene(line())
    found = await asyncio.gather(*(forecasts.of(shown) for _ in range(5)))
    first = found[0].forecast
    assert first is not None
    assert {id(each.forecast) for each in found} == {id(first)}
    assert first.done
    assert not (await forecasts.of(shown)).working
    later = await forecasts.of(scene(line(), OLD_SECONDS - 1))
    assert later.forecast is first


async def test_an_old_one_is_shown_until_the_next_is_there_and_a_very_old_one_is_not() -> None:
    clock = Clock(0.0)
    forecasts = Forecasts(Limits(Allowance(float("inf"), clock)))
    first = (await forecasts.of(scene(line()))).forecast
    found = await forecasts.of(scene(line(), OLD_SECONDS + 1))
    assert found.forecast is first
    assert found.working
    newer = await forecasts.made()
    assert newer is not None
    assert (await forecasts.of(scene(line(), OLD_SECONDS + 2))).forecast is newer
    assert newer is not first
    last = (await forecasts.of(scene(line(), OLD_SECONDS + TOO_OLD_SECONDS + 2))).forecast
    assert last is not None
    assert last is not newer, "a very old one is not shown: it is waited for the next"


async def test_it_takes_many_turns_and_leaves_room_for_estimates_between() -> None:
    """A turn ends after a quarter of what an estimate may take: an estimate waits for one turn only."""
    limits = Limits(Allowance(8.0, Clock(0.05)))
    forecasts = Forecasts(limits)
    asked = asyncio.create_task(forecasts.of(scene(department())))
    turns = 0
    while not asked.done() or (await forecasts.of(scene(department()))).working:
        assert await limits.estimating.result(lambda _: True, NO_LIMIT, 60) is True
        turns += 1
    assert turns > 3
    found = await forecasts.made()
    assert found is not None
    assert found.reached > found.taken


async def test_what_takes_too_long_is_shown_as_far_as_it_came_or_not_at_all() -> None:
    forecasts = Forecasts(Limits(Allowance(0.0, Clock(1.0))))
    found = await forecasts.of(scene(department()))
    assert found.forecast is None
    assert await forecasts.made() is None
    assert not (await forecasts.of(scene(department()))).working, "it rests"

    short = Forecasts(Limits(Allowance(4.0, Clock(0.2))))
    await short.of(scene(department()))
    part = await short.made()
    assert part is not None
    assert not part.done


async def test_a_failure_is_no_failure_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Forecaster) -> None:
        raise RuntimeError

    forecasts = Forecasts(Limits(Allowance(float("inf"), Clock(0.0))))
    with monkeypatch.context() as patched:
        patched.setattr(Forecaster, "play", broken)
        assert (await forecasts.of(scene(line()))).forecast is None
        assert await forecasts.made() is None
    found = (await forecasts.of(scene(line()))).forecast
    assert found is not None
    assert spoken(found)[0][0] == "runs"

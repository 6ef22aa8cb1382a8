"""Readers of a cluster with Workloads that come and go: `admitter top`, the page's server, and a browser.

Each looks at every round and says so afterwards; what is measured then is up to the caller.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from math import inf
from random import Random
from typing import Final
from unittest import mock

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware
from playwright.async_api import Page as Tab
from playwright.async_api import async_playwright
from textual.pilot import Pilot

from admitter.client.access import Access
from admitter.convert.settings import DEFAULTS
from admitter.insight import live
from admitter.insight.forecast.deadline import NO_LIMIT
from admitter.insight.live import Mirror
from admitter.policy.snapshot import Facts
from admitter.top.app import Top
from admitter.top.scene import Live, TopScene
from admitter.web import forecasting
from admitter.web.history import History
from admitter.web.samples import KEPT_SECONDS, TIERS
from admitter.web.scene import WebScene
from admitter.web.server import Handler, Page
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage
from benchmarks.turnover import GUESTS, Json, Turnover

ADMIN: Final = "admin"
PATIENCE_MS: Final = 300_000
"""A machine that does other work as well draws a round late."""
SELDOM: Final = 20
"""Every so many rounds something is done that takes long: an explanation, estimates of starts."""
MINUTE: Final = 60
"""Every so many rounds the user at the terminal goes through its views."""
KEYS: Final = (
    ("down", "enter", "down", "escape", "home"),
    ("r", "u", "w", "a", "n", "minus", "plus", "question_mark", "escape"),
    ("end", "up", "enter", "end", "slash", "j", "o", "b", "escape", "escape", "home"),
)
EXPLAINED: Final = ("down", "enter", "end", "enter")

Done = Callable[[int], Awaitable[None]]
"""Called after each round, with its number from 1."""


class _PlayedMirror(Mirror):
    """The cluster, followed as `admitter top` and `admitter web` do; knows the last picture of a round."""

    def __init__(self, turnover: Turnover) -> None:
        super().__init__(turnover.api, DEFAULTS, Random(1), lambda: turnover.now)  # noqa: S311  # spreads load only
        self._turnover = turnover
        self._newest: Facts | None = None
        self._heard = 0

    def facts(self) -> Facts:
        self._heard = self.revision
        self._newest = super().facts()
        return self._newest

    def is_present(self, known: Facts) -> bool:
        """Whether a picture of these facts is the last one of this round: it shows all that has happened."""
        newest = known is self._newest and known.taken == self._turnover.now
        return newest and self._heard == self.revision


@contextmanager
def hurried() -> Iterator[None]:
    """Pictures one after the other, without pauses that leave time for other work, and none without a change.

    So what is in memory after a round does not depend on how long the round took.
    """
    with (
        mock.patch.multiple(live, LEAST_PAUSE_SECONDS=0.0, REST=0.0, QUIET_SECONDS=inf),
        mock.patch.object(forecasting, "IDLE", 0.0),
    ):
        yield


class _Feed(Live):
    """Tells when the last scene of a round is on the screen."""

    def __init__(self, turnover: Turnover) -> None:
        self._played = _PlayedMirror(turnover)
        super().__init__(self._played, "an hour")
        self._shown = asyncio.Event()

    async def follow(self, show: Callable[[TopScene], None]) -> None:
        def noted(scene: TopScene) -> None:
            show(scene)
            if self._played.is_present(scene.known):
                self._shown.set()

        await super().follow(noted)

    async def shown(self) -> None:
        """Wait for the present."""
        await self._shown.wait()
        self._shown.clear()


async def at_the_terminal(turnover: Turnover, rounds: int, done: Done, visits: int = 0) -> None:
    """A user has `admitter top` open, goes through its views now and then, and comes back to the tree.

    Args:
        turnover: the cluster.
        rounds: how many the user sees.
        done: called after each.
        visits: how often the user goes through all views before the first: textual remembers how the last
            thousand widgets looked, of which a view has a dozen.
    """
    feed = _Feed(turnover)
    app = Top(feed, NO_LIMIT)
    with hurried():
        async with app.run_test(size=(80, 24)) as pilot:
            await feed.shown()
            for number in range(visits):
                await _visit(app, pilot, number)
            for number in range(1, rounds + 1):
                turnover.play()
                await feed.shown()
                if number % MINUTE == 0:
                    await _visit(app, pilot, number // MINUTE)
                await pilot.pause()
                await done(number)


async def _visit(app: Top, pilot: Pilot[None], number: int) -> None:
    """Go through views, ask for an explanation, and come back when it has been given."""
    await pilot.press(*KEYS[number % len(KEYS)])
    await pilot.press(*EXPLAINED)
    await asyncio.gather(*(worker.wait() for worker in app.workers if worker.node is app.screen))
    await pilot.press("escape", "escape", "home")


@dataclass
class Served:
    """A page that is served.

    Attributes:
        address: of it.
        streams: how many people follow it.
        sessions: how many of them have logged in, and not out.
        settled: waits until nothing is being made: the last picture of the round is there, and the forecast.
    """

    address: str
    streams: Callable[[], int]
    sessions: Callable[[], int]
    settled: Callable[[], Awaitable[None]]


class _Lived(History):
    """Samples of a whole day before the first scene, as many as are kept: else they would still come."""

    def add(self, scene: WebScene) -> None:
        if self.now == float("-inf"):
            super().add(scene)  # it works out what all of them have
            for seconds in range(int(KEPT_SECONDS), 0, -int(TIERS[0][0])):
                earlier = copy(scene)
                earlier.known = replace(scene.known, taken=scene.known.taken - seconds)
                super().add(earlier)
        super().add(scene)


@asynccontextmanager
async def serving(turnover: Turnover) -> AsyncIterator[Served]:
    """The page of a cluster, on a port of its own."""
    mirror = _PlayedMirror(turnover)
    stage = Stage(mirror, NO_LIMIT, _Lived())
    sessions = Sessions(lambda: turnover.now)
    page = Page(stage, Access(turnover.api, lambda: turnover.now), sessions)
    app = page.app()
    app.middlewares.append(_seldom())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()

    async def settled() -> None:
        while stage.scene is None or not mirror.is_present(stage.scene.known):
            await stage.newer(stage.scene)
        await stage.forecasts.made()

    with hurried():
        following = asyncio.create_task(stage.run())
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            await stage.newer(None)
            address = "http://{}:{}".format(*runner.addresses[0][:2])
            yield Served(address, lambda: page.streams, lambda: len(sessions), settled)
        finally:
            following.cancel()
            await asyncio.wait([following])
            await runner.cleanup()


def _seldom() -> Middleware:
    """Estimates take most of the time of a round: they are worked out now and then."""
    asked = 0

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal asked
        if request.path in {"/api/starts", "/api/mine/starts"}:
            asked += 1
            if asked % SELDOM:
                return web.json_response({})
        return await handler(request)

    return answered


async def at_the_server(
    turnover: Turnover, rounds: int, done: Callable[[int, Served], Awaitable[None]]
) -> None:
    """A user follows the page; in each round another comes with a token of its own, looks, and leaves."""
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with (
        serving(turnover) as page,
        aiohttp.ClientSession(page.address, headers=headers) as session,
        session.get("/api/changes", timeout=aiohttp.ClientTimeout()) as changes,
    ):
        await changes.content.readuntil(b"\n\n")
        for number in range(1, rounds + 1):
            turnover.play()
            async with asyncio.timeout(120):
                while (await _ask(session, "/api/tree"))["taken"] != turnover.now:
                    await changes.content.readuntil(b"\n\n")
                await page.settled()  # what is asked for now is kept as long as the picture
            await _ask(session, "/api/queue", name=turnover.lasting)
            await _ask(session, "/api/starts", name=turnover.lasting)
            await _ask(session, "/api/workloads", queue=turnover.lasting)
            await _ask(session, "/api/mine", namespace=turnover.lasting)
            if number % SELDOM == 0:
                rows = (await _ask(session, "/api/workloads", namespace=GUESTS))["rows"]
                for path in ("/api/workload", "/api/outlook"):
                    await _ask(session, path, namespace=GUESTS, name=rows[-1]["name"])
            await _pass_by(page, number)
            await page.settled()  # a forecast may have been asked for
            await done(number, page)


async def _ask(session: aiohttp.ClientSession, path: str, **query: str) -> Json:
    async with session.get(path, params=query) as answer:
        answer.raise_for_status()
        found: Json = await answer.json()
        return found


async def _pass_by(page: Served, number: int) -> None:
    """Log in, begin to follow, look at the tree and leave; only every second one logs out."""
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=page.address)
    async with aiohttp.ClientSession(page.address, cookie_jar=jar) as session:
        async with session.post("/api/session", data=f"{ADMIN}-{number}") as answer:
            answer.raise_for_status()
        async with session.get("/api/changes") as changes:
            await changes.content.readuntil(b"\n\n")
            await _ask(session, "/api/tree")
        if number % 2:
            async with session.delete("/api/session") as answer:
                answer.raise_for_status()


async def in_a_browser(
    turnover: Turnover, rounds: int, chromium: str, done: Callable[[int, dict[str, Tab]], Awaitable[None]]
) -> None:
    """A tab for each view: an administrator's, and a guest's with own jobs and with a queue of many."""
    looks = {
        **{view: (ADMIN, f"#/{view}") for view in ("overview", "map", "quota", "workloads", "timeline")},
        "namespace": (ADMIN, f"#/namespace/{turnover.lasting}"),
        "my jobs": (GUESTS, "#/my"),
        "queue": (GUESTS, f"#/queue/{turnover.lasting}"),
    }
    async with serving(turnover) as page, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tabs = {}
        for name, (token, place) in looks.items():
            context = await browser.new_context(locale="en-GB", timezone_id="UTC")
            tabs[name] = await context.new_page()
            await tabs[name].goto(page.address + place)
            await tabs[name].get_by_label("A token").fill(token)
            await tabs[name].get_by_role("button", name="Log in").click()
        for number in range(1, rounds + 1):
            turnover.play()
            await asyncio.gather(*(_drawn(tab, turnover.now) for tab in tabs.values()))
            await done(number, tabs)
        await browser.close()


async def _drawn(tab: Tab, now: float) -> None:
    """Wait until a tab shows a moment."""
    shows = "now => Number(document.querySelector('.state')?.dataset.taken) === now"
    handle = await tab.wait_for_function(shows, arg=now, polling=10, timeout=PATIENCE_MS)
    await handle.dispose()  # else the tab would keep it

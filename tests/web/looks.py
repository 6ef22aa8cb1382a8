"""A browser in which a user has logged in, and what each view of the console has to hold."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from admitter.insight.forecast.deadline import NO_LIMIT, Allowance
from admitter.insight.snapshot_file import SnapshotFile
from tests.insight.states import State
from tests.patience import PATIENCE_SECONDS
from tests.web.pages import ADMIN, CHROMIUM, Served, served
from tests.web.scale import GPU

WIDE, PHONE = 1400, 390
"""Widths in pixels that each view has to look right at."""
SOON = Allowance(0.5)
"""For what takes long in a large cluster: it would go on beside the tests that follow."""
CALCULATION = """() => Math.min(...[1, 2, 3, 4, 5].map(() => {
  const start = performance.now(), words = new Map();
  for (let number = 0; number < 30000; number++) words.set("word " + (number * 7919) % 10007, { number });
  return performance.now() - start + (words.size === 10007 ? 0 : Infinity);
}))"""
CALCULATION_MS = 2.5
SHOWN = """() => location.hash.length > 2
  ? location.hash.slice(2).split("?")[0]
  : document.querySelector("nav [aria-current=page]")?.getAttribute("href").slice(2)"""
"""The view of a tab as its address has it after `#/`."""
LOOKS = ((WIDE, "light"), (PHONE, "dark"))
"""Widths and schemes with which each view is looked at: each of both, and not both of all."""
kept: dict[asyncio.AbstractEventLoop, Browser] = {}
"""The browser that is kept, if one is, by the loop that it can be used in."""


@asynccontextmanager
async def looking(
    state: State | SnapshotFile,
    token: str = ADMIN,
    scheme: str = "light",
    allowance: Allowance = NO_LIMIT,
    width: int = WIDE,
) -> AsyncIterator[tuple[Served, Page]]:
    """A page that is served, and a browser in which a user has logged in; what goes wrong there is told."""
    async with (
        served(state, allowance) as page,
        browser() as opened,
        logged_in(opened, page, token, scheme, width) as tab,
    ):
        yield page, tab


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """The browser that is kept for all tests of this loop, or else one of its own."""
    shared = kept.get(asyncio.get_running_loop())
    if shared is not None:
        yield shared
        return
    async with async_playwright() as playwright:
        yield await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@asynccontextmanager
async def kept_browser() -> AsyncIterator[None]:
    """As long as it is open, users log in with one and the same browser, each for itself."""
    async with browser() as opened:
        kept[asyncio.get_running_loop()] = opened
        try:
            yield
        finally:
            kept.clear()


@asynccontextmanager
async def logged_in(
    opened: Browser, page: Served, token: str = ADMIN, scheme: str = "light", width: int = WIDE
) -> AsyncIterator[Page]:
    """A tab of a user; faults of scripts, of the policy and requests to other sites fail its test."""
    faults: list[str] = []
    context = await opened.new_context(
        viewport={"width": width, "height": 760},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        timezone_id="UTC",
        permissions=["clipboard-read", "clipboard-write"],
    )
    try:
        context.set_default_timeout(1000 * PATIENCE_SECONDS)
        tab = await context.new_page()
        tab.on("pageerror", lambda error: faults.append(str(error)))
        tab.on("console", lambda said: faults.extend([said.text] if _is_fault(said) else []))
        tab.on("request", lambda sent: faults.extend([] if sent.url.startswith(page.address) else [sent.url]))
        await tab.goto(page.address)
        await tab.get_by_label("A token").fill(token)
        await tab.get_by_role("button", name="Log in").click()
        await expect(tab.get_by_role("button", name="Log out")).to_be_visible()
        yield tab
    finally:
        await context.close()
    assert faults == []


def _is_fault(said: ConsoleMessage) -> bool:
    """Whether a script has failed: not what was asked for and is refused, or has not come."""
    expected = ("Failed to load resource", "dynamically imported module")
    return said.type == "error" and not any(each in said.text for each in expected)


async def go(tab: Page, page: Served, address: str) -> None:
    """Look at a view by its address after `#/`, once it is there in place of the one before."""
    if await tab.evaluate(SHOWN) != address.partition("?")[0]:
        await tab.evaluate(
            "() => document.querySelectorAll('h1').forEach((each) => { each.dataset.old = ''; })"
        )
    await tab.goto(f"{page.address}/#/{address}")
    await expect(tab.locator("h1:not([data-old])")).to_be_visible()


async def is_accessible(tab: Page) -> None:
    """Nothing on the page is against the rules of axe-core, and the page needs no scrolling sideways."""
    options = {"preload": False}  # it would load style sheets into inline ones, which the policy forbids
    found = (await Axe().run(tab, options=options)).response["violations"]
    assert [
        (each["id"], node["html"], node["failureSummary"]) for each in found for node in each["nodes"]
    ] == []
    assert await overflow(tab) == []


async def overflow(tab: Page) -> list[str]:
    """What is wider than the window, outside of what scrolls by itself."""
    found: list[str] = await tab.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          return [...document.querySelectorAll("body *")].filter((each) =>
            each.getBoundingClientRect().right > width + 1)
            .slice(0, 5).map((each) => each.outerHTML.slice(0, 200));
        }"""
    )
    return found


async def main_thread_ms(tab: Page, work: Awaitable[object]) -> float:
    """CPU time of the longest task of the page's main thread while something is done, in milliseconds.

    Not how long it took: that depends on what else a machine does. CPU time depends on it less, since tasks
    of other programs take caches and parts of a core, so it is counted in what a fixed calculation takes.
    """
    opened = tab.context.browser
    assert opened is not None
    slowness = await slowness_of(tab)
    await opened.start_tracing(page=tab, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    await work
    events = orjson.loads(await opened.stop_tracing())["traceEvents"]
    slowness = max(slowness, await slowness_of(tab))
    names = ((each, each["args"].get("name")) for each in events if each["name"] == "thread_name")
    threads = {(each["pid"], each["tid"]) for each, name in names if name == "CrRendererMain"}
    tasks = [each for each in events if each["name"].endswith("RunTask") and "tdur" in each]
    found = [float(each["tdur"]) / 1000 for each in tasks if (each["pid"], each["tid"]) in threads]
    assert found, "nothing was done"
    print(
        f"longest task: {max(found):.0f} ms of CPU, on a machine {slowness:.1f} times as slow as an idle one"
    )
    return max(found) / slowness


async def slowness_of(tab: Page) -> float:
    """So many times as long as on an idle machine a fixed calculation takes: the best of five, at least 1."""
    return max(1.0, float(await tab.evaluate(CALCULATION)) / CALCULATION_MS)


@asynccontextmanager
async def loading(tab: Page) -> AsyncIterator[dict[str, int]]:
    """Bytes that a tab loads, without what its browser has already: of `files`, and of `data`."""
    session = await tab.context.new_cdp_session(tab)
    await session.send("Network.enable")
    await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    found, kinds = {"files": 0, "data": 0}, dict[str, str]()

    def heard(event: dict[str, Any]) -> None:
        kinds[event["requestId"]] = "data" if "/api/" in event["response"]["url"] else "files"

    def ended(event: dict[str, Any]) -> None:
        found[kinds.get(event["requestId"], "files")] += int(event["encodedDataLength"])

    session.on("Network.responseReceived", heard)
    session.on("Network.loadingFinished", ended)
    yield found


async def first_paint_ms(tab: Page) -> float:
    """When the page was painted first, in milliseconds after it was asked for."""
    return float(await tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))


async def taken(tab: Page) -> str:
    """The moment that a view shows, once it shows one."""
    shown = await tab.wait_for_function("() => document.querySelector('.state')?.dataset.taken")
    return str(await shown.json_value())


async def comes(tab: Page, page: Served, state: State) -> None:
    """A Workload comes to the cluster of `tests.web.scale` that a view shows, and the view shows that."""
    before, seconds = await taken(tab), float(len(state.objects["jobs"]))
    state.waits("ns-0000", f"late-{seconds:.0f}", {GPU: "1"}, created=seconds)
    await asyncio.to_thread(page.stage.show, state, seconds)
    await is_newer(tab, before)


async def is_newer(tab: Page, than: str) -> None:
    """Wait until a view shows another moment."""
    told = "than => (document.querySelector('.state')?.dataset.taken ?? than) !== than"
    handle = await tab.wait_for_function(told, arg=than)
    await handle.dispose()  # else the tab would keep it

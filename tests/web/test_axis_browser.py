"""The axis of time in a browser, by the clocks of readers in several zones."""

from typing import Any

import pytest

from tests.web.looks import browser
from tests.web.pages import CHROMIUM, HOW, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


async def evaluated(zone: str, expression: str) -> Any:
    """What an expression is of the module `axis`, for a reader in a zone; `at` reads a moment."""
    async with served(None) as page, browser() as opened:
        context = await opened.new_context(locale="en-GB", timezone_id=zone)
        tab = await context.new_page()
        await tab.goto(page.address)
        found = await tab.evaluate(
            f"""async () => {{ const axis = await import("/lib/axis.js");
              const at = (text) => Date.parse(text) / 1000;
              return {expression}; }}"""
        )
        await context.close()
        return found


def labels(begins: str, ends: str, most: int = 8) -> str:
    """An expression for the labels of a range; those that begin a day are marked by a star."""
    return (
        f'axis.ticks(at("{begins}"), at("{ends}"), {most})'
        ".map((tick) => tick.label + (tick.major ? '*' : ''))"
    )


@pytest.mark.parametrize(
    ("zone", "begins", "ends", "expected"),
    [
        (
            "Europe/Berlin",  # summer time ends: two hours are called 02
            "2026-10-24T22:00:00Z",
            "2026-10-25T05:00:00Z",
            ["25 Oct*", "01:00", "02:00", "02:00 CET", "03:00", "04:00", "05:00", "06:00"],
        ),
        (
            "Europe/Berlin",  # summer time begins: no hour is called 02
            "2026-03-28T22:00:00Z",
            "2026-03-29T05:00:00Z",
            ["23:00", "29 Mar*", "01:00", "03:00", "04:00", "05:00", "06:00", "07:00"],
        ),
        (
            "Africa/Cairo",  # this day begins at one o'clock
            "2026-04-23T18:00:00Z",
            "2026-04-24T05:00:00Z",
            ["20:00", "22:00", "24 Apr*", "04:00", "06:00", "08:00"],
        ),
        (
            "Asia/Kolkata",  # half an hour beside all others
            "2026-01-01T00:00:00Z",
            "2026-01-01T04:00:00Z",
            ["05:30", "06:00", "06:30", "07:00", "07:30", "08:00", "08:30", "09:00", "09:30"],
        ),
        (
            "UTC",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:01:00Z",
            ["1 Jan*", *(f"00:00:{s}0" for s in "12345"), "00:01:00"],
        ),
        (
            "Europe/Berlin",
            "2026-03-26T00:00:00Z",
            "2026-04-03T00:00:00Z",
            ["27 Mar", "28 Mar", "29 Mar", "30 Mar", "31 Mar", "1 Apr*", "2 Apr", "3 Apr"],
        ),
        (
            "UTC",
            "2025-03-20T00:00:00Z",
            "2026-04-30T00:00:00Z",
            ["May", "Jul", "Sept", "Nov", "2026*", "Mar"],
        ),
    ],
)
async def test_labels_are_those_of_the_readers_clocks(
    zone: str, begins: str, ends: str, expected: list[str]
) -> None:
    assert await evaluated(zone, labels(begins, ends)) == expected


async def test_moments_relative_to_now() -> None:
    found = await evaluated("UTC", "axis.relativeTicks(0, 14400, 5000, 6, axis.relative)")
    assert [(tick["time"], tick["label"]) for tick in found] == [
        (1400, "−1 h"),
        (5000, "now"),
        (8600, "+1 h"),
        (12200, "+2 h"),
    ]
    assert await evaluated(
        "UTC", "[axis.ticks(5, 5), axis.ticks(NaN, 5), axis.relativeTicks(9, 1, 5, 6, String)]"
    ) == [
        [],
        [],
        [],
    ]


async def test_zooming_holds_a_moment_and_stays_within_bounds() -> None:
    bounds = "{ from: 0, to: 1000, shortest: 60 }"
    assert await evaluated("UTC", f"axis.zoomed([400, 600], 0.5, 450, {bounds})") == [425, 525]
    assert await evaluated("UTC", f"axis.zoomed([400, 600], 0.01, 500, {bounds})") == [470, 530]
    assert await evaluated("UTC", f"axis.zoomed([800, 1000], 3, 900, {bounds})") == [400, 1000]
    assert await evaluated("UTC", f"axis.zoomed([400, 600], 99, 500, {bounds})") == [0, 1000]
    assert await evaluated("UTC", f"axis.panned([400, 600], 900, {bounds})") == [800, 1000]
    assert await evaluated("UTC", "[axis.scale(100, 300, 50).x(200), axis.scale(100, 300, 50).time(25)]") == [
        25,
        200,
    ]

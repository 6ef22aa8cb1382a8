"""Amounts in a browser are written as the server writes them."""

import json
from typing import Any

import pytest

from tests.shown_amounts import SHOWN_BYTES
from tests.web.looks import browser
from tests.web.pages import CHROMIUM, HOW, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=HOW)


async def evaluated(expression: str, locale: str = "en-GB") -> Any:
    """What an expression is of the module `format`."""
    async with served(None) as page, browser() as opened:
        context = await opened.new_context(locale=locale)
        tab = await context.new_page()
        await tab.goto(page.address)
        found = await tab.evaluate(
            f"""async () => {{ const format = await import("/lib/format.js"); return {expression}; }}"""
        )
        await context.close()
        return found


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
async def test_bytes_are_written_as_in_sentences_of_the_server(locale: str) -> None:
    asked = json.dumps([[resource, amount] for resource, amount, _ in SHOWN_BYTES])
    found = await evaluated(f"{asked}.map((each) => format.quantity(...each))", locale)
    assert found == [shown for _, _, shown in SHOWN_BYTES]


async def test_parts_of_bytes_are_rounded_and_other_resources_are_numbers() -> None:
    """An average over time is no whole number."""
    amounts = [["memory", 1234.5678], ["memory", 1.2e10], ["cpu", 1.25], ["example.com/gpu-memory", 2**30]]
    found = await evaluated(f"{json.dumps(amounts)}.map((each) => format.quantity(...each))")
    assert found == ["1235", "11.176Gi", "1.3", "1,073,741,824"]


async def test_an_axis_of_bytes_has_labels_that_are_round() -> None:
    labels = "format.stepsOf('memory').map((each) => format.quantity('memory', each))"
    found = await evaluated(labels)
    assert found[:10] == [
        *("1Mi", "2Mi", "5Mi", "0.01Gi", "0.02Gi"),
        *("0.05Gi", "0.1Gi", "0.2Gi", "0.5Gi", "1Gi"),
    ]
    assert max(map(len, found)) <= len("5000000Gi")
    assert await evaluated("format.stepsOf('cpu') ?? null") is None


async def test_an_axis_has_room_for_its_longest_label() -> None:
    """The labels are drawn on a canvas, which cuts off what is beyond its edge."""
    drawn = """await (async () => {
      const { html, render } = await import("/lib/preact.js");
      const { Stacked } = await import("/lib/plot.js");
      const box = document.body.appendChild(document.createElement("div"));
      const series = [{ name: "a", colour: 0, values: [1, 45000 * 2 ** 30] }];
      const written = (value) => format.quantity("memory", value);
      render(html`<${Stacked} times=${[1, 2]} series=${series} said="a" format=${written}
        steps=${format.stepsOf("memory")} />`, box);
      while (!box.querySelector("canvas")) await new Promise(requestAnimationFrame);
      const TICK = 15;  // and the distance of a label from it
      const pen = document.createElement("canvas").getContext("2d");
      pen.font = "12px system-ui";
      const axis = box.querySelectorAll(".u-axis")[1].getBoundingClientRect();
      return axis.width - TICK - pen.measureText("40000Gi").width;
    })()"""
    assert await evaluated(drawn) >= 0

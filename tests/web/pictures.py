"""Makes the pictures of README.md and docs/web.md of the made-up cluster: `python -m tests.web.pictures`.

`python -m tests.web.pictures FILE.png ADDRESS [WIDTH [light|dark [PERSON]]]` makes one, of a view by its
address after `#/`. They follow from a seed and a moment, so that they change only if the page does.
"""

import asyncio
import re
import sys
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright, expect

from admitter.web.demo.persons import PERSONS
from tests.web.demos import Frozen, demo_page
from tests.web.pages import CHROMIUM

IMAGES: Final = Path(__file__).parents[2] / "docs" / "images"
WIDTHS: Final = (1400, 390)
SCHEMES: Final = ("light", "dark")
HEIGHT: Final = 900
COLOURS: Final = 64
"""Of a picture: few make small files."""
SETTLED_MS: Final = 300_000
TALLEST: Final = 2400
"""Pixels of a picture; what is below is cut off."""
ADMINISTRATOR, TENANT = PERSONS


class View(NamedTuple):
    """What a picture shows."""

    name: str
    address: str
    person: str = ADMINISTRATOR


TRIED: Final = quote("vision|nvidia.com%2Fgpu|a100|min=192;language|nvidia.com%2Fgpu|a100|min=32")
"""A change that is tried: GPUs of one team for another."""
VIEWS: Final = (
    View("overview", "overview"),
    View("map", "map"),
    View("quota", "quota"),
    View("queue", "queue/vision"),
    View("workload", "workload/vision-research/{waiting}"),
    View("timeline", "timeline"),
    View("try", f"try?queues=vision,language&set={TRIED}"),
    View("mine", "my", TENANT),
)


def addressed(view: View, frozen: Frozen) -> str:
    """The address of a view; a Workload that waits for others is chosen."""
    if "{waiting}" not in view.address:
        return view.address
    waits = (
        each.job
        for each in frozen.scene.rows
        if each.workload.namespace == "vision-research" and each.reason == "InsufficientQuota"
    )
    return view.address.replace("{waiting}", next(waits))


async def taken(opened: Browser, page: str, view: View, width: int, scheme: str) -> bytes:
    """A picture of a view, once nothing is being worked out any more."""
    context = await opened.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    tab = await context.new_page()
    await tab.request.post(f"{page}/api/demo", data={"person": view.person})
    await tab.goto(f"{page}/#/{view.address}")
    await expect(tab.get_by_role("heading", level=1).first).to_be_visible()
    await settled(tab)
    picture = await tab.screenshot(full_page=True)
    await context.close()
    return picture


async def settled(tab: Page) -> None:
    """Wait until nothing is being worked out, and the page has stayed the same for a while."""
    await quiet(tab)  # a view asks for what is to be worked out a moment after it is drawn
    busy = tab.get_by_text(re.compile("(being worked out|reading).*…", re.IGNORECASE))
    await expect(busy).to_have_count(0, timeout=SETTLED_MS)
    await quiet(tab)


async def quiet(tab: Page) -> None:
    """Wait until the page has stayed the same for a while, or for 20 seconds."""
    await tab.evaluate(
        """(quiet) => new Promise((done) => {
          let timer = setTimeout(done, quiet);
          new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, quiet); })
            .observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
          setTimeout(done, 20000);
        })""",
        1500,
    )


def small(picture: bytes) -> Image.Image:
    """The same with few colours, and not too tall."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    cut = image.crop((0, 0, image.width, min(image.height, TALLEST)))
    return cut.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def keep(picture: bytes, path: Path) -> None:
    small(picture).save(path, optimize=True)


async def one(path: Path, address: str, width: str = "1400", scheme: str = "light", person: str = "") -> None:
    frozen = Frozen()
    view = View(path.stem, address, TENANT if person else ADMINISTRATOR)
    async with demo_page(frozen) as page, async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        keep(await taken(opened, page, view, int(width), scheme), path)


async def main(folder: Path = IMAGES) -> None:
    """All of them."""
    frozen = Frozen()
    async with demo_page(frozen) as page, async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for view in VIEWS:
            known = view._replace(address=addressed(view, frozen))
            for width in WIDTHS:
                for scheme in SCHEMES:
                    picture = await taken(opened, page, known, width, scheme)
                    keep(picture, folder / f"web-{view.name}-{width}-{scheme}.png")


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(one(Path(given[0]), *given[1:]) if len(given) > 1 else main(*map(Path, given)))

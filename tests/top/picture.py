"""The picture of `admitter top` in the documentation. `python -m tests.top.picture` makes it anew."""

import asyncio
import re
from html import unescape
from pathlib import Path
from typing import Final

from tests.top.clusters import company
from tests.top.screens import watching

PATH: Final = Path(__file__).parents[2] / "docs/images/top.svg"


async def taken() -> tuple[list[str], str]:
    """What is on the screen, and a picture of it that fetches nothing from anywhere."""
    async with watching(company()) as glass:
        lines = await glass.press("down")
        drawn = glass.app.export_screenshot(title="admitter top")
    without_fonts = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return lines, re.sub(r"\s*<!--.*?-->", "", without_fonts, flags=re.DOTALL).strip() + "\n"


def words_of(picture: str) -> list[str]:
    """The text of each line of a picture, without blanks."""
    found: dict[int, str] = {}
    for number, words in re.findall(r'<text [^>]*-line-(\d+)\)"[^>]*>(.*?)</text>', picture, flags=re.DOTALL):
        found[int(number)] = found.get(int(number), "") + "".join(unescape(words).split())
    return [found.get(number, "") for number in range(max(found) + 1)]


if __name__ == "__main__":
    PATH.write_text(asyncio.run(taken())[1])

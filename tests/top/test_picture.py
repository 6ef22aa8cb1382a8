"""The picture in the documentation shows what is on the screen."""

import re

from tests.top.picture import PATH, taken, words_of


async def test_the_picture_is_of_this_version() -> None:
    lines, _ = await taken()
    assert words_of(PATH.read_text()) == ["".join(line.split()) for line in lines]


async def test_the_picture_fetches_nothing() -> None:
    _, picture = await taken()
    for text in (PATH.read_text(), picture):
        assert "url(#" in text, "what it is made of itself"
        assert re.findall(r"url\((?!#)|@font-face|@import", text) == []

"""The picture in the documentation shows what is on the screen."""

from tests.top.picture import PATH, taken, words_of


async def test_the_picture_is_of_this_version() -> None:
    lines, _ = await taken()
    assert words_of(PATH.read_text()) == ["".join(line.split()) for line in lines]


def test_the_picture_fetches_nothing() -> None:
    text = PATH.read_text()
    assert "url(http" not in text
    assert "@import" not in text

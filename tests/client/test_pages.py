"""Lists are read in pages of bounded bytes, whatever the size of their objects."""

from collections.abc import Mapping
from typing import Any

from admitter.client.pages import BYTES, FIRST, MOST, pages

Json = dict[str, Any]


class Collection:
    """Objects of some sizes in bytes, and the pages that were asked for."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[int] = []

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        assert path == "/things"
        assert query is not None
        assert query["labelSelector"] == "some"
        begin, limit = int(query.get("continue") or 0), int(query["limit"])
        self.asked.append(limit)
        end = begin + limit
        found = self.sizes[begin:end]
        more = {"continue": str(end)} if end < len(self.sizes) else {}
        items = [{"number": begin + place, "text": "x" * size} for place, size in enumerate(found)]
        return {"metadata": more, "items": items}


async def read(collection: Collection) -> list[int]:
    found = pages(collection, "/things", {"labelSelector": "some"})
    return [item["number"] async for page in found for item in page["items"]]


async def test_pages_grow_while_objects_are_small() -> None:
    collection = Collection(*[1000] * 1000)
    assert await read(collection) == list(range(1000))
    assert (collection.asked[0], set(collection.asked[1:])) == (FIRST, {MOST})


async def test_pages_shrink_where_objects_are_large_and_grow_again() -> None:
    """A user may make objects of 1.5 MB, which is a page by itself then."""
    large = 1_500_000
    collection = Collection(*[large] * 60, *[100] * 500)
    assert await read(collection) == list(range(560))
    assert collection.asked[0] == FIRST
    assert collection.asked[1] == BYTES // large
    assert collection.asked[-1] == MOST


async def test_an_object_larger_than_a_page_is_one() -> None:
    collection = Collection(*[BYTES * 2] * 30)
    assert await read(collection) == list(range(30))
    assert collection.asked[-1] == 1


async def test_an_empty_collection_is_one_page() -> None:
    collection = Collection()
    assert await read(collection) == []
    assert collection.asked == [FIRST]

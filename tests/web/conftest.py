"""Tests in a browser share one: to start it takes as long as many of them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.web.looks import kept_browser

SHELL = "test_shell_browser.py"
"""Tests of what all views share: the others take long, as a browser draws a page for each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _in_browser(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            if item.path.name != SHELL:
                item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def _shares_the_browser(request: pytest.FixtureRequest) -> None:
    if _in_browser(request.node):
        request.getfixturevalue("_kept")


def _in_browser(item: pytest.Item) -> bool:
    return item.path.parent.name == "web" and item.path.stem.endswith("_browser")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _kept() -> AsyncIterator[None]:
    async with kept_browser():
        yield

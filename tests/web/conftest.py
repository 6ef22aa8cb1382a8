"""Tests in a browser share one: to start it takes as long as many of them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.conftest import in_browser
from tests.web.looks import kept_browser

SHELL = "test_shell_browser.py"
"""Tests of what all views share: the others take long, as a browser draws a page for each."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if in_browser(item.path):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            if item.path.name != SHELL:
                item.add_marker(pytest.mark.long)


@pytest.fixture(autouse=True)
def _shares_the_browser(request: pytest.FixtureRequest) -> None:
    if in_browser(request.path):
        request.getfixturevalue("_kept")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _kept() -> AsyncIterator[None]:
    async with kept_browser():
        yield

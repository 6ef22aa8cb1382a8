"""Promises name the tests that show them: every one of those is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs/reliability.md", ROOT / "docs/permissions.md", ROOT / "SECURITY.md"]
NAMED = [
    (page.name, path, test)
    for page in PAGES
    for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text())
]


@pytest.mark.parametrize(("page", "path", "test"), NAMED)
def test_a_promise_names_a_test_that_is_there(page: str, path: str, test: str) -> None:
    text = (ROOT / path).read_text()
    assert not test or re.search(rf"def {test}\(", text), f"{page} names {path}::{test}"


def test_there_are_promises() -> None:
    assert len(NAMED) > 20

"""What commands say is the same in one process."""

import pytest

from tests.insight.asking import in_one_process

COPIES = {"test_explain_in_time", "test_playing", "test_timed", "test_what_if_in_time"}
"""Tests of what runs in copies of a process."""


@pytest.fixture(autouse=True)
def _in_one_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.stem not in COPIES:
        in_one_process(monkeypatch)

"""What commands say does not depend on how busy the machine is."""

import pytest

from admitter.cli import estimating
from tests.insight.asking import in_one_process

COPIES = {"test_explain_in_time", "test_playing", "test_timed", "test_what_if_in_time"}
"""Tests of what runs in copies of a process."""


@pytest.fixture(autouse=True)
def _nothing_is_slow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "SOON", 3600.0)
    if request.path.stem not in COPIES:
        in_one_process(monkeypatch)

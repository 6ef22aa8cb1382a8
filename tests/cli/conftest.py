"""What commands say is the same in one process: tests of how they end run them in processes of their own."""

import pytest

from tests.insight.asking import in_one_process


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_process(monkeypatch)

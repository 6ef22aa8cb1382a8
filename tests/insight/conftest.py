"""What commands say does not depend on how busy the machine is."""

import pytest

from admitter.cli import estimating


@pytest.fixture(autouse=True)
def _nothing_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "SOON", 3600.0)

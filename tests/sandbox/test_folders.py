from pathlib import Path

import pytest

from admitter.sandbox.errors import SandboxError
from admitter.sandbox.folders import cache_folder, state_folder


def test_folders_follow_the_xdg_variables() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/admitter")
    assert state_folder("default", {"XDG_STATE_HOME": "/s"}) == Path("/s/admitter/sandbox/default")


@pytest.mark.parametrize("value", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_folders_are_in_the_home_folder_otherwise(value: dict[str, str]) -> None:
    assert cache_folder(value) == Path.home() / ".cache" / "admitter"
    assert state_folder("a", value) == Path.home() / ".local" / "state" / "admitter" / "sandbox" / "a"


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "..", "-a", "a-", "a" * 64])
def test_a_name_that_is_no_label_is_refused(name: str) -> None:
    with pytest.raises(SandboxError, match="--name"):
        state_folder(name)

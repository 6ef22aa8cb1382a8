"""Where the sandbox keeps what it builds and what it runs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from admitter.sandbox.errors import SandboxError

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's cache folder of Admitter; whatever is in it can be made again."""
    return _base(environment, "XDG_CACHE_HOME", ".cache") / "admitter"


def state_folder(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the sandbox of that name.

    Raises:
        SandboxError: `name` is not a DNS label.
    """
    if not _NAME.match(name):
        raise SandboxError(
            f"--name {name!r}: a sandbox's name has lower-case letters, digits and -, at most 63 in all"
        )
    return _base(environment, "XDG_STATE_HOME", ".local/state") / "admitter" / "sandbox" / name


def _base(environment: Mapping[str, str], variable: str, default: str) -> Path:
    given = Path(environment.get(variable, ""))
    # The XDG specification: a relative path is invalid and to be ignored.
    return given if given.is_absolute() else Path.home() / default

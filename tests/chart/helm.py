"""Helm itself, built from its Go module once for each version, as the sandbox's programs are."""

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console

from admitter.sandbox.build import Builder
from admitter.sandbox.folders import cache_folder
from admitter.sandbox.toolchain import cache_key, find_go

Json = dict[str, Any]

MODULE: Final = Path(__file__).parent / "module"
PACKAGES: Final = {"helm": "helm.sh/helm/v4/cmd/helm"}
CHART: Final = Path(__file__).parents[2] / "deploy" / "chart"


class HelmError(Exception):
    """Helm failed; the message is its own."""


def ensure_helm(console: Console) -> Path:
    """The program, built now if it is not in the cache folder.

    Raises:
        BuildError: it can't be built.
    """
    folder = cache_folder() / "components" / cache_key(MODULE, "helm")
    if not (folder / "helm").exists():
        Builder(folder, find_go, console, MODULE, PACKAGES).build(["helm"])
    return folder / "helm"


class Helm:
    """Helm with settings of a test's own.

    Args:
        program: the file to run.
        folder: of its settings and caches, so that those of the user change nothing.
        kubeconfig: of the cluster; None if it must not talk to any.
    """

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._program = program
        self._folder = folder
        self._kubeconfig = kubeconfig or folder / "no-kubeconfig"

    def of(self, kubeconfig: Path) -> "Helm":
        """The same with a cluster."""
        return Helm(self._program, self._folder, kubeconfig)

    def run(self, *arguments: str, values: Json | None = None) -> str:
        """What it prints.

        Args:
            arguments: the command.
            values: for the chart, as in a file that a user writes.

        Raises:
            HelmError: it fails.
        """
        places = {f"HELM_{name}_HOME": str(self._folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        answer = subprocess.run(
            [self._program, *arguments, *(["--values=-"] if values is not None else [])],
            input=yaml.safe_dump(values or {}),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),  # where it keeps what it has learned about a cluster
                "KUBECONFIG": str(self._kubeconfig),
                **places,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise HelmError(answer.stderr.strip())
        return answer.stdout

    def template(self, *arguments: str, values: Json | None = None) -> list[Json]:
        """What the chart renders to."""
        rendered = self.run("template", "admitter", str(CHART), *arguments, values=values)
        return [document for document in yaml.load_all(rendered, yaml.CSafeLoader) if document is not None]

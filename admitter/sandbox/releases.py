"""Which programs make up the control plane, and in which versions: components/go.mod says."""

import hashlib
import platform
import re
from pathlib import Path

MODULE = Path(__file__).parent / "components"
"""The Go module that requires every program."""

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


def kubernetes_version() -> str:
    """The release of Kubernetes that is built, such as `v1.36.3`."""
    return _in_module(r"^\s*k8s\.io/kubernetes (v\S+)$")


def required_go() -> tuple[int, ...]:
    """The oldest release of Go that builds the module."""
    return tuple(int(part) for part in _in_module(r"^go (\S+)$").split("."))


def build_flags() -> list[str]:
    """The arguments of `go build`; the components print their version from what is linked in."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())
    return ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamps}"]


def cache_key(module: Path = MODULE, name: str | None = None) -> str:
    """The name of the folder for what is built: equal versions, flags and platform share one.

    Args:
        module: the Go module that is built.
        name: what the folder's name begins with; None: the release of Kubernetes.
    """
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum"):
        digest.update((module / file).read_bytes())
    digest.update("\0".join(build_flags()).encode())
    machine = platform.machine().lower()
    system = f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
    return f"{name or f'kubernetes-{kubernetes_version()}'}-{system}-{digest.hexdigest()[:12]}"


def _in_module(pattern: str) -> str:
    match = re.search(pattern, (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert match is not None, f"go.mod has a line like {pattern}"
    return match[1]

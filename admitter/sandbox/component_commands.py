"""How each component of the control plane is started, and the files that it reads."""

import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from admitter.sandbox.certificates import Authority, write_signing_keys
from admitter.sandbox.cluster import certificate_kubeconfig, write_kubeconfig

LOCALHOST = "127.0.0.1"
_STAGES = Path(__file__).parent / "stages"
_ISSUER = "https://kubernetes.default.svc"
_SERVICE_RANGE = "10.96.0.0/16"
_POD_RANGE = "10.244.0.0/16"
_API_SERVER_SERVICE = "10.96.0.1"

CONTROLLER = "admitter-controller"
"""The name of Admitter's controller, where it runs beside the control plane."""
WANTED = ".wanted"
"""A folder in that of a control plane: its supervisor runs the command line in `<name>.json`, and removes the
file."""

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}

_USERS = {
    "admin": ("admitter-sandbox-admin", ["system:masters"]),
    "kube-controller-manager": ("system:kube-controller-manager", []),
    "kube-scheduler": ("system:kube-scheduler", []),
    "kwok": ("kwok", ["system:masters"]),
    "etcd-client": ("kube-apiserver", []),
}
"""Certificate to the user it stands for and the user's groups."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one control plane, all in one folder, and its addresses.

    Members of etcd would reach each other at `peer_port`; there is one.
    """

    folder: Path
    etcd_port: int
    peer_port: int
    api_port: int

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def server(self) -> str:
        return f"https://{LOCALHOST}:{self.api_port}"


def audit_log(folder: Path) -> Path:
    """The audit log of the API server of a control plane, one JSON object a line, if it is to write one."""
    return folder / "logs" / "audit.log"


def prepare(folder: Path) -> Layout:
    """Choose free ports and write everything the components read: certificates, keys, configurations."""
    layout = Layout(folder, *free_ports(3))
    authority = Authority(layout.pki)
    authority.issue_server("etcd", [LOCALHOST, "localhost"])
    hosts = [LOCALHOST, "localhost", _API_SERVER_SERVICE, "kubernetes.default.svc", "kubernetes"]
    authority.issue_server("kube-apiserver", hosts)
    write_signing_keys(layout.pki)
    for name, (user, groups) in _USERS.items():
        authority.issue_client(name, user, groups)
    for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
        _write_kubeconfig(layout, name, layout.pki / f"{name}.kubeconfig")
    _write_kubeconfig(layout, "admin", folder / "kubeconfig")
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": str(layout.pki / "kube-scheduler.kubeconfig"),
            "qps": 500,
            "burst": 1000,
        },
    }
    (layout.pki / "kube-scheduler.yaml").write_text(yaml.safe_dump(scheduler))
    (layout.pki / "audit-policy.yaml").write_text(yaml.safe_dump(_AUDIT_POLICY))
    return layout


def free_ports(count: int) -> list[int]:
    """Different TCP ports of 127.0.0.1 that no process listens on now.

    Another process may take one before it is used: the caller must be ready to try again.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOCALHOST, 0))
        return [each.getsockname()[1] for each in sockets]


def _write_kubeconfig(layout: Layout, name: str, path: Path) -> None:
    content = certificate_kubeconfig(layout.server, layout.pki / "ca.crt", layout.pki / f"{name}.crt")
    write_kubeconfig(path, content)


def storage_and_server(
    layout: Layout, programs: Mapping[str, Path], *, audit: bool = False
) -> dict[str, list[str]]:
    """The command lines of what must answer before the rest is worth starting, by component.

    With `audit` every request is written down, which costs time.
    """
    etcd_url = f"https://{LOCALHOST}:{layout.etcd_port}"
    peer_url = f"https://{LOCALHOST}:{layout.peer_port}"
    pki = layout.pki
    etcd = {
        "name": "sandbox",
        "data-dir": layout.folder / "data",
        "listen-client-urls": etcd_url,
        "advertise-client-urls": etcd_url,
        "listen-peer-urls": peer_url,
        "initial-advertise-peer-urls": peer_url,
        "initial-cluster": f"sandbox={peer_url}",
        "client-cert-auth": "true",
        "trusted-ca-file": pki / "ca.crt",
        "cert-file": pki / "etcd.crt",
        "key-file": pki / "etcd.key",
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": pki / "ca.crt",
        "peer-cert-file": pki / "etcd.crt",
        "peer-key-file": pki / "etcd.key",
        "unsafe-no-fsync": "true",  # its data does not outlive it anyway
        "log-level": "warn",
    }
    server = {
        "etcd-servers": etcd_url,
        "etcd-cafile": pki / "ca.crt",
        "etcd-certfile": pki / "etcd-client.crt",
        "etcd-keyfile": pki / "etcd-client.key",
        "bind-address": LOCALHOST,
        "secure-port": layout.api_port,
        "tls-cert-file": pki / "kube-apiserver.crt",
        "tls-private-key-file": pki / "kube-apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "anonymous-auth": "false",
        "authorization-mode": "RBAC",
        "service-account-issuer": _ISSUER,
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "service-cluster-ip-range": _SERVICE_RANGE,
        # The service "kubernetes" has no endpoint then: a loopback address can't be one, and no pod asks.
        "endpoint-reconciler-type": "none",
    }
    if audit:
        server |= {"audit-policy-file": pki / "audit-policy.yaml", "audit-log-path": audit_log(layout.folder)}
    return {
        "etcd": _command(programs, "etcd", etcd),
        "kube-apiserver": _command(programs, "kube-apiserver", server),
    }


def clients(layout: Layout, programs: Mapping[str, Path]) -> dict[str, list[str]]:
    """The command lines of those that work through the API server; none of them serves anything."""
    pki = layout.pki
    manager = {
        "kubeconfig": pki / "kube-controller-manager.kubeconfig",
        "secure-port": 0,
        "leader-elect": "false",
        "use-service-account-credentials": "true",
        "service-account-private-key-file": pki / "sa.key",
        "root-ca-file": pki / "ca.crt",
        "kube-api-qps": 500,
        "kube-api-burst": 1000,
        "profiling": "false",
    }
    scheduler = {"config": pki / "kube-scheduler.yaml", "secure-port": 0}
    return {
        "kube-controller-manager": _command(programs, "kube-controller-manager", manager),
        "kube-scheduler": _command(programs, "kube-scheduler", scheduler),
        "kwok": [*simulator(programs, pki / "kwok.kubeconfig"), "--manage-all-nodes=true"],
    }


def controller(folder: Path) -> list[str]:
    """The command line of Admitter's controller, which impersonates the installed account."""
    options = ["--kubeconfig", str(folder / "kubeconfig"), "--bind", f"{LOCALHOST}:0"]
    return [sys.executable, "-m", "admitter", "run", *options]


def simulator(programs: Mapping[str, Path], kubeconfig: Path) -> list[str]:
    """The command line of KWOK but for the option that says which nodes it simulates."""
    options = {
        "kubeconfig": kubeconfig,
        "config": ",".join(str(path) for path in sorted(_STAGES.glob("*.yaml"))),
        "node-lease-duration-seconds": 40,
        "cidr": _POD_RANGE,
    }
    return _command(programs, "kwok", options)


def _command(programs: Mapping[str, Path], name: str, options: Mapping[str, object]) -> list[str]:
    return [str(programs[name]), *(f"--{option}={value}" for option, value in options.items())]

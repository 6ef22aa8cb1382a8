"""Writes kubeconfig files."""

import base64
import os
from pathlib import Path
from typing import Any

import yaml

CONTEXT = "admitter-sandbox"
"""The only context of the sandbox's kubeconfig."""

Kubeconfig = dict[str, Any]


def certificate_kubeconfig(server: str, authority: Path, certificate: Path) -> Kubeconfig:
    """A configuration that authenticates by a certificate, all of it embedded.

    Args:
        server: the API server's URL.
        authority: the certificate that the server's one is checked with.
        certificate: the client's, a `.crt` with a `.key` beside it.
    """
    user = {
        "client-certificate-data": _encoded(certificate),
        "client-key-data": _encoded(certificate.with_suffix(".key")),
    }
    return _kubeconfig({"server": server, "certificate-authority-data": _encoded(authority)}, user)


def token_kubeconfig(cluster: dict[str, Any], token: str) -> Kubeconfig:
    """A configuration that reaches the same cluster as another one does, with a bearer token.

    Args:
        cluster: the entry's `cluster` in the other configuration.
        token: the service account's.
    """
    return _kubeconfig(cluster, {"token": token})


def write_kubeconfig(path: Path, content: Kubeconfig) -> None:
    """Write a configuration for the user alone to read, complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=0o600)
    partial.write_text(yaml.safe_dump(content, sort_keys=False))
    partial.replace(path)


def _kubeconfig(cluster: dict[str, Any], user: dict[str, Any]) -> Kubeconfig:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()

"""Runs operators beside a control plane, each under its own account.

Before: `programs` builds them, `manifests` reads what they bring.
"""

import json
from collections.abc import Iterable
from pathlib import Path

import yaml
from rich.console import Console

from admitter.sandbox.certificates import Authority
from admitter.sandbox.cluster import write_kubeconfig
from admitter.sandbox.component_commands import LOCALHOST, free_ports
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.folders import exclusive
from admitter.sandbox.operators.definitions import Operator
from admitter.sandbox.operators.manifests import (
    DEFINITION,
    Manifest,
    definitions_and_rights,
    rendered,
    webhooks,
    without,
)
from admitter.sandbox.operators.programs import Built, ensure_operators

_CERTIFICATES = Path("k8s-webhook-server", "serving-certs")
"""Where operators look for the certificate of their webhooks, below the folder for temporary files."""


def run_operators(plane: ControlPlane, operators: Iterable[Operator], console: Console) -> None:
    """Run operators beside a control plane; those that run already stay.

    They end with the control plane, or alone. When this returns their kinds are there, and they work.

    Raises:
        SandboxError: one can't be built, or does not start.
    """
    wanted = list(operators)
    built = ensure_operators(console, wanted)
    with exclusive(plane.folder / ".operators.lock", "is starting operators here", console):
        for operator in wanted:
            if not plane.runs(operator.name):
                with console.status(f"starting {operator.name}"):
                    _run(plane, operator, built[operator.name], console)


def _run(plane: ControlPlane, operator: Operator, built: Built, console: Console) -> None:
    objects = [each for root in operator.roots for each in rendered(plane.kubectl, built.manifests / root)]
    if operator.yields:
        objects = without(_there(plane, operator.yields), objects)
    _apply(plane, definitions_and_rights(operator, objects))
    plane.await_definitions(*(each["metadata"]["name"] for each in objects if each["kind"] == DEFINITION))

    folder = plane.folder / "operators" / operator.name
    (port,) = free_ports(1)
    authority = Authority(folder / _CERTIFICATES)
    authority.issue_server("tls", [LOCALHOST])
    (folder / "config.yaml").write_text(yaml.safe_dump(dict(operator.config(port, folder / _CERTIFICATES))))
    _write_identity(plane, operator, folder / "kubeconfig")
    given = {"TMPDIR": folder, "KUBECONFIG": folder / "kubeconfig"}
    environment = [f"{key}={value}" for key, value in given.items()]
    options = operator.options(folder / "config.yaml")
    command = ["/usr/bin/env", *environment, str(built.program), *options]
    plane.run_beside(
        operator.name, command, lambda log: all(words in log for words in operator.started), console
    )

    _apply(plane, webhooks(objects, port, authority.certificate))
    if operator.samples:
        _apply(plane, rendered(plane.kubectl, built.manifests / operator.samples))


def _there(plane: ControlPlane, definitions: Iterable[str]) -> set[str]:
    """Which of some definitions the API server has."""
    found = plane.run_kubectl("get", DEFINITION, "--output=name").splitlines()
    return {each.rpartition("/")[2] for each in found} & set(definitions)


def _apply(plane: ControlPlane, objects: list[Manifest]) -> None:
    # By the server: definitions are longer than the annotation that kubectl would write otherwise.
    if objects:
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        plane.run_kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", content=content)


def _write_identity(plane: ControlPlane, operator: Operator, path: Path) -> None:
    """Write the administrator's kubeconfig, made to act as the operator's account: no token that expires."""
    assert plane.kubeconfig
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["users"][0]["user"]["as"] = operator.user
    write_kubeconfig(path, content)

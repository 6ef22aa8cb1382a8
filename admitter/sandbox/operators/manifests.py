"""What an operator brings for the API server, made to fit a process on this machine.

Before: `programs` keeps the files. Next: `running` applies it.
"""

import base64
import json
import os
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import yaml

from admitter.sandbox.component_commands import LOCALHOST
from admitter.sandbox.errors import StartError
from admitter.sandbox.operators.definitions import Operator

Manifest = dict[str, Any]

_RIGHTS = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
DEFINITION = "CustomResourceDefinition"


def rendered(kubectl: Path, folder: Path) -> list[Manifest]:
    """The objects of a kustomization, which keeps them: definitions take seconds to render.

    Raises:
        StartError: kubectl can't render it.
    """
    kept = folder / "rendered.json"
    if not kept.exists():
        command = [str(kubectl), "kustomize", str(folder)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise StartError(f"kubectl kustomize {folder}: {answer.stderr.strip()}")
        found = [each for each in yaml.load_all(answer.stdout, yaml.CSafeLoader) if each]
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(found))
        partial.replace(kept)
    objects: list[Manifest] = json.loads(kept.read_text())
    return objects


def definitions_and_rights(operator: Operator, objects: Iterable[Manifest]) -> list[Manifest]:
    """The kinds of an operator, its account and the account's rights; nothing that runs it in the cluster."""
    found = [_placed(operator, each) for each in objects if each["kind"] in {*_RIGHTS, DEFINITION}]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}
    return [namespace, *found]


def without(definitions: Collection[str], objects: Iterable[Manifest]) -> list[Manifest]:
    """The objects of an operator but for definitions of some names."""
    return [
        each
        for each in objects
        if not (each["kind"] == DEFINITION and each["metadata"]["name"] in definitions)
    ]


def webhooks(objects: Iterable[Manifest], port: int, authority: Path) -> list[Manifest]:
    """The webhooks of an operator, served at a port of this machine with a certificate of the authority."""
    found = [each for each in objects if each["kind"].endswith("WebhookConfiguration")]
    trusted = base64.b64encode(authority.read_bytes()).decode()
    for hook in (hook for each in found for hook in each["webhooks"]):
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {"url": f"https://{LOCALHOST}:{port}{path}", "caBundle": trusted}
    return found


def _placed(operator: Operator, manifest: Manifest) -> Manifest:
    """The object in the namespace of the operator, as far as it is in one."""
    if manifest["kind"] in {"ServiceAccount", "Role", "RoleBinding"}:
        manifest["metadata"]["namespace"] = operator.namespace
    for subject in manifest.get("subjects", ()):
        if subject["kind"] == "ServiceAccount":
            subject["namespace"] = operator.namespace
    return manifest

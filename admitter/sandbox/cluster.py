"""A cluster that is used by kubeconfig, the sandbox's own or any other; and kubeconfigs that are written."""

import base64
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from admitter.sandbox.errors import SandboxError
from admitter.sandbox.nodes import SIMULATED_ANNOTATION

CONTEXT = "admitter-sandbox"
"""The only context of the sandbox's kubeconfig."""

Kubeconfig = dict[str, Any]

_SERVED_WITHIN = 60
"""Seconds; a definition is served some tenths of a second after it is made."""

_TOKEN_LIFETIME = "24h"  # noqa: S105 (a duration)


class KubectlError(SandboxError):
    """`kubectl` failed; the message is its own."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Access to a cluster as its administrator, by default that of the kubeconfig that kubectl finds.

    What `kubectl` refuses is a KubectlError, such as that an object named is not there.
    """

    kubectl: Path
    kubeconfig: Path | None
    context: str | None = None

    def run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        """What `kubectl` with these arguments prints, given `content` on its standard input."""
        command = [str(self.kubectl)]
        if self.kubeconfig:
            command.append(f"--kubeconfig={self.kubeconfig}")
        if self.context:
            command.append(f"--context={self.context}")
        answer = subprocess.run(
            [*command, *arguments], input=content or "", capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer.stdout

    def read(self, *arguments: str) -> dict[str, Any]:
        """The object, or the list of them, that `kubectl get` with these arguments finds."""
        found: dict[str, Any] = json.loads(self.run_kubectl("get", *arguments, "--output=json"))
        return found

    def await_definitions(self, *names: str) -> None:
        """Wait until the kinds of definitions are served; without names, those of all definitions.

        `kubectl wait` ends with an error if a definition has no conditions yet.

        Raises:
            SandboxError: one is not served within a minute.
        """
        waiting = Retrying(
            retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(_SERVED_WITHIN)
        )
        try:
            waiting(self._not_established, names)
        except RetryError as error:
            names = error.last_attempt.result()
            raise SandboxError(f"not served after {_SERVED_WITHIN} s: {', '.join(names)}") from error

    def _not_established(self, names: tuple[str, ...]) -> tuple[str, ...]:
        definitions = self.read("crd")["items"]
        established = {
            each["metadata"]["name"]
            for each in definitions
            for condition in each.get("status", {}).get("conditions") or []
            if (condition["type"], condition["status"]) == ("Established", "True")
        }
        expected = names or tuple(each["metadata"]["name"] for each in definitions)
        return tuple(name for name in expected if name not in established)

    @property
    def simulated(self) -> bool:
        """Whether some of its nodes are simulated, so that pods run for as long as an annotation says."""
        nodes = self.read("nodes")["items"]
        return any(SIMULATED_ANNOTATION in node["metadata"].get("annotations", {}) for node in nodes)

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path) -> Path:
        """Write a kubeconfig with which its reader acts as a service account, for a day; returns its path."""
        token = self.run_kubectl(
            "create", "token", name, f"--namespace={namespace}", f"--duration={_TOKEN_LIFETIME}"
        )
        view = self.run_kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json")
        write_kubeconfig(path, token_kubeconfig(json.loads(view)["clusters"][0]["cluster"], token.strip()))
        return path


def certificate_kubeconfig(server: str, authority: Path, certificate: Path) -> Kubeconfig:
    """A configuration that authenticates by a certificate, all of it embedded.

    The server, a URL, is checked with the authority's certificate. The client's is a `.crt` with a `.key`
    beside it.
    """
    user = {
        "client-certificate-data": _encoded(certificate),
        "client-key-data": _encoded(certificate.with_suffix(".key")),
    }
    return _kubeconfig({"server": server, "certificate-authority-data": _encoded(authority)}, user)


def token_kubeconfig(cluster: dict[str, Any], token: str) -> Kubeconfig:
    """A configuration with a bearer token that reaches a cluster as an entry of another one describes it."""
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

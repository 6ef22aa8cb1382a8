"""A cluster that is used by kubeconfig: the sandbox's own, or any other."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from admitter.sandbox.errors import SandboxError
from admitter.sandbox.kubeconfig import token_kubeconfig, write_kubeconfig
from admitter.sandbox.nodes import SIMULATED_ANNOTATION

_TOKEN_LIFETIME = "24h"  # noqa: S105 (a duration)


class KubectlError(SandboxError):
    """`kubectl` failed; the message is its own."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Access to a cluster as its administrator.

    Attributes:
        kubectl: the program.
        kubeconfig: the file that says where the cluster is and as which user; None for the one kubectl finds.
        context: one of the file's contexts; None for its current one.
    """

    kubectl: Path
    kubeconfig: Path | None
    context: str | None = None

    def run_kubectl(self, *arguments: str, content: str | None = None) -> str:
        """What `kubectl` with these arguments prints, given `content` on its standard input.

        Raises:
            KubectlError: it fails.
        """
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
        """The object, or the list of them, that `kubectl get` with these arguments finds.

        Raises:
            KubectlError: it fails, as when an object named is not there.
        """
        found: dict[str, Any] = json.loads(self.run_kubectl("get", *arguments, "--output=json"))
        return found

    @property
    def simulated(self) -> bool:
        """Whether some of its nodes are simulated, so that pods run for as long as an annotation says."""
        nodes = self.read("nodes")["items"]
        return any(SIMULATED_ANNOTATION in node["metadata"].get("annotations", {}) for node in nodes)

    def service_account_kubeconfig(self, namespace: str, name: str, path: Path) -> Path:
        """Write a kubeconfig with which its reader acts as a service account, for a day.

        Args:
            namespace: of the service account, which must exist.
            name: of the service account.
            path: the file to write; readable by the user alone.

        Returns:
            `path`.

        Raises:
            KubectlError: there is no such service account.
        """
        token = self.run_kubectl(
            "create", "token", name, f"--namespace={namespace}", f"--duration={_TOKEN_LIFETIME}"
        )
        view = self.run_kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json")
        write_kubeconfig(path, token_kubeconfig(json.loads(view)["clusters"][0]["cluster"], token.strip()))
        return path

"""The page as a process of its own, under the account of its manifest, and tokens to ask it with."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import yaml

from admitter.names import NAMESPACE
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually

DEPLOYED = Path(__file__).parents[2] / "deploy" / "web.yaml"
ADDRESS = re.compile(r"http://[\d.]+:\d+")
ACCOUNT = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}


class Web:
    """A page that is served by a process under its own account."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, path: str, token: str, **query: str) -> tuple[int, Json]:
        """The status and the answer."""
        url, bearer = f"{self.address}{path}?{urlencode(query)}", {"Authorization": f"Bearer {token}"}
        asked = Request(url, headers=bearer)  # noqa: S310  # its own address
        try:
            with urlopen(asked, timeout=30) as answer:  # noqa: S310  # its own address
                return answer.status, json.loads(answer.read())
        except HTTPError as refused:
            return refused.code, json.loads(refused.read())


@contextmanager
def served(cluster: Cluster, folder: Path, *options: str) -> Iterator[Web]:
    """The page of a cluster, with some options; its kubeconfig and its log are in the folder."""
    documents = [each for each in yaml.safe_load_all(DEPLOYED.read_text()) if each["kind"] in ACCOUNT]
    cluster.run_kubectl("apply", "--filename=-", content=yaml.safe_dump_all(documents))
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, "admitter-web", folder / "web")
    log = folder / "web.log"
    command = [sys.executable, "-m", "admitter", "web", "--bind", "127.0.0.1:0"]
    command += ["--kubeconfig", str(kubeconfig), *options]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        eventually(lambda: ADDRESS.search(log.read_text()), what="an address")
        found = ADDRESS.search(log.read_text())
        assert found is not None
        try:
            yield Web(found.group())
        finally:
            process.terminate()


def token_of(cluster: Cluster, namespace: str, name: str) -> str:
    """A token of a service account."""
    return cluster.run_kubectl("create", "token", name, f"--namespace={namespace}").strip()

"""Installing and uninstalling, as an administrator does it by the command line."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from admitter.install.bundle import manifests
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import cluster_queue

pytestmark = pytest.mark.cluster


def admitter(*arguments: str, answer: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the command, with an answer to its question."""
    command = [sys.executable, "-m", "admitter", *arguments]
    return subprocess.run(command, input=answer, capture_output=True, text=True, check=False)


def test_print_shows_all_that_is_applied_and_changes_nothing() -> None:
    printed = admitter("install", "--print")
    assert printed.returncode == 0
    assert list(yaml.safe_load_all(printed.stdout)) == list(manifests(deployment=True))
    without = admitter("install", "--print", "--without-deployment").stdout
    assert "kind: Deployment" in printed.stdout
    assert "kind: Deployment" not in without


def test_install_again_and_uninstall(bare: Cluster) -> None:
    to = f"--kubeconfig={bare.kubeconfig}"
    first = admitter("install", to)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[-1].startswith("Admitter is installed on https://127.0.0.1:")
    assert {line.split()[2] for line in lines[:-1]} == {"created"}
    assert "Deployment" in first.stdout

    again = admitter("install", to)
    assert {line.split()[2] for line in again.stdout.splitlines()[:-1]} == {"unchanged"}

    queue = yaml.safe_dump(cluster_queue("total", {"cpu": {"default": "1"}}))
    bare.run_kubectl("create", "-f-", content=queue)
    declined = admitter("uninstall", to, answer="n\n")
    assert "1 clusterqueues" in declined.stdout
    assert "Jobs stay as they are" in declined.stdout
    assert declined.stdout.rstrip().endswith("Nothing was deleted.")
    assert bare.read("cq", "total")["metadata"]["name"] == "total"

    gone = admitter("uninstall", to, "--yes")
    assert gone.returncode == 0, gone.stderr
    deleted = [line.split()[0] for line in gone.stdout.splitlines() if line.endswith("deleted")]
    assert deleted[0] == "Deployment"
    assert deleted[-1] == "CustomResourceDefinition"
    assert len(deleted) == len(list(manifests(deployment=True)))


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "gone", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "gone", "context": {"cluster": "gone", "user": "me"}}
    users = [{"name": "me", "user": {}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "gone"}
    kubeconfig.write_text(yaml.safe_dump(config))
    tried = admitter("install", f"--kubeconfig={kubeconfig}")
    assert tried.returncode == 1
    (line,) = tried.stderr.splitlines()
    assert line.startswith("error: http://127.0.0.1:9 does not answer")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig=/no/such/file"], "there is no file /no/such/file"),
        (["--context=no-such-context"], "no-such-context"),
    ],
)
def test_a_configuration_that_is_not_there(
    installed: Cluster, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(installed.kubeconfig))
    tried = admitter("install", *arguments)
    assert tried.returncode == 1
    (line,) = tried.stderr.splitlines()
    assert line.startswith("error: no cluster to talk to: ")
    assert words in line


def test_a_user_who_may_not_install(installed: Cluster, namespace: str, tmp_path: Path) -> None:
    installed.run_kubectl("create", "serviceaccount", "user", f"--namespace={namespace}")
    kubeconfig = installed.service_account_kubeconfig(namespace, "user", tmp_path / "user")
    tried = admitter("install", f"--kubeconfig={kubeconfig}")
    assert tried.returncode == 1
    (line,) = tried.stderr.splitlines()
    assert "forbidden" in line
    assert "customresourcedefinitions" in line

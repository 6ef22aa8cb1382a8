"""Installing and uninstalling, as an administrator does it by the command line.

The first test on the module's cluster leaves nothing in it; the others find it with Admitter or without.
"""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from admitter.install.apply import manifests
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json, cluster_queue
from tests.cluster.waiting import eventually
from tests.commands import admitter, process

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]


def test_print_shows_all_that_is_applied_and_changes_nothing() -> None:
    printed = admitter("install", "--print")
    assert printed.returncode == 0
    assert list(yaml.load_all(printed.stdout, yaml.CSafeLoader)) == list(manifests(deployment=True))
    other = admitter("install", "--print", "--image=registry.example.com/own:1").stdout
    assert other == printed.stdout.replace("image: admitter:0.1.0", "image: registry.example.com/own:1")
    assert other != printed.stdout
    without = admitter("install", "--print", "--without-deployment").stdout
    assert "kind: Deployment" in printed.stdout
    assert "kind: Deployment" not in without


def test_install_again_and_uninstall(vacant: Cluster) -> None:
    to = f"--kubeconfig={vacant.kubeconfig}"
    first = process("install", to)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[-1].startswith("Admitter is installed on https://127.0.0.1:")
    assert {line.split()[2] for line in lines[:-1]} == {"created"}
    assert "Deployment" in first.stdout

    again = admitter("install", to)
    assert {line.split()[2] for line in again.stdout.splitlines()[:-1]} == {"unchanged"}

    queue = yaml.safe_dump(cluster_queue("total", {"cpu": {"default": "1"}}))
    vacant.run_kubectl("create", "-f-", content=queue)
    declined = admitter("uninstall", to, content="n\n")
    assert "1 clusterqueues" in declined.stdout
    assert "Jobs stay as they are" in declined.stdout
    assert declined.stdout.rstrip().endswith("Nothing was deleted.")
    assert vacant.read("cq", "total")["metadata"]["name"] == "total"

    gone = process("uninstall", to, "--yes")
    assert gone.returncode == 0, gone.stderr
    deleted = [line.split()[0] for line in gone.stdout.splitlines() if line.endswith("deleted")]
    assert deleted[0] == "Deployment"
    assert deleted[-1] == "CustomResourceDefinition"
    assert len(deleted) == len(list(manifests(deployment=True)))
    found = vacant.run_kubectl("get", "namespace,customresourcedefinition", "--output=name")
    assert "admitter" not in found


def test_kustomize_renders_what_is_installed_and_applies_it(vacant: Cluster) -> None:
    rendered = list(yaml.load_all(vacant.run_kubectl("kustomize", str(ROOT)), yaml.CSafeLoader))

    def by_name(made: list[Json]) -> list[str]:
        """Line breaks of expressions are written in another way, which means the same."""
        return sorted(re.sub(r"(\\n|\s)+", " ", json.dumps(each, sort_keys=True)) for each in made)

    assert by_name(rendered) == by_name(list(manifests(deployment=True)))
    with contextlib.suppress(KubectlError):  # a policy's parameter may be of a kind that is not known yet
        vacant.run_kubectl("apply", "--server-side", "-k", str(ROOT))
    eventually(lambda: applied(vacant), what="all of it to be taken")
    again = admitter("install", f"--kubeconfig={vacant.kubeconfig}")
    assert again.returncode == 0, again.stderr


def applied(vacant: Cluster) -> bool:
    """Whether all is taken now that its kinds are known."""
    try:
        vacant.run_kubectl("apply", "--server-side", "-k", str(ROOT))
    except KubectlError:
        return False
    return True


def test_what_is_being_deleted_is_waited_for_and_made_anew(vacant: Cluster) -> None:
    to = f"--kubeconfig={vacant.kubeconfig}"
    assert admitter("install", to, "--without-deployment").returncode == 0
    held = ["configmap", "held", "--namespace=admitter-system"]
    vacant.run_kubectl("create", *held)
    vacant.run_kubectl(
        "patch", *held, "--type=merge", '--patch={"metadata":{"finalizers":["example.com/held"]}}'
    )
    vacant.run_kubectl("delete", "namespace", "admitter-system", "--wait=false")
    command = [sys.executable, "-m", "admitter", "install", to, "--without-deployment"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as installing:
        vacant.run_kubectl("patch", *held, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        printed, _ = installing.communicate(timeout=90)
    assert installing.returncode == 0
    (line,) = [line for line in printed.splitlines() if line.startswith("Namespace ")]
    assert line.endswith("created")


def test_what_an_administrator_has_configured_stays_when_it_is_installed_again(vacant: Cluster) -> None:
    to = f"--kubeconfig={vacant.kubeconfig}"
    assert admitter("install", to).returncode == 0
    data = {"data": {"config.yaml": "apiVersion: config.admitter.dev/v1alpha1\nkind: Configuration\n"}}
    there = ["configmap", "admitter-controller", "--namespace=admitter-system"]
    vacant.run_kubectl("patch", *there, "--type=merge", f"--patch={json.dumps(data)}")
    again = admitter("install", to)
    (line,) = [line for line in again.stdout.splitlines() if line.startswith("ConfigMap")]
    assert line.endswith("kept: what it says is yours to change")
    assert vacant.read(*there)["data"] == data["data"]


def test_pods_of_the_deployment_are_let_into_their_namespace(vacant: Cluster) -> None:
    """By the pod security standard that it enforces, and as critical pods."""
    assert admitter("install", f"--kubeconfig={vacant.kubeconfig}").returncode == 0
    (deployment,) = [m for m in manifests(deployment=True) if m["kind"] == "Deployment"]
    metadata = {"name": "tried", "namespace": "admitter-system"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **deployment["spec"]["template"]}
    pod["metadata"] = metadata
    made = vacant.run_kubectl(
        "create", "--dry-run=server", "--output=json", "--filename=-", content=json.dumps(pod)
    )
    assert json.loads(made)["spec"]["priority"] == 2_000_000_000


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "gone", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "gone", "context": {"cluster": "gone", "user": "me"}}
    users = [{"name": "me", "user": {}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "gone"}
    kubeconfig.write_text(yaml.safe_dump(config))
    tried = process("install", f"--kubeconfig={kubeconfig}")
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
    tried = process("install", *arguments)
    assert tried.returncode == 1
    (line,) = tried.stderr.splitlines()
    assert line.startswith("error: no cluster to talk to: ")
    assert words in line


def test_a_user_that_may_not_install(installed: Cluster, namespace: str, tmp_path: Path) -> None:
    installed.run_kubectl("create", "serviceaccount", "user", f"--namespace={namespace}")
    kubeconfig = installed.service_account_kubeconfig(namespace, "user", tmp_path / "user")
    tried = admitter("install", f"--kubeconfig={kubeconfig}")
    assert tried.returncode == 1
    (line,) = tried.stderr.splitlines()
    assert "forbidden" in line
    assert "customresourcedefinitions" in line

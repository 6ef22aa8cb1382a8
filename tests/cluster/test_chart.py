"""Installing, upgrading and uninstalling with Helm, as an administrator does it."""

import asyncio
import shutil
from pathlib import Path

import pytest
import yaml

from admitter.client.transport import HttpTransport
from admitter.install.apply import install
from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.chart.helm import CHART, Helm, HelmError
from tests.cluster.objects import ADMITTER, ON_DEMAND, Json, cluster_queue, local_queue, resource_flavor

pytestmark = [pytest.mark.cluster, pytest.mark.long]

RELEASE = ("admitter", "--namespace=admitter-system")
DEFINITION = ("customresourcedefinition", "workloads.admitter.dev")
DEPLOYMENT = ("deployment", "admitter-controller", "--namespace=admitter-system")


def earlier_chart(folder: Path) -> Path:
    """The chart as it might have been before: a definition says something else."""
    made = Path(shutil.copytree(CHART, folder / "earlier"))
    definition = made / "templates" / "crds" / "workloads.yaml"
    definition.write_text(definition.read_text().replace("    - wl\n", "    - earlier\n"))
    return made


def of_a_user() -> list[Json]:
    """A queue, and what waits in it."""
    workload: Json = {
        "apiVersion": ADMITTER,
        "kind": "Workload",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]},
    }
    return [
        resource_flavor("on-demand", ON_DEMAND),
        cluster_queue("total", {"cpu": {"on-demand": "4"}}),
        local_queue("default", "total"),
        workload,
    ]


def identities(bare: ControlPlane) -> dict[str, str]:
    found = bare.read("resourceflavors,clusterqueues,localqueues,workloads", "--all-namespaces")["items"]
    return {each["kind"]: each["metadata"]["uid"] for each in found}


def short_names(bare: ControlPlane) -> list[str]:
    found: list[str] = bare.read(*DEFINITION)["spec"]["names"]["shortNames"]
    return found


def page_pods(bare: ControlPlane) -> int:
    """How many pods serve the page."""
    label = "--selector=app.kubernetes.io/name=admitter-web"
    found = bare.read("deployments", "--namespace=admitter-system", label)["items"]
    return sum(each["status"].get("readyReplicas", 0) for each in found)


def install_and_upgrade(bare: ControlPlane, helm: Helm, earlier: Path) -> dict[str, str]:
    """A release, a queue and a Workload made under it, and an upgrade; the user's objects."""
    said = helm.run("install", *RELEASE, str(earlier), "--create-namespace", "--wait")
    assert "kubectl label namespace admitter-system" in said
    assert short_names(bare) == ["earlier"]
    for manifest in of_a_user():
        bare.run_kubectl("create", "-f-", content=yaml.safe_dump(manifest))
    before = identities(bare)
    assert len(before) == 4

    changed = {"replicas": 3, "configuration": {"requeueBy": "eviction"}, "web": {"enabled": True}}
    helm.run("upgrade", *RELEASE, str(CHART), "--wait", values=changed)
    assert short_names(bare) == ["wl"], "definitions are upgraded too"
    assert bare.read(*DEPLOYMENT)["status"]["updatedReplicas"] == 3
    configured = bare.read("configmap", *DEPLOYMENT[1:])["data"]["config.yaml"]
    assert yaml.safe_load(configured)["requeueBy"] == "eviction"
    assert page_pods(bare) == 1
    helm.run("rollback", *RELEASE, "--wait")
    assert page_pods(bare) == 0
    assert short_names(bare) == ["earlier"]
    return before


def test_what_users_have_survives_whatever_helm_does(bare: ControlPlane, helm: Helm, tmp_path: Path) -> None:
    assert bare.kubeconfig
    there = helm.of(bare.kubeconfig)
    before = install_and_upgrade(bare, there, earlier_chart(tmp_path))
    assert identities(bare) == before

    there.run("uninstall", *RELEASE, "--wait")
    assert identities(bare) == before
    left = bare.run_kubectl(
        "get", "deployments,clusterroles,mutatingadmissionpolicies", "-A", "--output=name"
    )
    assert "admitter" not in left
    there.run("install", *RELEASE, str(CHART))
    there.run("uninstall", *RELEASE, "--wait")
    bare.run_kubectl("delete", "namespace", "admitter-system")

    other = ("install", "other", str(CHART), "--namespace=default")
    with pytest.raises(HelmError, match="invalid ownership metadata"):
        there.run(*other)
    there.run(*other, "--take-ownership")
    enforced = bare.read("namespace", "admitter-system")["metadata"]["labels"]
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"
    there.run("uninstall", "other", "--namespace=default", "--wait")
    with pytest.raises(KubectlError, match="NotFound"):
        bare.read("namespace", "admitter-system")

    asyncio.run(installed(bare.kubeconfig))
    take_over = ("install", "admitter", str(CHART), "--take-ownership", "--force-conflicts")
    there.run(*take_over, values={"replicas": 3})
    assert bare.read(*DEPLOYMENT)["spec"]["replicas"] == 3
    assert identities(bare) == before


async def installed(kubeconfig: Path) -> None:
    """What `admitter install` does."""
    async with await HttpTransport.connect(kubeconfig) as transport:
        await install(transport, deployment=True)

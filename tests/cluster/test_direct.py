"""What is asked without kubectl is answered as kubectl answers it."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.answers import RefusedError
from tests.cluster.direct import DirectCluster, DirectPlane
from tests.cluster.emptied import leave
from tests.cluster.objects import Json, job
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

NONE = Path("/no/kubectl")


def said(cluster: Cluster, *arguments: str, content: str) -> str:
    """What is printed, or why it is refused; kubectl adds where the manifest stood."""
    try:
        return cluster.run_kubectl(*arguments, content=content).strip()
    except KubectlError as error:
        return str(error).replace('error when creating "STDIN": ', "")


def without_kubectl(cluster: Cluster) -> DirectCluster:
    return DirectCluster(kubectl=NONE, kubeconfig=cluster.kubeconfig, context=cluster.context)


def both(cluster: Cluster, *arguments: str, content: str = "") -> tuple[str, str]:
    """Without kubectl, and with it."""
    direct = without_kubectl(cluster)
    whole = Cluster(kubectl=cluster.kubectl, kubeconfig=cluster.kubeconfig, context=cluster.context)
    return said(direct, *arguments, content=content), said(whole, *arguments, content=content)


@pytest.mark.parametrize(
    "template",
    [
        "{.items[*].metadata.name}",
        "{range .items[*]}{.metadata.name}{' '}{.metadata.labels}{end}",
        '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{end}',
        "{.items[0].status.capacity.nvidia\\.com/gpu}{.items[0].nothing.there}",
    ],
)
def test_fields_are_shown_as_kubectl_shows_them(installed: Cluster, template: str) -> None:
    def alike() -> bool:
        direct, whole = both(installed, "get", "nodes", f"--output=jsonpath={template}")
        return direct == whole

    # Other tests make and delete nodes between one answer and the other.
    eventually(alike, timeout=30, what="the same answer")


@pytest.mark.parametrize("options", [(), ("--as=eve",), ("--as=eve", "--as-group=system:masters")])
def test_users_may_what_kubectl_says(installed: Cluster, options: tuple[str, ...]) -> None:
    direct, whole = both(installed, "auth", "can-i", "update", "jobs/x", "--subresource=status", *options)
    assert (direct == "yes") == (whole == "yes")


def unknown_field(made: Json) -> None:
    made["spec"]["unknown"] = 1


def no_name(made: Json) -> None:
    del made["metadata"]["name"]


@pytest.mark.parametrize(
    ("options", "change"),
    [(("--as=eve",), None), ((), unknown_field), (("--validate=false",), no_name)],
    ids=["not allowed", "not valid", "without a name"],
)
def test_refusals_are_those_of_kubectl(installed: Cluster, options: tuple[str, ...], change: object) -> None:
    made = job("default", "tried")
    if callable(change):
        change(made)
    command = ("create", "--filename=-", "--dry-run=server", *options)
    direct, whole = both(installed, *command, content=json.dumps(made))
    assert "Error from server" in direct or "required" in direct
    assert direct.startswith("kubectl create"), "it is refused"
    assert direct == whole


def test_what_is_deleted_is_gone_and_what_has_a_finalizer_is_waited_for(
    installed: Cluster, namespace: str
) -> None:
    direct = DirectCluster(kubectl=NONE, kubeconfig=installed.kubeconfig, context=installed.context)
    scope = f"--namespace={namespace}"
    for name, finalizers in (("free", []), ("held", ["example.com/held"])):
        metadata = {"name": name, "namespace": namespace, "finalizers": finalizers}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        direct.run_kubectl("create", "--filename=-", content=json.dumps(made))
    free = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "free", "namespace": namespace}}
    direct.run_kubectl("delete", "--filename=-", content=json.dumps(free))
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(direct.run_kubectl, "delete", "configmap/held", scope)
        eventually(
            lambda: "deletionTimestamp" in direct.read("configmap", "held", scope)["metadata"],
            what="the deletion",
        )
        assert not waiting.done()
        let_go = '{"metadata": {"finalizers": null}}'
        direct.run_kubectl("patch", "configmap", "held", scope, "--type=merge", f"--patch={let_go}")
        waiting.result()
    for name in ("free", "held"):
        with pytest.raises(KubectlError, match="NotFound"):
            direct.read("configmap", name, scope)


@pytest.mark.parametrize("words", [("configmap", "kube-root-ca.crt"), ("configmap/kube-root-ca.crt",)])
def test_marks_are_put_on_and_taken_off(installed: Cluster, namespace: str, words: tuple[str, ...]) -> None:
    direct = DirectCluster(kubectl=NONE, kubeconfig=installed.kubeconfig, context=installed.context)
    scope = f"--namespace={namespace}"

    def mark() -> Any:
        found = direct.read("configmap", "kube-root-ca.crt", scope)["metadata"]
        return found.get("annotations", {}).get("mark")

    eventually(lambda: direct.read("configmaps", scope)["items"], what="what each namespace has")
    direct.run_kubectl("annotate", *words, "mark=on", scope)
    assert mark() == "on"
    direct.run_kubectl("annotate", *words, "mark-", scope)
    assert mark() is None


def test_a_group_without_any_kind_is_refused_by_a_text(installed: Cluster) -> None:
    with pytest.raises(RefusedError, match="404 page not found"):
        without_kubectl(installed).user.ask("GET", "/apis/gone.example.com/v1/things")


def test_a_namespace_is_left_although_a_kind_has_gone(sandbox: DirectPlane) -> None:
    name = f"left-{uuid4().hex[:6]}"
    sandbox.run_kubectl("create", "namespace", name)
    sandbox.user.server.resources["things"] = ("/apis/gone.example.com/v1/{}things", True)
    leave(sandbox, name)
    assert "deletionTimestamp" in sandbox.read("namespace", name)["metadata"]
    assert sandbox.user.path("things") is None

"""Objects of a described kind with a definition that takes any fields: what policies make of odd ones."""

import asyncio
import json
from typing import Any

import pytest

from admitter.client.transport import HttpTransport
from admitter.install.apply import install_kinds
from admitter.names import CONTROLLER_USER
from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import Json
from tests.cluster.policies import await_validation
from tests.cluster.waiting import eventually
from tests.kinds.described import definition, experiment, template

pytestmark = pytest.mark.cluster

FORMS: dict[str, Json] = {
    "row": {"each": "spec.parts", "nameFrom": "item.name", "template": "template", "count": "item.copies"},
    "table": {"each": "spec.parts", "nameFrom": "key", "template": "template", "count": "item.copies"},
}
"""Of a list, and of a map."""
PART: Json = {"copies": 2, "template": template()}
PARTS: dict[str, Any] = {"row": [{"name": "a", **PART}], "table": {"a": PART}}


@pytest.fixture(scope="module", params=list(FORMS))
def form(own: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A cluster with a described kind that has a list or a map of parts, of any fields."""
    made, anything = definition(), {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = made["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = anything
    name = f"{request.param}s"
    made["metadata"]["name"] = f"{name}.lab.example.com"
    made["spec"]["names"] = {"kind": request.param.title(), "plural": name}
    own.run_kubectl("create", "-f-", content=json.dumps(made))
    own.await_definitions(f"{name}.lab.example.com")
    resource = {
        "group": "lab.example.com",
        "version": "v1",
        "kind": request.param.title(),
        "plural": name,
    }
    kind = experiment(resource=resource, podSets=[FORMS[request.param]], active="has(object.status)")
    kind["metadata"]["name"] = request.param
    asyncio.run(_install(own, kind))
    await_validation(own)
    return str(request.param)


async def _install(cluster: ControlPlane, kind: Json) -> None:
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install_kinds(transport, {kind["metadata"]["name"]: kind})


def manifest(form: str, name: str, spec: Json) -> Json:
    labels = {"admitter.dev/queue-name": "main"}
    head = {"apiVersion": "lab.example.com/v1", "kind": form.title()}
    return {**head, "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}


def make(cluster: ControlPlane, raw: Json) -> Json:
    answer = cluster.run_kubectl("create", "-f-", "--output=json", content=json.dumps(raw))
    found: Json = json.loads(answer)
    return found


def patch(cluster: ControlPlane, form: str, name: str, change: Json, *more: str) -> Json:
    patch = json.dumps(change)
    words = ["patch", form, name, "--type=merge", f"--patch={patch}", "--output=json", *more]
    found: Json = json.loads(cluster.run_kubectl(*words))
    return found


def test_a_list_or_map_that_is_null_is_one_that_is_not_there(own: ControlPlane, form: str) -> None:
    def is_stopped() -> bool:
        try:
            raw = manifest(form, "probe", {"parts": PARTS[form]})
            dry = own.run_kubectl("create", "-f-", "--dry-run=server", "-ojson", content=json.dumps(raw))
        except KubectlError:
            return False
        return bool(json.loads(dry)["spec"].get("paused"))

    eventually(is_stopped, what="policies in force")
    assert make(own, manifest(form, "null", {"parts": None}))["spec"] == {"parts": None, "paused": True}
    bare = template() | {"metadata": None}
    odd = PART | {"template": bare}
    parts = {"row": [{"name": "a", **odd}], "table": {"a": odd}}[form]
    assert make(own, manifest(form, "bare", {"parts": parts}))["spec"]["paused"] is True
    make(own, manifest(form, "trial", {"parts": PARTS[form]}))
    patch(own, form, "trial", {"spec": {"paused": False}}, f"--as={CONTROLLER_USER}")
    raw = json.loads(own.run_kubectl("get", form, "trial", "-ojson"))
    raw["spec"]["parts"] = None
    own.run_kubectl("replace", "-f-", content=json.dumps(raw))
    raw = json.loads(own.run_kubectl("get", form, "trial", "-ojson"))
    raw["spec"]["parts"] = PARTS[form]
    with pytest.raises(KubectlError, match=r"an admitted (Row|Table) uses the quota that it was given"):
        own.run_kubectl("replace", "-f-", content=json.dumps(raw))

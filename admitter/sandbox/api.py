"""The few requests that starting a control plane needs, made as its administrator."""

import http.client
import json
import ssl
from typing import Any

from admitter.sandbox.component_commands import LOCALHOST, Layout
from admitter.sandbox.errors import StartError
from admitter.sandbox.nodes import Manifest

_TIMEOUT = 10


class Api:
    """The API server of a control plane that may not answer yet."""

    def __init__(self, layout: Layout) -> None:
        self._port = layout.api_port
        self._context = ssl.create_default_context(cafile=layout.pki / "ca.crt")
        self._context.load_cert_chain(layout.pki / "admin.crt", layout.pki / "admin.key")

    def is_ready(self) -> bool:
        try:
            return self._request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def has_service_accounts(self) -> bool:
        """Whether pods can be made in the namespace `default`: they need its service account."""
        return self._request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200

    def create_node(self, manifest: Manifest) -> None:
        """Register a node; StartError with the server's reason if it refuses."""
        status, body = self._request("POST", "/api/v1/nodes", manifest)
        if status != 201:
            reason = json.loads(body).get("message", f"the API server answered {status}")
            raise StartError(f"Node {manifest['metadata']['name']}: {reason}")

    def unready_nodes(self) -> list[str]:
        """The names of the nodes that take no pods yet."""
        status, body = self._request("GET", "/api/v1/nodes")
        if status != 200:
            raise StartError(f"listing nodes: the API server answered {status}: {body.decode()}")
        return [node["metadata"]["name"] for node in json.loads(body)["items"] if not _takes_pods(node)]

    def _request(self, method: str, path: str, body: Manifest | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            LOCALHOST, self._port, timeout=_TIMEOUT, context=self._context
        )
        try:
            content = json.dumps(body) if body else None
            connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _takes_pods(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    taints = node["spec"].get("taints", [])
    return ready and not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints)

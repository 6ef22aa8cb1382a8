"""What a test leaves of its namespace.

The controller manager deletes a namespace by two requests for each of a hundred kinds and one for each event:
0.15 s of CPU in all programs. To delete what would go on by itself takes a sixth of that.
"""

from typing import Final

from admitter.names import GROUP
from admitter.sandbox.cluster import Cluster
from tests.cluster.answers import RefusedError
from tests.cluster.direct import DirectCluster, DirectPlane

_AT_REST: Final = {
    "authorization.k8s.io",
    "autoscaling",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "storage.k8s.io",
}
"""API groups of which nothing makes anything, or counts."""
_BACKGROUND: Final = {"propagationPolicy": "Background"}
_LAST: Final = (f"{GROUP}/", "v1/resourcequotas", "v1/pods")
"""What others make comes after these."""


def delete_all(cluster: Cluster, plural: str, namespace: str) -> None:
    """Delete all objects of a kind in a namespace."""
    if not isinstance(cluster, DirectCluster):
        cluster.run_kubectl("delete", plural, "--all", f"--namespace={namespace}", "--wait=false")
        return
    path = cluster.user.path(plural, namespace)
    assert path, plural
    cluster.user.ask("DELETE", path, query=_BACKGROUND)


def leave(cluster: Cluster, namespace: str) -> None:
    """Leave nothing in a namespace that goes on by itself; delete it where the cluster outlives the tests."""
    if not (isinstance(cluster, DirectPlane) and _emptied(cluster, namespace)):
        cluster.run_kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


def _emptied(cluster: DirectPlane, namespace: str) -> bool:
    """Whether all has been deleted: it is not if something is in use, or a kind is not there any more."""
    user = cluster.user
    found = {path for path, has_namespaces in user.server.resources.values() if has_namespaces}
    acting = {path for path in found if path.startswith("/apis/") and path.split("/")[2] not in _AT_REST}
    acting |= {f"/api/v1/{{}}{plural}" for plural in ("pods", "resourcequotas")}
    try:
        for path in sorted(acting, key=_turn):
            user.ask("DELETE", path.format(f"namespaces/{namespace}/"), query=_BACKGROUND)
    except RefusedError:
        del user.server.resources  # so that a kind that is gone is asked for once
        return False
    return True


def _turn(path: str) -> int:
    """Makers come before what they make."""
    place = path.replace("{}", "")
    return next((turn for turn, part in enumerate(_LAST, 1) if part in place), 0)

"""CustomResourceDefinitions that a test takes away."""

from contextlib import suppress

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.waiting import eventually

UNCLEANED = '{"metadata": {"finalizers": null}}'


def delete_definitions(cluster: Cluster, *names: str) -> None:
    """Without the API server's cleaning, of which it forgets at times; there are no objects of theirs."""
    cluster.run_kubectl("delete", "crd", "--wait=false", *names)
    for name in names:
        with suppress(KubectlError):  # it may be gone
            cluster.run_kubectl("patch", "crd", name, "--type=merge", f"--patch={UNCLEANED}")

    def left() -> set[str]:
        return {each["metadata"]["name"] for each in cluster.read("crds")["items"]} & set(names)

    eventually(lambda: not left(), what="gone kinds")

"""Waiting for a condition: the one place of ring 2 that sleeps."""

import json
import time
from collections.abc import Callable, Iterable

from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json

LOOK_SECONDS = 0.2


def eventually(
    condition: Callable[[], object],
    *,
    timeout: float = 180,
    what: str = "the condition",
    every: float = LOOK_SECONDS,
) -> None:
    """Wait until a condition holds; it is looked at again so many seconds after each time.

    Raises:
        AssertionError: it does not within the timeout, in seconds.
    """
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout:.0f} s for {what}"
        time.sleep(every)


def have_ended(pods: Callable[[], Iterable[Json]]) -> None:
    """Assert that none of some pods uses quota any more, and wait until all are gone.

    A kubelet writes the end of a pod into its status before it deletes it: its quota is free in between.
    """
    phases = {pod["metadata"]["name"]: pod["status"].get("phase") for pod in pods()}
    assert set(phases.values()) <= {"Succeeded", "Failed"}, phases
    eventually(lambda: not list(pods()), what="pods that have ended to be gone")


def later_than(cluster: Cluster, timestamp: str) -> None:
    """Wait until the API server's clock shows a later second: timestamps, and so ages, tell no less."""
    probe = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clock"}})
    command = ("create", "--dry-run=server", "--output=json", "--filename=-")

    def now() -> str:
        made = json.loads(cluster.run_kubectl(*command, content=probe))
        return str(made["metadata"]["creationTimestamp"])

    eventually(lambda: now() > timestamp, what=f"a second after {timestamp}")

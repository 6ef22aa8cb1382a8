"""Waiting for a condition: the one place of ring 2 that sleeps."""

import json
import time
from collections.abc import Callable

from admitter.sandbox.cluster import Cluster

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


def later_than(cluster: Cluster, timestamp: str) -> None:
    """Wait until the API server's clock shows a later second: timestamps, and so ages, tell no less."""
    probe = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clock"}})
    command = ("create", "--dry-run=server", "--output=json", "--filename=-")

    def now() -> str:
        made = json.loads(cluster.run_kubectl(*command, content=probe))
        return str(made["metadata"]["creationTimestamp"])

    eventually(lambda: now() > timestamp, what=f"a second after {timestamp}")

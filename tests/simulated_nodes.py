"""The sandbox's simulated nodes, in any other cluster.

`python -m tests.simulated_nodes KUBECONFIG` registers them and simulates them until it is ended; the
cluster's own nodes are left alone.
"""

import json
import os
import sys
from pathlib import Path

from rich.console import Console

from admitter.sandbox.build import ensure_programs
from admitter.sandbox.cluster import Cluster
from admitter.sandbox.component_commands import simulator
from admitter.sandbox.nodes import DEFAULT_NODES, SIMULATED_ANNOTATION, read_nodes


def simulate(kubeconfig: Path) -> None:
    """Become the process that simulates the nodes."""
    programs = ensure_programs(Console(stderr=True), ["kubectl", "kwok"])
    nodes = {"apiVersion": "v1", "kind": "List", "items": read_nodes(DEFAULT_NODES)}
    cluster = Cluster(kubectl=programs["kubectl"], kubeconfig=kubeconfig)
    cluster.run_kubectl("apply", "--filename=-", content=json.dumps(nodes))
    managed = f"--manage-nodes-with-annotation-selector={SIMULATED_ANNOTATION}=fake"
    os.execv(programs["kwok"], [*simulator(programs, kubeconfig), managed])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    simulate(Path(sys.argv[1]).absolute())

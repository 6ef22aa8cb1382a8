"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from admitter.convert.workloads import RequeueBy

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="The kubeconfig file. By default KUBECONFIG, ~/.kube/config, or the pod's own account.",
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(help="The context in the kubeconfig. By default its current one.", show_default=False),
]
RequeueOption = Annotated[
    RequeueBy,
    typer.Option(
        help="Where a preempted Workload waits. creation: in its old place. eviction: behind those that came "
        "before it was preempted.",
    ),
]

"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

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

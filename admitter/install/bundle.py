"""The manifests that come with the package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]

_PACKAGE = Path(__file__).parents[1]

_RUNNING: Final = {
    *("ConfigMap", "ResourceQuota", "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment")
}
"""The kinds of what runs the controller in the cluster."""


def bundled(name: str) -> Path:
    """A folder of the bundle, `crds` or `manifests`: in an installed package, or in a checkout."""
    installed = _PACKAGE / "bundle" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def manifests(*, deployment: bool) -> Iterator[Json]:
    """Everything to apply, in order; with a deployment the controller is to run in the cluster."""
    for folder in ("crds", "manifests"):
        for path in sorted(bundled(folder).glob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                if deployment or document["kind"] not in _RUNNING:
                    yield document

"""Reads the manifests of simulated nodes."""

from pathlib import Path
from typing import Any

from admitter.documents import ManifestError, documents
from admitter.sandbox.errors import NodesError

DEFAULT_NODES = Path(__file__).parent / "nodes.yaml"

SIMULATED_ANNOTATION = "kwok.x-k8s.io/node"
"""On a node that is simulated, by KWOK's convention."""

Manifest = dict[str, Any]


def read_nodes(path: Path) -> list[Manifest]:
    """The nodes in a file of YAML: one or several documents, each a Node or a List of them.

    Raises:
        NodesError: with the file, the place in it and the reason.
    """
    try:
        found = list(documents([str(path)]))
    except ManifestError as error:
        raise NodesError(str(error)) from error
    nodes: dict[str, Manifest] = {}
    for place, manifest in found:
        if isinstance(manifest, ManifestError):
            raise NodesError(f"{place}: {manifest}") from manifest
        node = _node(place, manifest)
        name = node["metadata"]["name"]
        if name in nodes:
            raise NodesError(f"{place}: metadata.name: {name!r} is the name of an earlier node")
        nodes[name] = node
    if not nodes:
        raise NodesError(f"{path}: has no Node in it")
    return list(nodes.values())


def _node(place: str, manifest: object) -> Manifest:
    if not isinstance(manifest, dict):
        raise NodesError(f"{place}: is no object")
    kind = (manifest.get("apiVersion"), manifest.get("kind"))
    if str(kind[1]).endswith("List"):  # others are taken apart
        raise NodesError(f"{place}: items: a List needs a list of objects")
    if kind != ("v1", "Node"):
        raise NodesError(f"{place}: is {kind[0]} {kind[1]}; only v1 Node is possible here")
    metadata = _mapping(place, "metadata", manifest)
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise NodesError(f"{place}: metadata.name: a node needs a name")
    annotations = {**_mapping(place, "metadata.annotations", metadata), SIMULATED_ANNOTATION: "fake"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _mapping(place: str, field: str, parent: Manifest) -> Manifest:
    value = parent.get(field.rpartition(".")[2])
    if value is not None and not isinstance(value, dict):
        raise NodesError(f"{place}: {field}: is no object")
    return value or {}

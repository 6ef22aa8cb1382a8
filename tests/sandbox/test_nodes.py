from pathlib import Path

import pytest

from admitter.sandbox.errors import NodesError
from admitter.sandbox.nodes import DEFAULT_NODES, SIMULATED_ANNOTATION, read_nodes

NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}}"


def write(folder: Path, content: str) -> Path:
    path = folder / "nodes.yaml"
    path.write_text(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"{NODE % 'a'}\n---\n{NODE % 'b'}\n", id="several documents"),
        pytest.param(f"---\n---\n{NODE % 'a'}\n---\n{NODE % 'b'}\n---\n", id="empty documents between"),
        pytest.param(f"kind: List\nitems: [{NODE % 'a'}, {NODE % 'b'}]", id="a List"),
        pytest.param(f"kind: List\nitems: [{NODE % 'a'}]\n---\n{NODE % 'b'}", id="a List and a document"),
    ],
)
def test_nodes_are_read_from_documents_and_lists(tmp_path: Path, content: str) -> None:
    nodes = read_nodes(write(tmp_path, content))
    assert [node["metadata"]["name"] for node in nodes] == ["a", "b"]
    assert all(node["metadata"]["annotations"] == {SIMULATED_ANNOTATION: "fake"} for node in nodes)


def test_what_a_node_says_is_kept(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: x}, annotations: {team: red}}
spec: {unschedulable: true}
status: {capacity: {cpu: "3"}}
"""
    (node,) = read_nodes(write(tmp_path, text))
    assert node["metadata"]["labels"] == {"zone": "x"}
    assert node["metadata"]["annotations"] == {"team": "red", SIMULATED_ANNOTATION: "fake"}
    assert node["spec"] == {"unschedulable": True}
    assert node["status"] == {"capacity": {"cpu": "3"}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("", "has no Node in it", id="empty"),
        pytest.param("{", "is no YAML: ", id="no YAML"),
        pytest.param("[1]", "document 1: is no object", id="no object"),
        pytest.param(
            f"{NODE % 'a'}\n---\n{{apiVersion: v1, kind: Pod}}",
            "document 2: is v1 Pod; only v1 Node is possible here",
            id="another kind",
        ),
        pytest.param("{kind: Node}", "document 1: is None Node; only v1 Node", id="no apiVersion"),
        pytest.param(
            "{kind: List}", "document 1: items: a List needs a list of objects", id="List of nothing"
        ),
        pytest.param(
            "{apiVersion: v1, kind: NodeList, items: {}}",
            "document 1: items: a List needs a list of objects",
            id="List of one kind of nothing",
        ),
        pytest.param("{kind: List, items: [3]}", "document 1: is no object", id="no object in a List"),
        pytest.param("{apiVersion: v1, kind: Node}", "metadata.name: a node needs a name", id="no name"),
        pytest.param(NODE % "7", "metadata.name: a node needs a name", id="a number for a name"),
        pytest.param(
            f"{NODE % 'a'}\n---\n{NODE % 'a'}",
            "document 2: metadata.name: 'a' is the name of an earlier node",
            id="the same name twice",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Node, metadata: x}",
            "document 1: metadata: is no object",
            id="wrong metadata",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Node, metadata: {name: a, annotations: [x]}}",
            "document 1: metadata.annotations: is no object",
            id="wrong annotations",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, content: str, reason: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(NodesError) as wrong:
        read_nodes(path)
    assert str(wrong.value).startswith(f"{path}: ")
    assert reason in str(wrong.value)


@pytest.mark.parametrize("content", [pytest.param(b"\xff", id="no text"), pytest.param(None, id="missing")])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "nodes.yaml"
    if content:
        path.write_bytes(content)
    with pytest.raises(NodesError, match=r"nodes\.yaml: can't be read: "):
        read_nodes(path)


def test_each_node_with_gpus_has_the_labels_of_a_cpu_flavor_and_a_gpu_flavor() -> None:
    nodes = {node["metadata"]["name"]: node for node in read_nodes(DEFAULT_NODES)}
    assert len(nodes) == 6
    gpus = {
        name: node["metadata"]["labels"]
        for name, node in nodes.items()
        if "nvidia.com/gpu" in node["status"]["capacity"]
    }
    assert gpus == {
        "gpu-vendor1-0": {"instance-type": "spot", "accelerator": "vendor1"},
        "gpu-vendor2-0": {"instance-type": "on-demand", "accelerator": "vendor2"},
    }

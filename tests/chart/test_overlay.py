"""The overlay of kustomize that docs/install.md shows."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from admitter.install.apply import manifests
from admitter.sandbox.build import ensure_programs

pytestmark = pytest.mark.cluster

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]


def by_name(objects: list[Json]) -> dict[tuple[str, str], Json]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def test_the_overlay_of_the_page_changes_the_image_and_the_replicas_and_nothing_else(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    (shown,) = [
        block
        for block in re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
        if "kind: Kustomization" in block
    ]
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "kustomization.yaml").write_text(shown)
    (tmp_path / "admitter").symlink_to(ROOT)
    kubectl = ensure_programs(Console(stderr=True), ["kubectl"])["kubectl"]
    command = [str(kubectl), "kustomize", str(tmp_path / "overlay")]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    made, bundle = (
        by_name(list(yaml.load_all(rendered, yaml.CSafeLoader))),
        by_name(list(manifests(deployment=True))),
    )
    assert made.keys() == bundle.keys()
    before, after = (objects["Deployment", "admitter-controller"] for objects in (bundle, made))
    assert after["spec"]["replicas"] == 3
    (container,) = after["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/admitter:0.1.0"
    after["spec"]["replicas"] = before["spec"]["replicas"]
    container["image"] = before["spec"]["template"]["spec"]["containers"][0]["image"]
    assert after == before

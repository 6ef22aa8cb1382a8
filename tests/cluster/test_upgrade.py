"""An upgrade, as an administrator does it: what an earlier release has stored is there and valid."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter.names import GROUP
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.commands import installs
from tests.cluster.test_run import answer, running_controller
from tests.cluster.waiting import eventually
from tests.releases.compatible import objects, releases

pytestmark = [pytest.mark.cluster, pytest.mark.long]

Json = dict[str, Any]

RELEASED = [pytest.param(release, id=release.name) for release in releases()]


def place(manifest: Json) -> list[str]:
    """Where kubectl finds an object."""
    group = manifest["apiVersion"].partition("/")[0]
    kind = f"{manifest['kind']}.{group}" if manifest["apiVersion"] != "v1" else manifest["kind"]
    namespace = manifest["metadata"].get("namespace")
    return [kind.lower(), manifest["metadata"]["name"], *([f"--namespace={namespace}"] if namespace else [])]


def install_release(cluster: ControlPlane, release: Path) -> None:
    """What the release had: its definitions, and the objects that were stored under them."""
    cluster.run_kubectl("apply", "--server-side", f"--filename={release / 'crds'}")
    cluster.await_definitions()
    for manifest in objects(release):
        cluster.run_kubectl("create", "--filename=-", content=json.dumps(manifest))
        if "status" in manifest:
            patch = json.dumps({"status": manifest["status"]})
            options = ["--subresource=status", "--type=merge", f"--patch={patch}"]
            cluster.run_kubectl("patch", *place(manifest), *options)


def stored(cluster: ControlPlane, release: Path) -> list[Json]:
    """All objects as they are read now."""
    return [cluster.read(*place(manifest)) for manifest in objects(release)]


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """The values that are not what they were; new fields may have come."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [each for key in before for each in lost(before[key], after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            each
            for n, pair in enumerate(zip(before, after, strict=True))
            for each in lost(*pair, f"{path}[{n}]")
        ]
    return [] if before == after else [f"{path} was {before} and is {after}"]


def complete(manifest: Json, read: Json) -> list[str]:
    """What of an object was not stored as it was written."""
    parts = {part: manifest.get(part) or {} for part in ("spec", "status")}
    return [] if manifest["kind"] == "Namespace" else lost(parts, read)


@pytest.mark.parametrize("release", RELEASED)
def test_all_that_a_release_has_stored_is_taken_over_by_this_one(
    bare: ControlPlane, tmp_path: Path, release: Path
) -> None:
    install_release(bare, release)
    before = stored(bare, release)
    written = zip(objects(release), before, strict=True)
    assert [each for manifest, read in written for each in complete(manifest, read)] == []

    installs(bare.kubeconfig)
    after = stored(bare, release)
    changes = [
        lost({part: old.get(part) for part in ("spec", "status")}, new)
        for old, new in zip(before, after, strict=True)
        if GROUP in old["apiVersion"]
    ]
    assert [each for found in changes for each in found] == []

    for manifest in objects(release):
        bare.run_kubectl("label", *place(manifest), "upgraded=yes")
        if GROUP in manifest["apiVersion"]:
            again = {key: value for key, value in manifest.items() if key != "status"}
            again["metadata"] = manifest["metadata"] | {"name": f"again-{manifest['metadata']['name']}"}
            bare.run_kubectl("create", "--filename=-", content=json.dumps(again))
    bare.run_kubectl(
        "patch",
        "workload",
        "report",
        "--namespace=research",
        "--type=merge",
        '--patch={"spec":{"active":false}}',
    )
    assert all(each["metadata"]["labels"]["upgraded"] == "yes" for each in stored(bare, release))

    with running_controller(bare, tmp_path):
        eventually(lambda: answer(tmp_path, "/readyz"), what="the controller to be ready")
        evicted = ["get", "workload", "report", "--namespace=research", "--output=jsonpath={.status.state}"]
        eventually(
            lambda: bare.run_kubectl(*evicted) == "Pending", what="the paused Workload to give its quota back"
        )
        log = (tmp_path / "log").read_text()
        assert "can't be read" not in log
        assert '"level":"error"' not in log


@pytest.mark.parametrize("release", RELEASED)
def test_what_this_release_has_stored_is_there_after_going_back(bare: ControlPlane, release: Path) -> None:
    installs(bare.kubeconfig)
    for manifest in objects(release):
        bare.run_kubectl("create", "--filename=-", content=yaml.safe_dump(manifest))
    before = stored(bare, release)
    bare.run_kubectl("apply", "--server-side", "--force-conflicts", f"--filename={release / 'crds'}")
    after = stored(bare, release)
    assert [
        each
        for old, new in zip(before, after, strict=True)
        for each in lost(old.get("spec"), new.get("spec"))
    ] == []

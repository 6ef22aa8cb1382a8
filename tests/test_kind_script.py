"""`make test-kind` where Docker does not run, and where a cluster can't be made."""

import os
import subprocess
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[1]


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run_script(programs: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    command = ["/bin/bash", str(ROOT / "tests" / "kind.sh")]
    return subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        cwd=programs,
    )


def test_without_docker_it_says_so_and_fails(tmp_path: Path) -> None:
    program(tmp_path, "docker", "exit 1")
    answer = run_script(tmp_path)
    assert answer.returncode == 1
    assert answer.stderr == "test-kind: kind needs Docker, which does not run here: docker info fails\n"


def test_what_was_begun_of_a_cluster_is_deleted_if_it_fails(tmp_path: Path) -> None:
    program(tmp_path, "docker", "exit 0")
    calls = tmp_path / "calls"
    program(
        tmp_path,
        "go",
        f'[ "$1" = version ] && echo "go version go9.9.9" && exit\necho "$*" >> {calls}\n[ "$3" = delete ]',
    )
    answer = run_script(tmp_path)
    assert answer.returncode != 0
    created, deleted = (line.split() for line in calls.read_text().splitlines())
    assert created[2:4] == ["create", "cluster"]
    assert deleted[2:4] == ["delete", "cluster"]
    name = created[created.index("--name") + 1]
    assert deleted[deleted.index("--name") + 1] == name
    assert "@sha256:" in created[created.index("--image") + 1]

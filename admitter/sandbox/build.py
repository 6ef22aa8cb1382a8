"""Builds Go programs, those of the control plane most of all, once for each set of versions.

Next: `control_plane` starts them.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from rich.console import Console

from admitter.sandbox import processes
from admitter.sandbox.errors import BuildError
from admitter.sandbox.folders import cache_folder, exclusive
from admitter.sandbox.toolchain import MODFILES, MODULE, PACKAGES, build_flags, cache_key, find_go, modfile_of

_ASSETS = "KUBEBUILDER_ASSETS"
_PARTIAL = ".partial"
_LOOK_SECONDS = 0.5


def ensure_programs(
    console: Console,
    names: Iterable[str] = PACKAGES,
    environment: Mapping[str, str] = os.environ,
    kubernetes: str | None = None,
) -> dict[str, Path]:
    """Programs of the control plane by name, built now if they are not in the cache folder.

    Those that are in the folder that `KUBEBUILDER_ASSETS` names are taken from there instead, unless a
    release of Kubernetes is asked for.

    Raises:
        SandboxError: a program can't be built, `KUBEBUILDER_ASSETS` is no folder, or the release is unknown.
    """
    given = _assets(environment) if kubernetes is None else {}
    modfile = MODFILES[0] if kubernetes is None else modfile_of(kubernetes)
    folder = cache_folder(environment) / "components" / cache_key(modfile=modfile)
    needed = [name for name in names if name not in given]
    if not all((folder / name).exists() for name in needed):
        Builder(folder, find_go, console, modfile=modfile).build(needed)
    return given | {name: folder / name for name in needed}


def _assets(environment: Mapping[str, str]) -> dict[str, Path]:
    value = environment.get(_ASSETS)
    if not value:
        return {}
    folder = Path(value).absolute()
    if not folder.is_dir():
        raise BuildError(f"{_ASSETS}: {value} is not a folder")
    return {name: folder / name for name in PACKAGES if (folder / name).is_file()}


@dataclass(frozen=True, slots=True)
class Builder:
    """Builds programs of a Go module into a folder that holds whole ones only.

    All sandboxes with the same versions share the folder. `find_go` is asked only if there is something to
    build. The console shows progress: lines that replace each other on a terminal, plain ones elsewhere.
    """

    folder: Path
    find_go: Callable[[Console], Path]
    console: Console
    module: Path = MODULE
    packages: Mapping[str, str] = field(default_factory=lambda: PACKAGES)
    modfile: str = MODFILES[0]

    def build(self, names: Sequence[str]) -> None:
        """Build the programs that are missing, one by one; BuildError with the compiler's own words."""
        with exclusive(self.folder / ".lock", f"is building {', '.join(names)}", self.console):
            for partial in self.folder.glob(f".*{_PARTIAL}"):
                partial.unlink()  # of a build that was killed; no other builds now
            missing = [name for name in names if not (self.folder / name).exists()]
            if not missing:
                return
            go = self.find_go(self.console)
            self.console.print(
                f"Building {len(missing)} of {len(names)} programs into {self.folder}. This happens once "
                "and takes some minutes; interrupted, it goes on where it was.",
                soft_wrap=True,
            )
            for name in missing:
                with self._step(f"{names.index(name) + 1} of {len(names)} {name}") as show_elapsed:
                    self._compile(go, name, show_elapsed)

    def _compile(self, go: Path, name: str, show_elapsed: Callable[[], None]) -> None:
        partial = self.folder / f".{name}{_PARTIAL}"
        command = [str(go), "build", *build_flags(self.modfile), "-o", str(partial), self.packages[name]]
        with tempfile.TemporaryFile() as output:
            process = processes.start_child(
                command,
                signal.SIGTERM,
                cwd=self.module,
                env=_go_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            # A thread waits, since no signal interrupts it: where Ctrl-C hits Popen.wait(), that may keep its
            # lock, and the next wait() for the same process never ends.
            waiting = Thread(target=process.wait, daemon=True)
            try:
                waiting.start()
                while waiting.is_alive():
                    waiting.join(_LOOK_SECONDS)
                    show_elapsed()
            except BaseException:
                processes.end_group(process)  # Ctrl-C, most of all: compilers are children of the go command
                partial.unlink(missing_ok=True)
                raise
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
        if process.returncode != 0:
            partial.unlink(missing_ok=True)
            how = f"{go} build {self.packages[name]} exited with {process.returncode}"
            raise BuildError(f"{name} could not be built: {how}:\n{said}")
        partial.rename(self.folder / name)

    @contextmanager
    def _step(self, label: str) -> Iterator[Callable[[], None]]:
        began = time.monotonic()

        def line() -> str:
            return f"{label} {format_elapsed(time.monotonic() - began)}"

        if self.console.is_terminal:
            with self.console.status(line()) as status:
                yield lambda: status.update(line())
        else:
            self.console.print(label)
            yield lambda: None
        self.console.print(f"{line()} done", highlight=False)


def format_elapsed(seconds: float) -> str:
    """Seconds as minutes and seconds, such as `1:12`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def _go_environment() -> dict[str, str]:
    # No cgo: the programs need no C compiler then, and run with any C library. GOFLAGS and GOWORK of the
    # user's own projects, and a toolchain that Go would download, must not change what is built.
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}

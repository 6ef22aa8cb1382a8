"""Processes that end when they should, and are recognised with certainty."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import psutil

_PR_SET_PDEATHSIG = 1
_CLOCK_TOLERANCE = 1.0
"""Seconds by which a process's creation time may shift when the machine's clock is corrected."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process, distinguished from a later one with the same, recycled number by when it was created.

    That is in seconds since the epoch.
    """

    pid: int
    created: float

    @classmethod
    def of(cls, pid: int) -> Self:
        """The identity of a running process; NoSuchProcess if there is none of that number."""
        return cls(pid, psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) <= _CLOCK_TOLERANCE
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def end(identities: Iterable[ProcessIdentity], grace: float) -> None:
    """Ask processes to end, wait for so many seconds, and kill those that are left.

    Those that have ended already are no error.
    """
    running = [process for identity in identities if (process := identity.find())]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in running:
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        _, running = psutil.wait_procs(running, timeout=grace)
        if not running:
            return


def end_group(process: subprocess.Popen[bytes], grace: float = 10) -> None:
    """End a process that leads a process group, and all of its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def start_child(
    command: Sequence[str],
    number: signal.Signals,
    **options: Any,  # noqa: ANN401  # whatever Popen takes
) -> subprocess.Popen[bytes]:
    """Start a process that gets a signal when this one ends, as `dies_with_parent`; with options of Popen.

    Ctrl-C and SIGTERM are held back until it runs. Python calls hooks after a fork, and loses what a signal
    raises in them: the Ctrl-C would have no effect.
    """
    request = dies_with_parent(number)
    if request is None:
        return subprocess.Popen(command, **options)  # without a `preexec_fn` no hooks are called
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        request()

    try:
        return subprocess.Popen(command, preexec_fn=prepare, **options)  # noqa: PLW1509 (only system calls)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def dies_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """A `preexec_fn` that has the kernel send a signal to the child when this process ends.

    Only Linux can; elsewhere None, and what a killed parent leaves is found by its identity.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up before the fork: no lock may be taken after it
    parent = os.getpid()

    def request() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the request was in place
            os.kill(os.getpid(), number)

    return request

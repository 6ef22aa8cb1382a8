"""The controllers under test: each behind a fault proxy of its own, and started again when it ends."""

import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp

from admitter.names import NAMESPACE, SERVICE_ACCOUNT
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.processes import dies_with_parent
from tests.faults.keeper import ROOT
from tests.faults.proxy import FaultProxy
from tests.faults.replica import jump

PAUSE_SECONDS: Final = 0.5
"""After its end a controller is started again."""
PROBE_SECONDS: Final = 1.0
FIRST_LINES: Final = 4096
LEADER: Final = "leader"
LOOKS: Final = 300
LOOK_SECONDS: Final = 0.1


class Replica:
    """One controller.

    Attributes:
        proxy: through which it reaches the API server; None if it does so directly.
        starts: how often it was started.
    """

    def __init__(self, proxy: FaultProxy | None, kubeconfig: Path, folder: Path) -> None:
        self.proxy = proxy
        self.starts = 0
        self._clock = folder / "clock"
        self._log = folder / "log"
        self._kubeconfig = kubeconfig
        self._process: asyncio.subprocess.Process | None = None
        self._logged = 0
        jump(self._clock, 0.0)

    async def keep(self) -> None:
        """Keep it running until cancelled."""
        command = [sys.executable, "-m", "tests.faults.replica", str(self._clock), "run"]
        command += ["--bind=127.0.0.1:0", f"--kubeconfig={self._kubeconfig}"]
        while True:
            with self._log.open("ab") as log:
                self._logged = log.tell()
                self._process = await asyncio.create_subprocess_exec(
                    *command, stderr=log, cwd=ROOT, preexec_fn=dies_with_parent(signal.SIGKILL)
                )
            self.starts += 1
            try:
                await self._process.wait()
            except asyncio.CancelledError:
                self.signal(signal.SIGKILL)
                await self._process.wait()
                raise
            await asyncio.sleep(PAUSE_SECONDS)

    async def role(self) -> str:
        """What it says that it is; empty if it does not answer."""
        with self._log.open("rb") as log:
            log.seek(self._logged)
            found = re.search(rb'"probes":"([0-9.:]+)"', log.read(FIRST_LINES))
        if found is None:
            return ""
        timeout = aiohttp.ClientTimeout(total=PROBE_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://{found[1].decode()}/readyz") as answer,
            ):
                return (await answer.text()).strip()
        except (aiohttp.ClientError, TimeoutError):
            return ""

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal; none that has ended already."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def jump(self, seconds: float) -> None:
        """Make its clock wrong by so many seconds."""
        jump(self._clock, seconds)

    @property
    def log(self) -> str:
        """All that it has logged."""
        return self._log.read_text()


async def leader(among: list[Replica]) -> Replica | None:
    """The replica that says it leads; None if none does, since it is paused, or there is none just now."""
    roles = await asyncio.gather(*(replica.role() for replica in among))
    return next((replica for replica, role in zip(among, roles, strict=True) if role == LEADER), None)


async def awaited_leader(among: list[Replica]) -> Replica | None:
    """The leader, as soon as there is one; None if there is none for too long."""
    for _ in range(LOOKS):
        found = await leader(among)
        if found is not None:
            return found
        await asyncio.sleep(LOOK_SECONDS)
    return None


async def kill_leader(among: list[Replica], take_overs: list[float]) -> bool:
    """Kill the leader.

    Args:
        among: the controllers.
        take_overs: gets the seconds until a replica leads again.

    Returns:
        Whether a replica led.
    """
    replica = await awaited_leader(among)
    if replica is None:
        return False
    replica.signal(signal.SIGKILL)
    began = time.monotonic()
    if await awaited_leader(among) is not None:
        take_overs.append(time.monotonic() - began)
    return True


@asynccontextmanager
async def replicas(
    plane: ControlPlane, folder: Path, number: int, seed: int, *, direct: bool = False
) -> AsyncIterator[list[Replica]]:
    """So many controllers, until the end of the block.

    Args:
        plane: with Admitter installed.
        folder: for logs and the like.
        number: how many.
        seed: of chance.
        direct: whether they reach the API server without a proxy.
    """
    account = await asyncio.to_thread(
        plane.service_account_kubeconfig, NAMESPACE, SERVICE_ACCOUNT, folder / "account"
    )
    async with AsyncExitStack() as stack:
        made = []
        for index in range(number):
            own = folder / f"replica-{index}"
            own.mkdir()
            if direct:
                made.append(Replica(None, account, own))
                continue
            proxy = stack.enter_context(FaultProxy(plane, own / "certificates", seed + index))
            made.append(Replica(proxy, proxy.kubeconfig(account, own / "kubeconfig"), own))
        keepers = [asyncio.create_task(replica.keep()) for replica in made]
        try:
            yield made
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

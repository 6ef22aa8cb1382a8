"""Makes things go wrong, as a plan says."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final, Protocol

import psutil

from admitter.sandbox.control_plane import ControlPlane
from tests.faults import administrator, rules
from tests.faults.administrator import Administrator
from tests.faults.api import RefusedError
from tests.faults.keeper import SERVER, component
from tests.faults.plan import Fault
from tests.faults.proxy import FaultProxy
from tests.faults.replicas import Replica, awaited_leader, kill_leader
from tests.faults.rules import EveryNth, Rule
from tests.faults.streams import Streams

Json = dict[str, Any]


class Change(Protocol):
    """Changes what happens to watches, or changes it back."""

    def __call__(self, streams: Streams, *, begins: bool) -> None: ...


LATE_SECONDS: Final = 31.0
"""A little longer than the controller waits for an answer."""
LONGEST_JUMP_SECONDS: Final = 3600.0


@dataclass
class Chaos:
    """Carries faults out.

    Attributes:
        plane: the one with the API server and etcd that suffer.
        replicas: the controllers.
        administrator: edits and deletes.
        done: how many faults of each kind came about.
        missed: how many found nothing to harm.
        take_overs: how long no replica led after the leader was killed, in seconds.
        server_starts: when the API server was started again, in seconds.
    """

    plane: ControlPlane
    replicas: list[Replica]
    administrator: Administrator
    done: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    take_overs: list[float] = field(default_factory=list)
    server_starts: list[float] = field(default_factory=list)
    _killing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, faults: tuple[Fault, ...]) -> None:
        """Carry out faults at their times; return when the last one is over and all is well again."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.TaskGroup() as group:
                for fault in faults:
                    await asyncio.sleep(max(0.0, began + fault.at - loop.time()))
                    group.create_task(self._carry_out(fault), name=fault.kind)
        finally:
            self._heal()

    def _heal(self) -> None:
        """Whatever was broken off works again."""
        for proxy in self._proxies:
            proxy.rules = ()
        for replica in self.replicas:
            replica.signal(signal.SIGCONT)
            replica.jump(0.0)

    async def _carry_out(self, fault: Fault) -> None:
        random = Random(fault.seed)
        try:
            happened = await self._act(fault, random)
        except (RefusedError, psutil.NoSuchProcess):  # another fault has been there before
            happened = False
        (self.done if happened is not False else self.missed)[fault.kind] += 1

    async def _act(self, fault: Fault, random: Random) -> bool | None:
        if fault.kind in _CALLS:
            await self._with_rule(_CALLS[fault.kind](random), fault.seconds)
            return True
        if fault.kind in _WATCHES:
            await self._with_streams(_WATCHES[fault.kind], fault.seconds)
            return True
        acts: dict[str, Callable[[], Awaitable[bool | None]]] = {
            "leader killed": lambda: self._kill(leads=True),
            "follower killed": lambda: self._kill(leads=False),
            "leader paused": lambda: self._pause(fault.seconds, leads=True),
            "follower paused": lambda: self._pause(fault.seconds, leads=False),
            "clock jumped": lambda: self._jump(fault.seconds, random),
            "API server killed": lambda: self._restart_server(fault.seconds),
            "etcd stalled": lambda: self._stall(fault.seconds),
        }
        act = acts.get(fault.kind)
        if act is not None:
            return await act()
        return await administrator.ACTS[fault.kind](self.administrator, fault.seconds, random)

    async def _who(self, *, leads: bool) -> Replica | None:
        """A replica that leads, or one that does not; None if none leads for too long."""
        found = await awaited_leader(self.replicas)
        return found if leads or found is None else next((r for r in self.replicas if r is not found), None)

    async def _kill(self, *, leads: bool) -> bool:
        async with self._killing:  # the next one to be killed leads by then
            if leads:
                return await kill_leader(self.replicas, self.take_overs)
            replica = await self._who(leads=False)
            if replica is None:
                return False
            replica.signal(signal.SIGKILL)
        return True

    async def _pause(self, seconds: float, *, leads: bool) -> bool:
        replica = await self._who(leads=leads)
        if replica is None:
            return False
        replica.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        replica.signal(signal.SIGCONT)
        return True

    async def _jump(self, seconds: float, random: Random) -> None:
        wrong = random.uniform(-LONGEST_JUMP_SECONDS, LONGEST_JUMP_SECONDS)
        for replica in self.replicas:
            replica.jump(wrong)
        await asyncio.sleep(seconds)
        for replica in self.replicas:
            replica.jump(0.0)

    async def _restart_server(self, seconds: float) -> None:
        server = component(self.plane, SERVER)
        keeper = server.parent()
        assert keeper is not None
        keeper.suspend()
        server.kill()
        await asyncio.sleep(seconds)
        self.server_starts.append(time.monotonic())
        keeper.resume()

    async def _stall(self, seconds: float) -> None:
        etcd = component(self.plane, "etcd")
        etcd.suspend()
        await asyncio.sleep(seconds)
        etcd.resume()

    @property
    def _proxies(self) -> list[FaultProxy]:
        return [replica.proxy for replica in self.replicas if replica.proxy is not None]

    async def _with_rule(self, rule: Rule, seconds: float) -> None:
        for proxy in self._proxies:
            proxy.rules += (rule,)
        await asyncio.sleep(seconds)
        for proxy in self._proxies:
            proxy.rules = tuple(r for r in proxy.rules if r is not rule)

    async def _with_streams(self, change: Change, seconds: float) -> None:
        for proxy in self._proxies:
            proxy.act(partial(change, begins=True))
        await asyncio.sleep(seconds)
        for proxy in self._proxies:
            proxy.act(partial(change, begins=False))


def _cut(streams: Streams, *, begins: bool) -> None:
    if begins:
        streams.cut()


def _silent(streams: Streams, *, begins: bool) -> None:
    streams.silence(silent=begins)


def _gone(streams: Streams, *, begins: bool) -> None:
    streams.gone = begins


def _without_bookmarks(streams: Streams, *, begins: bool) -> None:
    streams.bookmarks = not begins


_WATCHES: Final[dict[str, Change]] = {
    "watches cut": _cut,
    "watches silent": _silent,
    "watches gone": _gone,
    "bookmarks missing": _without_bookmarks,
}


def _starts(call: rules.Call) -> bool:
    return call.writes and call.kind == "job"


_CALLS: Final[dict[str, Callable[[Random], Rule]]] = {
    "conflicts": lambda random: Rule("409", rules.refused(409, "Conflict"), EveryNth(random.randint(2, 5))),
    "server errors": lambda random: Rule(
        "500", rules.refused(500, "InternalError"), EveryNth(random.randint(2, 5))
    ),
    "throttled": lambda random: Rule(
        "429", rules.throttled(random.choice((1, None))), chance=random.uniform(0.2, 0.8)
    ),
    "slow": lambda random: Rule("slow", rules.slow(0.05, random.uniform(0.2, 1.5)), chance=0.7),
    "truncated": lambda random: Rule(
        "truncated", rules.truncated, lambda call: not call.watches, chance=random.uniform(0.1, 0.4)
    ),
    "answers lost": lambda random: Rule("answer lost", rules.cut_after, chance=random.uniform(0.1, 0.5)),
    "calls lost": lambda random: Rule("call lost", rules.cut_before, chance=random.uniform(0.1, 0.5)),
    "calls late": lambda _random: Rule("late", rules.late(LATE_SECONDS), _starts, chance=0.2),
}

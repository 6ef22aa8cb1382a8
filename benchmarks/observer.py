"""An independent observer: it watches Workloads, and adds up what is admitted with code of its own."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from admitter.client.transport import Transport
from benchmarks.watch import events, newest
from tests.cluster.auditor import Books, Use

WORKLOADS: Final = "/apis/admitter.dev/v1alpha1/workloads"


class Observer:
    """Keeps the books of several groups of namespaces, each with limits of its own.

    Attributes:
        books: of each group.
        preemptions: how often a Workload was preempted.
        use: what all hold together, from when on: pairs of a moment (`time.monotonic`) and an amount.
    """

    def __init__(self, transport: Transport, limits: Mapping[str, Mapping[Use, float]]) -> None:
        self.books = {group: Books(of_group) for group, of_group in limits.items()}
        self.use: list[tuple[float, float]] = []
        self.preemptions = 0
        self._transport = transport
        self._preempted: set[tuple[str, str]] = set()
        self._group_of: dict[str, str] = {}

    def follow(self, namespace: str, group: str) -> None:
        """Count what is in a namespace as a group's."""
        self._group_of[namespace] = group

    @property
    def excesses(self) -> list[str]:
        """Every moment at which a limit was passed, in words."""
        return [f"{group}: {words}" for group, books in self.books.items() for words in books.excesses]

    @property
    def admissions(self) -> Counter[str]:
        """How often each Workload was admitted."""
        return sum((books.admissions for books in self.books.values()), Counter())

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look at every event, until the end of the block."""
        version = await newest(self._transport, WORKLOADS)
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch(version))
            yield
            watch.cancel()

    async def _watch(self, version: str) -> None:
        async for kind, workload in events(self._transport, WORKLOADS, version):
            self._see(kind, workload)

    def _see(self, kind: str, workload: dict[str, Any]) -> None:
        group = self._group_of.get(workload["metadata"]["namespace"])
        if group is None:
            return
        self.books[group].take(kind, workload)
        self._count_preemption(workload)
        used = sum(sum(books.total.values()) for books in self.books.values())
        if not self.use or self.use[-1][1] != used:
            self.use.append((time.monotonic(), used))

    def _count_preemption(self, workload: dict[str, Any]) -> None:
        key = (workload["metadata"]["namespace"], workload["metadata"]["name"])
        conditions = workload.get("status", {}).get("conditions", ())
        if any(c["type"] == "Preempted" and c["status"] == "True" for c in conditions):
            self.preemptions += key not in self._preempted
            self._preempted.add(key)
        else:
            self._preempted.discard(key)

"""People that create things at their times; what runs them sees that one may run, and ends it in time."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from admitter.client.transport import Transport
from benchmarks.watch import events, newest

Json = dict[str, Any]

AT_A_TIME: Final = 64
PATIENCE_SECONDS: Final = 60.0


class StandstillError(Exception):
    """Nothing ends any more."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that a user will create.

    Attributes:
        at: when, in seconds since the start.
        namespace: where.
        name: its name.
        kind: what it counts as in the results.
        cpu: its request.
        runs: for how long it runs, in seconds.
        priority_class: its PriorityClass.
    """

    at: float
    namespace: str
    name: str
    kind: str
    cpu: int
    runs: float
    priority_class: str


@dataclass(slots=True)
class Course:
    """What became of it; times are in seconds since the start, None for what has not happened."""

    task: Task
    created: float | None = None
    started: float | None = None
    completed: float | None = None
    evictions: int = 0
    suspended: bool = True
    timer: asyncio.TimerHandle | None = None
    told: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something is said of it: one thing after the other, in the order in which they happened."""
    starts: list[float] = field(default_factory=list)
    """All that there were: one that is evicted starts again."""

    @property
    def first_started(self) -> float | None:
        """When it first started."""
        return self.starts[0] if self.starts else None


@dataclass
class Crowd(ABC):
    """Creates on schedule, runs what may run, and ends it.

    Attributes:
        collection: the path of what is created, in all namespaces.
        transport: to the API server.
        outcomes: what became of each one, by namespace and name.
        changed: called after something happened to one.
    """

    collection: ClassVar[str]

    transport: Transport
    outcomes: dict[tuple[str, str], Course] = field(default_factory=dict)
    changed: Callable[[Course], None] = lambda _course: None
    began: float = field(default_factory=time.monotonic)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))
    _group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _left: int = 0
    _all_done: asyncio.Event = field(default_factory=asyncio.Event)

    @abstractmethod
    def waits(self, seen: Json) -> bool:
        """Whether what is seen may not run."""

    @abstractmethod
    async def make(self, task: Task) -> None:
        """Create one."""

    @abstractmethod
    async def begin(self, course: Course) -> None:
        """Say that one has begun that may run."""

    @abstractmethod
    async def stop(self, course: Course) -> None:
        """Say that one has stopped that may not run any more."""

    @abstractmethod
    async def end(self, course: Course) -> None:
        """Say that one is over."""

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """See what happens, until the end of the block."""
        version = await newest(self.transport, self.collection)
        async with asyncio.TaskGroup() as self._group:
            watch = self._group.create_task(self._watch(version))
            yield
            watch.cancel()

    async def run(self, tasks: Iterable[Task]) -> None:
        """Create all at their times, and wait until the last one is over.

        Raises:
            StandstillError: none has ended for a while.
        """
        due = sorted(tasks, key=lambda task: (task.at, task.namespace, task.name))
        self._left += len(due)
        self._all_done.clear()
        self.began = time.monotonic()
        for task in due:
            await asyncio.sleep(max(0.0, task.at - self.now()))
            self._group.create_task(self.create(task))
        while self._left:
            left = self._left
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_done.wait(), PATIENCE_SECONDS)
            if left == self._left:
                raise StandstillError(f"{left} are left, and none ended for {PATIENCE_SECONDS:.0f} s")

    async def create(self, task: Task) -> None:
        """Create one, when one of those under way has been created."""
        course = self.outcomes[task.namespace, task.name] = Course(task)
        async with self._slots:
            course.created = self.now()
            await self.make(task)
        self.changed(course)

    def complete(self, course: Course) -> None:
        """Let one that runs come to its end."""
        if course.timer is not None:
            course.timer.cancel()
        course.completed = self.now()
        self._tell(course, self._ended)
        self.changed(course)

    def _tell(self, course: Course, words: Callable[[Course], Coroutine[None, None, None]]) -> None:
        self._group.create_task(self._told(course, words))

    async def _told(self, course: Course, words: Callable[[Course], Coroutine[None, None, None]]) -> None:
        async with course.told:
            await words(course)

    async def _ended(self, course: Course) -> None:
        await self.end(course)
        self._left -= 1
        if not self._left:
            self._all_done.set()

    async def _watch(self, version: str) -> None:
        async for _, seen in events(self.transport, self.collection, version):
            self._see(seen)

    def _see(self, seen: Json) -> None:
        """One runs from when it may, and stops at once when it may not any more."""
        course = self.outcomes.get((seen["metadata"]["namespace"], seen["metadata"]["name"]))
        if course is None or course.completed is not None:
            return
        waits = self.waits(seen)
        if waits == course.suspended:
            return
        course.suspended = waits
        if waits:
            course.evictions += 1
            course.started = None
            if course.timer is not None:
                course.timer.cancel()
            self._tell(course, self.stop)
        else:
            course.started = self.now()
            course.starts.append(course.started)
            loop = asyncio.get_running_loop()
            course.timer = loop.call_later(course.task.runs, self.complete, course)
            self._tell(course, self.begin)
        self.changed(course)

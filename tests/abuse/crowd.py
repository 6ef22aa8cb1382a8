"""Tenants carry out their operations side by side, each with a token of its own."""

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from tests.abuse.operations import (
    ANY,
    COPY,
    UPDATE,
    Operation,
    Pause,
    Reference,
    copied,
    merged,
    path,
    references,
    resolved,
)
from tests.abuse.plan import Course

Json = dict[str, Any]

CALL_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.4
REMEMBERED: Final = 3000
"""So many operations of each namespace are kept for the reader that asks what led to a finding."""
LOST: Final = 0
"""Stands for the status of an operation that got no answer."""
EXPERIMENT: Final = "experiment."
"""How references to Experiments start."""
QUEUED: Final = "queued."
"""How those to queued pods start."""
FEW: Final = "30"
"""Of so many objects of a namespace one is drawn where it may be any."""
MESSAGE: Final = 160


@dataclass(frozen=True, slots=True)
class Done:
    """An operation that was carried out.

    Attributes:
        number: how many were carried out before.
        at: when, in seconds since the start of the crowd.
        tenant: the tenant that did it.
        operation: what.
        path: what its path meant.
        status: of the answer, or `LOST`.
        said: why it was refused.
    """

    number: int
    at: float
    tenant: str
    operation: Operation
    path: str
    status: int
    said: str

    def __str__(self) -> str:
        operation, said = self.operation, f" {self.said}" if self.said else ""
        options = "&".join(f"{key}={value}" for key, value in operation.query)
        return (
            f"{self.at:7.2f} s {self.tenant} {operation.method} {self.path} {options} {operation.content} "
            f"{operation.body} -> {self.status}{said} ({operation.theme or 'by itself'})"
        )


@dataclass
class Crowd:
    """All tenants.

    Attributes:
        server: the URL of the API server.
        ssl: by what it is trusted.
        rate: how many operations a second all of them make together at the most.
        done: how many operations have been carried out.
        answers: how many got each status; `LOST` for none.
        refusals: why, for how many of those with a status that means so.
    """

    server: str
    ssl: Any
    rate: float
    done: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _last: dict[str, deque[Done]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=REMEMBERED))
    )

    async def run(self, courses: Iterable[tuple[Course, str]]) -> None:
        """Carry out operations of tenants, each with its token; returns when the last one is over."""
        began, chosen = asyncio.get_running_loop().time(), list(courses)
        every = len(chosen) / self.rate
        connector = aiohttp.TCPConnector(limit=0, ssl=self.ssl)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            for course, token in chosen:
                user = User(session, self.server, token, course.tenant.ground.namespace)
                group.create_task(self._carry_out(course, user, began, every))

    async def _carry_out(self, course: Course, user: "User", began: float, every: float) -> None:
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        for step in course.steps:
            if isinstance(step, Pause):
                await user.wait(step)
                continue
            await asyncio.sleep(max(0.0, next_at - loop.time()))
            next_at = max(next_at + every, loop.time() - every)
            where, status, said = await user.ask(step)
            self.done += 1
            self._moved.set()
            self.answers[status] += 1
            if status >= 400:
                self.refusals[f"{status} {said[:60]}"] += 1
            done = Done(self.done, loop.time() - began, course.tenant.name, step, where, status, said)
            self._last[course.tenant.ground.namespace].append(done)

    async def reached(self, number: int) -> None:
        """Wait until so many operations have been carried out."""
        while self.done < number:
            self._moved.clear()
            await self._moved.wait()

    def trail(self, jobs: Iterable[str], most: int) -> list[str]:
        """The last operations about some Jobs, given by namespace and name, and further words."""
        wanted = sorted({job.split(" ")[0] for job in jobs})
        found = {
            done.number: done
            for namespace, _, name in (job.partition("/") for job in wanted)
            for done in self._last[namespace]
            if done.operation.sweeps or name in done.operation.jobs or f"/{name}-" in done.path
        }
        return [str(found[number]) for number in sorted(found)[-most:]]


class User:
    """A tenant at the API server."""

    def __init__(self, session: aiohttp.ClientSession, server: str, token: str, namespace: str) -> None:
        self._session = session
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"}
        self._namespace = namespace
        self._known: dict[str, str] = {}

    async def ask(self, operation: Operation) -> tuple[str, int, str]:
        """Carry out an operation.

        Returns:
            What its path meant, the status of the answer (`LOST` for none), and why it was refused.
        """
        try:
            for text, reference in references(operation.path + operation.body).items():
                found = await self._look_up(reference)
                if found:
                    self._known[text] = found
            where = resolved(operation.path, self._known)
            status, answer = await self._send(operation, where)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return operation.path, LOST, repr(error)
        return where, status, str(answer.get("message", ""))[:MESSAGE] if status >= 400 else ""

    async def wait(self, pause: Pause) -> None:
        """Wait for what a pause says, or for its time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + pause.seconds
        while loop.time() < end:
            try:
                if await self._is(pause):
                    return
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass  # a server that is away for a moment: the next look tells
            await asyncio.sleep(LOOK_SECONDS)

    async def _send(self, operation: Operation, where: str) -> tuple[int, Json]:
        body, content = resolved(operation.body, self._known), operation.content
        if content in {COPY, UPDATE}:
            status, found = await self._call("GET", where)
            if status != 200:
                return status, found
            made = (copied if content == COPY else merged)(found, json.loads(body))
            where = where.rpartition("/")[0] if content == COPY else where
            body, content = json.dumps(made), "application/json"
        return await self._call(operation.method, where, body, content, dict(operation.query))

    async def _call(
        self, method: str, where: str, body: str = "", content: str = "", query: dict[str, str] | None = None
    ) -> tuple[int, Json]:
        async with self._session.request(
            method,
            self._server + where,
            data=body or None,
            params=query,
            headers=self._headers | ({"Content-Type": content} if body else {}),
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS),
        ) as response:
            answer = await response.read()
        try:
            return response.status, dict(orjson.loads(answer))
        except orjson.JSONDecodeError:  # a server that has too much to do says so in plain text
            return response.status, {"message": answer.decode(errors="replace")}

    async def _items(self, kind: str, **query: str) -> list[Json]:
        _, found = await self._call("GET", path(self._namespace, kind), query=query)
        return list(found.get("items") or ())

    def _place(self, job: str) -> str:
        """Where a Job is, or an Experiment."""
        kind = "experiments" if job.startswith(EXPERIMENT) else "jobs"
        return path(self._namespace, kind, job.removeprefix(EXPERIMENT))

    async def _pods(self, job: str) -> list[Json]:
        if job.startswith(EXPERIMENT):
            named = f"{job.removeprefix(EXPERIMENT)}-"
            return [each for each in await self._items("pods") if each["metadata"]["name"].startswith(named)]
        selector = {"limit": FEW} if job == ANY else {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        return await self._items("pods", **selector)

    async def _look_up(self, reference: Reference) -> str:
        """What a reference means now; empty if it means nothing."""
        if reference.kind == "uid":
            _, job = await self._call("GET", self._place(reference.job))
            return str(job.get("metadata", {}).get("uid", ""))
        if reference.kind == "pod":
            names = sorted(pod["metadata"]["name"] for pod in await self._pods(reference.job))
            return names[reference.index % len(names)] if names else ""
        found = [
            (each["metadata"]["creationTimestamp"], each["metadata"]["name"])
            for each in await self._items("workloads")
            if reference.job == ANY or each["metadata"]["name"].startswith(_made_for(reference.job))
        ]
        if reference.job == ANY:
            return found[reference.index % len(found)][1] if found else ""
        return max(found)[1] if found else ""

    async def _is(self, pause: Pause) -> bool:
        if pause.until == "gone":
            return (await self._call("GET", self._place(pause.job)))[0] == 404
        return any(pod.get("status", {}).get("phase") == "Running" for pod in await self._pods(pause.job))


def _made_for(job: str) -> str:
    """How the names of Workloads of a Job start, of an Experiment, or of a queued pod."""
    for prefix, kind in ((EXPERIMENT, "experiment"), (QUEUED, "pod")):
        if job.startswith(prefix):
            return f"{kind}-{job.removeprefix(prefix)}-"
    return f"job-{job}-"

"""What goes on beside objects that are changed: Jobs in order, and answers about them.

`python -m tests.abuse.neighbours KUBECONFIG` creates Jobs until its input ends, and prints for how long each
waited. It is a process of its own: one that changes objects meanwhile would see them start late.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.abuse.waiting import until
from tests.cluster.objects import ON_DEMAND, cluster_queue, job, local_queue, resource_flavor
from tests.cluster.pages import Web
from tests.faults.api import BATCH, CORE, OWN, Api, RefusedError

Json = dict[str, Any]

NAMESPACE: Final = "sound"
EVERY_SECONDS: Final = 1.0
"""Between two sound Jobs."""
GONE_SECONDS: Final = 20
"""After its end a sound Job is deleted."""
ASK_SECONDS: Final = 10.0
"""Between two rounds of questions."""
ENDS_SECONDS: Final = 60.0
"""In which the last sound Job starts, on a machine with other things to do."""
WATCH_SECONDS: Final = 3_600
_STABLE: Final = ("namespace", "name", "state", "queue", "position", "reason", "never")
"""What of an explanation is the same at any moment."""


@dataclass
class Answers:
    """How questions about sound Jobs were answered.

    Attributes:
        asked: how many there were, by what was asked.
        wrong: the answers that were not as they had to be, in words.
    """

    asked: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, *, right: bool, told: object) -> None:
        """Count an answer."""
        self.asked[what] = self.asked.get(what, 0) + 1
        if not right:
            self.wrong.append(f"{what}: {str(told)[:500]}")


class Starts:
    """How long sound Jobs wait from their creation to their start, as an observer of the API server sees it.

    Attributes:
        waits: seconds by the name of each Job that has started.
    """

    def __init__(self, api: Api) -> None:
        self.waits: dict[str, float] = {}
        self._api = api
        self._created: dict[str, float] = {}
        self._more = asyncio.Event()

    async def create(self, over: asyncio.Event) -> None:
        """Create Jobs one after the other until it is over."""
        number = 0
        while not over.is_set():
            name = f"work-{number}"
            self._created[name] = time.monotonic()
            made = job(NAMESPACE, name, ttlSecondsAfterFinished=GONE_SECONDS)
            await self._api.create(f"{BATCH}/namespaces/{NAMESPACE}/jobs", made)
            number += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), EVERY_SECONDS)

    async def watch(self) -> None:
        """Note when Jobs start, until cancelled."""
        path, version = f"{BATCH}/namespaces/{NAMESPACE}/jobs", "0"
        while True:
            with suppress(RefusedError):
                async for event in self._api.watch(path, version, WATCH_SECONDS):
                    if event["type"] != "BOOKMARK":
                        self._note(event["object"])

    def _note(self, found: Json) -> None:
        name, started = found["metadata"]["name"], not found["spec"].get("suspend")
        if started and name in self._created and name not in self.waits:
            self.waits[name] = time.monotonic() - self._created[name]
            self._more.set()

    async def all_started(self) -> list[str]:
        """Wait for the start of all Jobs that were created; returns those that do not start in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDS_SECONDS):
                while self._created.keys() - self.waits.keys():
                    self._more.clear()
                    await self._more.wait()
        return sorted(self._created.keys() - self.waits.keys())


async def _observe(kubeconfig: Path) -> Json:
    """How long each Job waited that was created until the input has ended, and those that did not start."""
    async with Api(kubeconfig) as api, asyncio.TaskGroup() as group:
        starts, over = Starts(api), asyncio.Event()
        watching = group.create_task(starts.watch())
        creating = group.create_task(starts.create(over))
        await asyncio.to_thread(sys.stdin.read)
        over.set()
        await creating
        unstarted = await starts.all_started()
        watching.cancel()
    return {"waits": sorted(starts.waits.values()), "unstarted": unstarted}


@asynccontextmanager
async def observed(kubeconfig: Path) -> AsyncIterator[Json]:
    """Create Jobs for as long as a block lasts; afterwards what it got has how long they waited."""
    found: Json = {}
    command = [sys.executable, "-m", "tests.abuse.neighbours", str(kubeconfig)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield found
        out, _ = await process.communicate(b"")  # ends its input
        found |= json.loads(out)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def build(api: Api) -> None:
    """Make the namespace of sound Jobs, its queues, one Job that runs for ever and one that waits for it."""
    await api.create(f"{CORE}/namespaces", {"metadata": {"name": NAMESPACE}})
    await api.create(f"{OWN}/resourceflavors", resource_flavor(NAMESPACE, ON_DEMAND))
    for name, cpu in (("main", "20"), ("narrow", "1")):
        queue = f"{NAMESPACE}-{name}"
        await api.create(f"{OWN}/clusterqueues", cluster_queue(queue, {"cpu": {NAMESPACE: cpu}}))
        made = local_queue(NAMESPACE, queue, name)
        await api.create(f"{OWN}/namespaces/{NAMESPACE}/localqueues", made)
    for name in ("holder", "waits"):
        made = job(NAMESPACE, name, queue="narrow", seconds=None)
        await api.create(f"{BATCH}/namespaces/{NAMESPACE}/jobs", made)
        await _started(api, "holder")


async def _started(api: Api, name: str) -> None:
    """Wait until a Job has been started."""

    async def started() -> bool:
        return not (await api.get(f"{BATCH}/namespaces/{NAMESPACE}/jobs/{name}"))["spec"]["suspend"]

    assert await until(started, ENDS_SECONDS), f"Job {name} is not started"


def change(folder: Path) -> Path:
    """The file of a change that what-if is asked about: one more LocalQueue."""
    path = folder / "change.json"
    path.write_text(json.dumps(local_queue(NAMESPACE, f"{NAMESPACE}-narrow", "more")))
    return path


async def ask(web: Web, token: str, kubeconfig: Path, folder: Path, over: asyncio.Event) -> Answers:
    """Ask the page, explain and what-if about sound Jobs until it is over, at least once each."""
    answers = Answers()
    before = await _command(kubeconfig, "explain", "waits", f"--namespace={NAMESPACE}")
    answers.check("explain", right=_explains(before[1]), told=before)
    file = change(folder)
    while True:
        try:
            await asyncio.to_thread(_ask_page, web, token, answers)
        except OSError as error:
            answers.check("page", right=False, told=error)
        said = await _command(kubeconfig, "explain", "waits", f"--namespace={NAMESPACE}")
        same = said[0] == 0 and {k: said[1][k] for k in _STABLE} == {k: before[1][k] for k in _STABLE}
        answers.check("explain", right=same, told=said)
        played = await _command(kubeconfig, "what-if", f"--filename={file}")
        answers.check("what-if", right=played[0] == 0 and played[1]["starts"] == [], told=played)
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), ASK_SECONDS)
        if over.is_set():
            return answers


def _explains(answer: Json) -> bool:
    return (answer.get("state"), answer.get("reason")) == ("Pending", "InsufficientQuota")


async def _command(kubeconfig: Path, *arguments: str) -> tuple[int, Json]:
    """The exit status of a command and what it prints; its complaints if it fails."""
    command = [sys.executable, "-m", "admitter", *arguments, "--output=json", f"--kubeconfig={kubeconfig}"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        return process.returncode, {"complaint": err[-1_000:].decode(errors="replace")}
    return 0, json.loads(out)


def _ask_page(web: Web, token: str, answers: Answers) -> None:
    status, found = web.ask("/api/workloads", token, namespace=NAMESPACE)
    states = {row["name"]: row["state"] for row in found.get("rows", ())}
    right = status == 200 and (states.get("holder"), states.get("waits")) == ("Admitted", "Pending")
    answers.check("page of the namespace", right=right, told=(status, found))
    status, found = web.ask("/api/workload", token, namespace=NAMESPACE, name="waits")
    answers.check(
        "page of a Workload", right=status == 200 and "sound-narrow" in str(found), told=(status, found)
    )
    status, found = web.ask("/api/tree", token)
    lines = {line["name"]: line for line in found.get("lines", ())}
    narrow = lines.get(f"{NAMESPACE}-narrow", {})
    right = status == 200 and (narrow.get("waiting"), narrow.get("admitted")) == (1, 1)
    answers.check("page of all queues", right=right, told=(status, narrow or found))


@contextmanager
def page(kubeconfig: Path, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`admitter web` for as long as a block lasts; its address is in its log."""
    command = [sys.executable, "-m", "admitter", "web", "--bind", "127.0.0.1:0"]
    command.append(f"--kubeconfig={kubeconfig}")
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_observe(Path(sys.argv[1])))))

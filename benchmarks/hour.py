"""Whether live views stay as small as they are over an hour of updates, one a second: `make bench-hour`.

No cluster: Workloads come, are admitted, finish and go (`benchmarks.turnover`), as many as there are, and
the time of the hour is played, not waited for. Three parts, a process each, as what one leaves in memory is
not the next one's: `admitter top`; the server of `admitter web`, with one user that follows it and one a
round that passes by; the page in a browser (`benchmarks.lookers`). What each has in memory is measured
after a fifth of the rounds, half of them and all. The history of the console has a day behind it.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil
from playwright.async_api import Page as Tab

from admitter.insight.heap import one_heap
from admitter.policy.snapshot import Snapshot
from benchmarks.lookers import Served, at_the_server, at_the_terminal, in_a_browser
from benchmarks.server import commit, machine
from benchmarks.turnover import Turnover
from tests.web.pages import CHROMIUM, HOW

Json = dict[str, Any]
Note = Callable[[int, str, Json], None]
"""Takes down the round, the view and what it has in memory."""
RESULTS: Final = Path(__file__).parent / "results"
QUEUES: Final = 30
VISITS: Final = 100
MOST_GROWTH: Final = 0.05
"""From a fifth of the rounds to all of them; of what is in memory."""
UNITS: Final = {
    "resident_mb": "MB resident",
    "blocks": "blocks",
    "objects": "objects",
    "pictures": "pictures",
    "streams": "streams",
    "sessions": "sessions",
    "heap_mb": "MB of JavaScript heap, with compiled code",
    "data_mb": "MB of data in JavaScript",
    "nodes": "DOM nodes",
}
MEMORY: Final = ("resident_mb", "blocks", "objects", "data_mb", "nodes")
"""What may not grow. The heap of JavaScript has also what the browser keeps of its own, as compiled code."""
NO_DATA: Final = frozenset(("code", "native", "hidden", "synthetic"))
"""Types of nodes of a heap snapshot that are the browser's own."""


def held() -> Json:
    """What this process has in memory when garbage is collected: bytes, blocks of its allocator, objects."""
    gc.collect()
    objects = gc.get_objects()
    return {
        "resident_mb": round(psutil.Process().memory_info().rss / 1e6, 1),
        "blocks": sys.getallocatedblocks(),
        "objects": len(objects),
        "pictures": sum(isinstance(each, Snapshot) for each in objects),
    }


async def held_by(tab: Tab) -> Json:
    """What a page in the browser has in memory that is not garbage."""
    devtools = await tab.context.new_cdp_session(tab)
    await devtools.send("Performance.enable")
    await devtools.send("HeapProfiler.collectGarbage")
    found = {
        each["name"]: each["value"] for each in (await devtools.send("Performance.getMetrics"))["metrics"]
    }
    await devtools.detach()
    return {"heap_mb": round(found["JSHeapUsedSize"] / 1e6, 2), "nodes": int(found["Nodes"])}


async def data_of(tab: Tab) -> Json:
    """How much of that is the page's own: objects, arrays, texts and functions, by a heap snapshot."""
    devtools, chunks = await tab.context.new_cdp_session(tab), list[str]()
    devtools.on("HeapProfiler.addHeapSnapshotChunk", lambda event: chunks.append(event["chunk"]))
    await devtools.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
    await devtools.detach()
    found = json.loads("".join(chunks))
    meta, nodes = found["snapshot"]["meta"], found["nodes"]
    fields = meta["node_fields"]
    types = meta["node_types"][fields.index("type")]
    kinds, sizes = (nodes[fields.index(name) :: len(fields)] for name in ("type", "self_size"))
    own = sum(size for kind, size in zip(kinds, sizes, strict=True) if types[kind] not in NO_DATA)
    return {"data_mb": round(own / 1e6, 3)}


async def _top(turnover: Turnover, rounds: int, note: Note) -> None:
    async def done(number: int) -> None:
        if number in _marks(rounds):
            note(number, "admitter top", held())

    await at_the_terminal(turnover, rounds, done, VISITS)


async def _server(turnover: Turnover, rounds: int, note: Note) -> None:
    async def done(number: int, page: Served) -> None:
        if number in _marks(rounds):
            people = {"streams": page.streams(), "sessions": page.sessions()}
            note(number, "admitter web, the server", held() | people)

    await at_the_server(turnover, rounds, done)


async def _page(turnover: Turnover, rounds: int, note: Note) -> None:
    async def done(number: int, tabs: dict[str, Tab]) -> None:
        if number in _marks(rounds):
            for name, tab in tabs.items():
                note(number, f"admitter web, the page: {name}", await held_by(tab) | await data_of(tab))

    if CHROMIUM is None:
        sys.exit(HOW)
    await in_a_browser(turnover, rounds, CHROMIUM, done)


PARTS: Final[dict[str, Callable[[Turnover, int, Note], Coroutine[None, None, None]]]] = {
    "top": _top,
    "server": _server,
    "page": _page,
}


def _marks(rounds: int) -> tuple[int, ...]:
    return (rounds // 5, rounds // 2, rounds)


def measured(part: str, workloads: int, rounds: int) -> dict[str, list[Json]]:
    """What each view of a part had in memory, after a fifth of the rounds, half of them and all."""
    found: dict[str, list[Json]] = {}
    began = time.monotonic()

    def note(number: int, view: str, what: Json) -> None:
        found.setdefault(view, []).append({"round": number, **what})
        sys.stderr.write(f"{time.monotonic() - began:.0f} s, {view}, after {number} rounds: {what}\n")

    asyncio.run(PARTS[part](Turnover(QUEUES, workloads), rounds, note))
    return found


def growth(samples: list[Json]) -> dict[str, float]:
    """By how much of what it was each amount of memory has grown from the first sample to the last one."""
    first, last = samples[0], samples[-1]
    return {name: round(last[name] / first[name] - 1, 4) for name in MEMORY if name in first}


def table(found: Json) -> str:
    """A result for people."""
    rounds, of = found["rounds"], f"{found['workloads']:,} Workloads in {QUEUES} queues"
    command = (
        f"python -m benchmarks.hour --part {found['part']} --workloads {found['workloads']} --rounds {rounds}"
    )
    lines = [
        f"## {of}, {rounds:,} updates: {found['part']}",
        "",
        f"`{command}` at {found['at']}, commit {found['commit']}, on {found['machine']}.",
        "",
        "| view | what | " + " | ".join(f"after {n:,}" for n in _marks(rounds)) + " | growth |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for view, samples in found["views"].items():
        for name, unit in UNITS.items():
            if name in samples[0]:
                amounts = " | ".join(f"{sample[name]:,}" for sample in samples)
                grown = found["growth"][view].get(name)
                lines.append(f"| {view} | {unit} | {amounts} | {'' if grown is None else f'{grown:+.1%}'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, save, and fail if anything has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--workloads", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=3600)
    given = parser.parse_args()
    one_heap()  # as the commands do
    views = measured(given.part, given.workloads, given.rounds)
    found = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        **vars(given),
        "views": views,
        "growth": {view: growth(samples) for view, samples in views.items()},
    }
    path = RESULTS / f"hour-{given.part}-{given.workloads}.json"
    path.write_text(json.dumps(found, indent=2) + "\n")
    saved = [json.loads(each.read_text()) for each in sorted(RESULTS.glob("hour-*.json"))]
    text = "\n".join(["# An hour of updates\n", *(table(each) for each in saved)])
    (RESULTS / "hour.md").write_text(text)
    sys.stdout.write(table(found))
    grown = [view for view, parts in found["growth"].items() if max(parts.values()) > MOST_GROWTH]
    if grown:
        sys.exit(f"has grown by more than {MOST_GROWTH:.0%}: {', '.join(grown)}")


if __name__ == "__main__":
    main()

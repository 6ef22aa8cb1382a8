"""What each view of the console costs a browser: `make bench-console`.

For clusters of three sizes each view is opened in a browser that has nothing of it yet: what it loads, when
something is painted first, and when it shows the cluster. Then Workloads come, one after the other: how long
the main thread is busy at a time with what has changed, as on an idle machine. Saved in
benchmarks/results/console.json.
"""

import argparse
import asyncio
import json
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.async_api import Browser

from admitter.insight.forecast.deadline import Allowance
from benchmarks.server import setting
from tests.insight.states import State
from tests.web.looks import browser, comes, first_paint_ms, loading, logged_in, main_thread_ms, taken
from tests.web.pages import Served, served
from tests.web.scale import PLACES, big_cluster

Json = dict[str, Any]

RESULTS: Final = Path(__file__).parent / "results" / "console.json"
SIZES: Final = ((0, 0, 0), (30, 400, 200), (1000, 20_000, 2000))
"""Queues, Workloads, nodes."""
ESTIMATES: Final = Allowance(2.0)
OF_A_QUEUE: Final = {"queue", "workload"}
"""Views of something that an empty cluster has not."""


async def main() -> None:
    """Measure all views at all sizes."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--updates", type=int, default=5, help="how many changes come")
    updates = asked.parse_args().updates
    result = setting(f"make bench-console UPDATES={updates}")
    for queues, workloads, nodes in SIZES:
        state = big_cluster(queues, workloads, nodes) if queues else State()
        title = f"{queues} queues, {workloads} Workloads, {nodes} nodes"
        async with served(state, ESTIMATES) as page, browser() as opened:
            found = {}
            for view, address in PLACES.items():
                if queues or view not in OF_A_QUEUE:
                    place = address.format(waiting=f"job-{(workloads - 1) // max(queues, 1) * queues:05}")
                    found[view] = await _measured(opened, page, place, state, updates if queues else 0)
                    print(title, view, found[view], flush=True)
            result[title] = found
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


async def _measured(opened: Browser, page: Served, place: str, state: State, updates: int) -> Json:
    """One view: its first look, and then changes."""
    async with logged_in(opened, page) as tab, loading(tab) as loaded:
        await tab.goto("about:blank")
        await tab.goto(f"{page.address}/#/{place}")
        await taken(tab)
        found: Json = {
            "loaded_kb": {kind: round(size / 1000, 1) for kind, size in loaded.items()},
            "first_paint_ms": round(await first_paint_ms(tab)),
            "shown_ms": round(await tab.evaluate("performance.now()")),
        }
        if updates:
            tasks = [await main_thread_ms(tab, comes(tab, page, state)) for _ in range(updates)]
            found["update_longest_task_cpu_ms"] = {
                "median": round(median(tasks), 1),
                "most": round(max(tasks), 1),
            }
    return found


if __name__ == "__main__":
    asyncio.run(main())

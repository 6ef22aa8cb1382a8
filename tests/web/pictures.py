"""Makes the pictures of README.md and docs/web.md: `python -m tests.web.pictures`."""

import asyncio
from pathlib import Path

from playwright.async_api import FloatRect, Page, expect

from tests.insight.states import State, moment
from tests.web.test_browser import looking

IMAGES = Path(__file__).parents[2] / "docs" / "images"
GPU = "nvidia.com/gpu"
MARGIN = 20
"""Pixels below what is on a page."""


def research() -> State:
    """Three teams in a Cohort; vision borrows GPUs and has a line, speech lends, language uses its own."""
    state = State("a100", "t4")
    state.put("cohorts", "research", spec={})
    for team, large, small in (("vision", "8", "4"), ("speech", "8", "4"), ("language", "16", "0")):
        state.queue(team, {GPU: {"a100": {"min": large}, "t4": {"min": small}}}, "research")
        state.namespace(team, team)
    for number in range(5):  # by which the runtime of others is known
        _holds(
            state, "vision", f"past-{number}", "2", since=-9000 + 400 * number, finished=-6000 + 700 * number
        )
    for number in range(5):
        _holds(state, "vision", f"train-{number}", "2", since=-2400 + 300 * number)
    state.holds("vision", "label", {GPU: ("3", "t4")}, cluster_queue="vision", since=-1500)
    _holds(state, "speech", "decode", "4", since=-4000)
    _holds(state, "language", "pretrain", "14", since=-9000)
    for number, (name, gpus) in enumerate((("train-5", "8"), ("train-6", "8"), ("sweep", "6"))):
        _waits(state, name, gpus, -600 + 100 * number)
    return state


def _holds(
    state: State, team: str, name: str, gpus: str, *, since: float, finished: float | None = None
) -> None:
    state.holds(team, name, {GPU: (gpus, "a100")}, cluster_queue=team, since=since, finished=finished)


def _waits(state: State, name: str, gpus: str, created: float) -> None:
    pods = {"name": "main", "count": 1, "requests": {GPU: gpus}}
    metadata = {"creationTimestamp": moment(created)}
    spec = {"queueName": "main", "priority": 0, "podSets": [pods]}
    status = {"state": "Pending", "reason": "InsufficientQuota"}
    state.put("workloads", name, "vision", metadata=metadata, spec=spec, status=status)


async def take(tab: Page, name: str) -> None:
    """A picture of what is on the page, once nothing is being worked out any more."""
    await expect(tab.get_by_text("…")).to_have_count(0)
    below = await tab.evaluate(
        "document.querySelector('main').lastElementChild.getBoundingClientRect().bottom"
    )
    clip: FloatRect = {"x": 0, "y": 0, "width": 1100, "height": int(below) + MARGIN}
    await tab.screenshot(path=IMAGES / f"{name}.png", clip=clip, full_page=True)


async def main() -> None:
    """The tree, a queue and an explanation."""
    for scheme in ("light", "dark"):
        async with looking(research(), scheme=scheme) as (_, tab):
            link = tab.get_by_role("link", name="ClusterQueue vision")
            await expect(link).to_be_visible()
            await take(tab, f"web-tree-{scheme}")
            await link.click()
            await expect(tab.get_by_role("row", name="train-6")).to_be_visible()
            await take(tab, f"web-queue-{scheme}")
            await tab.get_by_role("link", name="train-6").click()
            await expect(tab.locator(".explanation")).to_contain_text("waits for")
            await take(tab, f"web-workload-{scheme}")


if __name__ == "__main__":
    asyncio.run(main())

"""Makes the pictures of docs/web.md: `python -m tests.web.pictures`."""

import asyncio
from pathlib import Path

from playwright.async_api import expect

from tests.web.pages import department
from tests.web.test_browser import looking

IMAGES = Path(__file__).parents[2] / "docs" / "images"


async def main() -> None:
    """The tree, a queue and an explanation."""
    for scheme in ("light", "dark"):
        async with looking(department(), scheme=scheme) as (_, tab):
            link = tab.get_by_role("link", name="ClusterQueue a")
            await expect(link).to_be_visible()
            await tab.screenshot(path=IMAGES / f"web-tree-{scheme}.png")
            await link.click()
            await expect(tab.get_by_role("row", name="train-1")).to_contain_text("in ")
            await tab.screenshot(path=IMAGES / f"web-queue-{scheme}.png")
            await tab.get_by_role("link", name="train-0").click()
            await expect(tab.locator(".explanation")).to_contain_text("waits for")
            await tab.screenshot(path=IMAGES / f"web-workload-{scheme}.png")


if __name__ == "__main__":
    asyncio.run(main())

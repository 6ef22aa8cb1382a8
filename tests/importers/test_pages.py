"""What the pages on moving in show side by side is what the command makes."""

import re
from pathlib import Path

import pytest
import yaml

from tests.importers.importing import imported

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    """The manifests that a page shows, theirs and ours in turn."""
    return re.findall(r"```yaml\n(.*?)```", (DOCS / f"{page}.md").read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("system", ["yunikorn", "volcano"])
def test_what_is_shown_of_ours_is_what_becomes_of_theirs(system: str) -> None:
    shown = blocks(f"coming-from-{system}")
    ours = [manifest for text in shown[1::2] for manifest in yaml.safe_load_all(text)]
    into = imported(system, *shown[::2])
    for manifest in into.manifests:
        assert manifest in ours
    assert len(ours) == len(into.manifests)

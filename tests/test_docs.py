"""What the documentation shows is true: manifests are valid, links lead somewhere."""

import re
from pathlib import Path

import pytest
import yaml

from admitter.api.base import problems
from admitter.api.kinds import KINDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN = {kind.__name__: kind for kind in KINDS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page(page: Path) -> None:
    text = page.read_text()
    for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL):
        for manifest in yaml.safe_load_all(block):
            kind = OWN.get(manifest.get("kind", ""))
            assert kind is None or problems(kind, manifest) == [], manifest
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), f"{page.name} links to {link}"

"""Pages and anchors that code, manifests, alerts and messages link to exist."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("admitter", "manifests", "deploy", "benchmarks")
LINK = re.compile(r"\bdocs/[\w/.-]+\.md(?:#([\w-]+))?")


def links() -> Iterator[tuple[str, str, str]]:
    """The file, the page that it names, and the anchor or nothing."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".yaml", ".json", ".md"}:
                for match in LINK.finditer(path.read_text()):
                    page, _, anchor = match[0].partition("#")
                    yield path.relative_to(ROOT).as_posix(), page, anchor


def anchors(page: Path) -> set[str]:
    """What can stand behind the page's name: its headings, and anchors that a renamed heading keeps."""
    text = page.read_text()
    kept = re.findall(r'<a id="([\w-]+)"></a>', text)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {*kept, *(re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings)}


def test_each_link_into_docs_leads_somewhere() -> None:
    found = set(links())
    assert len(found) > 30
    missing = [
        (file, page, anchor)
        for file, page, anchor in sorted(found)
        if not (ROOT / page).exists() or (anchor and anchor not in anchors(ROOT / page))
    ]
    assert missing == []

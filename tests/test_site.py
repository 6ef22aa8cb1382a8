"""The site of docs/: it builds strictly, links lead somewhere, and nothing is asked of another server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("use", "href"),
}
"""What a browser fetches without being asked to; other attributes are links that a reader may follow."""


class Page(HTMLParser):
    """The addresses on a page, the places that can be linked to, and its text outside of code."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.paragraphs: list[str] = []
        self._inside: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.add(value or "")
        if tag in {"p", "code"}:
            self._inside.append(tag)
            if tag == "p":
                self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside == ["p"]:
            self.paragraphs[-1] += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Its pages, by where they are."""
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_checkout_is_in_it(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    names = [Path(name) for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for source in (*sources, *names):
        built = source.with_name("index.html" if source.stem == "README" else f"{source.stem}.html")
        assert (site / built).exists(), source


def test_nothing_is_asked_of_another_server(site: Path, pages: dict[Path, Page]) -> None:
    assert [(path.name, each) for path, page in pages.items() for each in page.loaded if foreign(each)] == []
    for style in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", style.read_text())
        assert [each for each in addresses if foreign(each)] == [], style.name
    # The script of the theme fetches a renderer of diagrams and the stars of a repository, if there are such.
    marks = re.compile(r"class=\"[^\"]*\bmermaid\b|data-md-component=\"source\"")
    assert [path.name for path in pages if marks.search(path.read_text())] == []


def foreign(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in {"", "data"}


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert sorted(broken(site, pages)) == []


def broken(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Links within the site that lead to no file, or to no place of a page."""
    for path, page in pages.items():
        base = site if path.name == "404.html" else path.parent  # that one is shown anywhere
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if foreign(link) or parts.scheme:
                continue
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            places = pages[target].ids if target in pages else set()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in places):
                yield f"{path.name}: {link}"


def test_markdown_is_rendered(pages: dict[Path, Page]) -> None:
    """What one reader takes for a list, a table or code, the other takes too."""
    raw = re.compile(r"^\s*(- |\||```)|\*\*|\]\(")
    assert [
        (p.name, text[:60]) for p, page in pages.items() for text in page.paragraphs if raw.search(text)
    ] == []

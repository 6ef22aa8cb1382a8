"""What mkdocs asks while it builds the site: pages outside of docs/, and links between them and those inside.

Pages are written to be read in a checkout, where README.md links to docs/sharing.md and that to
../manifests/examples/sharing.yaml. In the site docs/ is the top: README.md stands beside sharing.md, and
files of the checkout that pages link to are in it under their paths.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages of the site that are not in docs/."""
_LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def in_checkout(page: str) -> str:
    """Where a page of the site is in the checkout."""
    return page if page in PAGES else f"docs/{page}"


def in_site(path: str) -> str:
    """Where a file of the checkout is in the site; of a folder, its README.md."""
    page = f"{path}/README.md" if (ROOT / path).is_dir() else path
    return page.removeprefix("docs/")


def targets(page: str, text: str) -> list[str]:
    """The files of the checkout that a page links to.

    Args:
        page: its place in the site.
        text: its Markdown.
    """
    links = _LINK.findall(_FENCE.sub("", text))
    return [normpath(join(dirname(in_checkout(page)), link)) for link in links]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/, and the files that pages link to."""
    for name in PAGES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for page in [file for file in files if file.is_documentation_page()]:
        for path in targets(page.src_uri, page.content_string):
            if (ROOT / path).is_file() and files.get_file_from_path(in_site(path)) is None:
                files.append(File.generated(config, in_site(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # mkdocs passes these by name
    """Links as they are in the site."""
    here = dirname(page.file.src_uri)
    checkout = dirname(in_checkout(page.file.src_uri))

    def moved(match: re.Match[str]) -> str:
        return relpath(in_site(normpath(join(checkout, match[1]))), here or ".")

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)

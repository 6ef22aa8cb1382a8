"""The files that browsers load: small, unchanged where others have written them, and texts in one file."""

import re
from hashlib import sha256
from pathlib import Path

import pytest
from aiohttp import ClientSession

from admitter.web.static_files import STATIC, static_files
from tests.web.pages import served

VENDORED = {
    "preact.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
    "htm.js": "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
    "uplot.js": "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
MOST_KIB = 200
OWN = sorted(
    path for path in STATIC.rglob("*.js") if path.parent.name != "vendor" and path.name != "words.js"
)
MARKUP = re.compile(r"<code>.*?</code>|\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|<[^>]*>", re.DOTALL)


def test_vendored_files_are_as_their_authors_released_them() -> None:
    """Their licences are beside them."""
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    for name, digest in VENDORED.items():
        assert sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest
        assert name in licences
    there = {path.name for path in (STATIC / "vendor").iterdir()}
    assert there == {*VENDORED, "LICENSES.txt"}


def test_a_first_look_at_any_view_loads_little() -> None:
    """At most this much is loaded if all of it is."""
    assert sum(len(file.packed) for file in static_files().values()) <= MOST_KIB * 1024


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_texts_are_in_one_file(path: Path) -> None:
    """A template has markup, names and expressions, but no words of its own."""
    templates = re.findall(r"html`(.*?)`", path.read_text(), re.DOTALL)
    for template in templates:
        texts = re.sub(
            r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|<[^>]*>|<code>.*?</code>", " ", template, flags=re.DOTALL
        )
        assert not re.search(r"\b[A-Z]?[a-z]{3,} [a-z]{2,} [a-z]{2,}", texts), texts


def test_what_is_imported_is_used_and_what_is_exported_is_imported() -> None:
    """Tests import what they need of a module by themselves."""
    sources = {f"/{path.relative_to(STATIC)}": path.read_text() for path in (*OWN, STATIC / "lib/words.js")}
    imported = {(module, name) for source in sources.values() for name, module in _imports(source)}
    imported |= {("/lib/axis.js", name) for name in ("relative", "relativeTicks")}
    for path, source in sources.items():
        for name, _ in _imports(source):
            assert len(re.findall(rf"(?<![\w.]){name}\b", source)) > 1, f"{path} does not use {name}"
        for name in re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", source, re.MULTILINE):
            assert (path, name) in imported, f"no module uses {name} of {path}"


def _imports(source: str) -> list[tuple[str, str]]:
    """The names that a module imports, each with the module that it is of."""
    found = re.findall(r'^import \{([^}]*)\} from "([^"]*)"', source, re.MULTILINE)
    return [(name, module) for names, module in found for name in re.findall(r"\w+", names)]


def test_templates_are_those_that_keep_nothing() -> None:
    """The bundle's are used by no module but the one that replaces them."""
    users = [path.name for path in OWN if '"/vendor/preact.js"' in path.read_text()]
    assert users == ["preact.js"]


async def test_files_are_compressed_and_told_apart() -> None:
    async with served(None) as page, ClientSession(page.address, auto_decompress=False) as client:
        async with client.get("/app.js", headers={"Accept-Encoding": "gzip"}) as answer:
            packed, tag = await answer.read(), answer.headers["ETag"]
            assert answer.headers["Content-Encoding"] == "gzip"
        async with client.get("/app.js", headers={"Accept-Encoding": "identity"}) as answer:
            assert len(packed) < len(await answer.read())
        async with client.get("/app.js", headers={"If-None-Match": tag}) as answer:
            assert answer.status == 304
        async with client.get("/vendor/../../server.py") as answer:
            assert answer.status == 404

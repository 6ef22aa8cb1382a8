"""Words that the prose of the repository avoids: `python -m tools.words` finds them, file by file.

docs/glossary.md is the only source of what to find: its tables of banned words and of retired terms, each
with the better word. Code in Markdown, addresses of links and whatever a generator writes are left out.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tools.docs.pages import MARK

ROOT: Final = Path(__file__).parents[1]
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
FOLDERS: Final = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "tools"),
    *("admitter", "manifests", "deploy", "benchmarks", "tests"),
)
"""What has to be free of these words."""
RECORDED: Final = "tests/releases"
"""Objects and definitions of earlier releases: they stay as they were."""
SECTIONS: Final = ("Banned words", "Retired terms")
"""Headings of the tables in the glossary."""

_ROW: Final = re.compile(r"^\| (`.*`) \| (.+) \|$", re.MULTILINE)
_FENCE: Final = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_TARGET: Final = re.compile(r"\]\([^)\s]*\)|<[a-z/][^>]*>|https?://\S+")
_FIELD: Final = re.compile(r"\{[^{}]*\}")
_ESCAPE: Final = re.compile(r"\\[a-z]")
_PREFIX: Final = re.compile(r"^[a-zA-Z]*")
_WORD: Final = re.compile(r"(?P<quote>['\"])\w+(?P=quote)")
_TEXT: Final = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


class Found(NamedTuple):
    """A word that has a better one."""

    path: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}: better {self.better}"


def terms(glossary: str) -> dict[str, str]:
    """Words to find, in lower case, each with the better one.

    Args:
        glossary: the text of docs/glossary.md.

    Raises:
        ValueError: a table is missing.
    """
    better: dict[str, str] = {}
    for heading in SECTIONS:
        section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", glossary, re.MULTILINE | re.DOTALL)
        rows = _ROW.findall(section[1]) if section else []
        if not rows:
            raise ValueError(f"docs/glossary.md has no table under the heading {heading}")
        for words, instead in rows:
            better |= dict.fromkeys((word.lower() for word in re.findall(r"`([^`]+)`", words)), instead)
    return better


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces in place of what matches, so that lines keep their numbers."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def of_markdown(text: str) -> Iterator[tuple[int, str]]:
    """The prose, and the number of its first line."""
    prose = text.partition(MARK)[0]
    for pattern in (_FENCE, _CODE, _TARGET):
        prose = blanked(pattern, prose)
    yield 1, prose


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and string literals, each with the number of its first line.

    A literal of one word is left out: the key of a field, a reason, the name of a log event.
    """
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    solid = [token for token in tokens if token.type not in {tokenize.NL, tokenize.COMMENT}]
    names = {
        token.start
        for before, token, after in zip(solid, solid[1:], solid[2:], strict=False)
        if _WORD.fullmatch(token.string) and tokenize.STRING not in {before.type, after.type}
    }
    for token in tokens:
        if token.type not in _TEXT or token.start in names:
            continue
        prose = token.string
        if token.type == tokenize.STRING:
            prefix = _PREFIX.findall(prose)[0]
            prose = " " * len(prefix) + prose[len(prefix) :]
            if "f" in prefix.lower():
                prose = blanked(_FIELD, prose)
        for pattern in (_CODE, _TARGET, _ESCAPE):
            prose = blanked(pattern, prose)
        yield token.start[0], prose


def of_text(text: str) -> Iterator[tuple[int, str]]:
    """Any other file, and the number of its first line."""
    yield 1, blanked(_TARGET, text)


READERS: Final = {".md": of_markdown, ".py": of_python, ".yaml": of_text}


def found(path: str, text: str, better: Mapping[str, str]) -> Iterator[Found]:
    """Words of one file that have a better one."""
    # Of two terms that begin alike the longer one is meant; a line may end inside a term.
    listed = [r"\s+".join(map(re.escape, term.split())) for term in sorted(better, key=len, reverse=True)]
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(listed)})(?![\w-])", re.IGNORECASE)
    for first, prose in READERS[Path(path).suffix](text):
        for match in pattern.finditer(prose):
            word = " ".join(match[0].split())
            yield Found(path, first + prose.count("\n", 0, match.start()), word, better[word.lower()])


def files(name: str, root: Path) -> list[Path]:
    """A file, or the files below a folder that can be read."""
    top = root / name
    every = [top] if top.is_file() else sorted(top.rglob("*"))
    kept = (path for path in every if not path.is_relative_to(root / RECORDED))
    return [path for path in kept if path.suffix in READERS and path.is_file()]


def below(name: str, root: Path, better: Mapping[str, str]) -> list[Found]:
    """What is found in a file or folder of a checkout."""
    return [
        each
        for path in files(name, root)
        for each in found(path.relative_to(root).as_posix(), path.read_text(), better)
    ]


def main(root: Path = ROOT) -> int:
    """Print what is found in FOLDERS of a checkout; returns 1 if they are not free of these words."""
    better = terms((root / "docs" / "glossary.md").read_text())
    wrong = [each for name in FOLDERS for each in below(name, root, better)]
    sys.stdout.writelines(f"{each}\n" for each in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

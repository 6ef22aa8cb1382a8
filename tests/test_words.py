"""The check of words finds them in prose, names the better one, and leaves code alone."""

from pathlib import Path

import pytest

from tools import words
from tools.docs.pages import MARK

BETTER = words.terms(words.GLOSSARY.read_text())
GLOSSARY = """# Glossary

## Retired terms

| retired | write instead |
|---|---|
| `gizmo`, `gizmos` | device |

## Banned words

| banned | write instead |
|---|---|
| `foo bar` | baz |
| `foo` | qux |
"""


def found(path: str, text: str) -> list[tuple[int, str, str]]:
    return [(each.line, each.word, each.better) for each in words.found(path, text, words.terms(GLOSSARY))]


def test_terms_are_those_of_the_tables_of_the_glossary() -> None:
    assert words.terms(GLOSSARY) == {"gizmo": "device", "gizmos": "device", "foo bar": "baz", "foo": "qux"}
    assert len(BETTER) > 40


@pytest.mark.parametrize("heading", words.SECTIONS)
def test_a_glossary_without_a_table_is_an_error(heading: str) -> None:
    with pytest.raises(ValueError, match=f"heading {heading}"):
        words.terms(GLOSSARY.replace(f"## {heading}", "## Else"))


@pytest.mark.parametrize("word", BETTER)
def test_each_listed_word_is_found_in_any_case(word: str) -> None:
    for written in (word, word.upper(), word.capitalize()):
        (one,) = words.found("page.md", f"First line.\nThen {written}, and more.\n", BETTER)
        assert (one.line, one.word, one.better) == (2, written, BETTER[word])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A Gizmo.\nTwo gizmos.", [(1, "Gizmo", "device"), (2, "gizmos", "device")]),
        ("A foo bar, a foo.", [(1, "foo bar", "baz"), (1, "foo", "qux")]),
        ("A line ends in foo\n  bar", [(1, "foo bar", "baz")]),
        ("gizmology, ungizmo, gizmo-like", []),
        ("`gizmo` and ``a ` gizmo`` and\n```\ngizmo\n```\nthen gizmo", [(5, "gizmo", "device")]),
        ("1. A list:\n   ```sh\n   gizmo\n   ```\n   gizmo", [(5, "gizmo", "device")]),
        ("[gizmo](gizmo.md#gizmo)", [(1, "gizmo", "device")]),
        ('<a id="gizmo"></a>\nhttps://example.com/gizmo', []),
        (f"gizmo\n{MARK}gizmo\n", [(1, "gizmo", "device")]),
    ],
)
def test_markdown(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert found("page.md", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gizmo = foo  # a gizmo", [(1, "gizmo", "device")]),
        ('"""One.\n\nA foo of `gizmo`.\n"""\n', [(3, "foo", "qux")]),
        ('x = "a gizmo"\ny = (\n    "a "\n    "foo"\n)\n', [(1, "gizmo", "device"), (4, "foo", "qux")]),
        ('x = f"{gizmo} is a gizmo"\n', [(1, "gizmo", "device")]),
        ('x = rf"a {foo!r} of\\ngizmo"\n', [(1, "gizmo", "device")]),
        ("def gizmo(foo): ...\n", []),
        ('log.info("gizmo", foo=x["foo"])\n', []),
        ("reason = 'Gizmo'\n", []),
    ],
)
def test_python(text: str, expected: list[tuple[int, str, str]]) -> None:
    assert found("module.py", text) == expected


def test_yaml() -> None:
    assert found("rules.yaml", "a: 1  # a gizmo\n# foo\n") == [(1, "gizmo", "device"), (2, "foo", "qux")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the glossary above, and pages that are in order."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(GLOSSARY)
    (tmp_path / "README.md").write_text("In order.\n")
    return tmp_path


def test_a_wrong_word_fails_with_file_line_and_better_word(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words.main(checkout) == 0
    (checkout / "docs" / "page.md").write_text("One.\nA gizmo.\n")
    assert words.main(checkout) == 1
    assert capsys.readouterr().out == "docs/page.md:2: gizmo: better device\n"


def test_objects_of_earlier_releases_stay_as_they_were(checkout: Path) -> None:
    for name, status in (("releases", 0), ("cluster", 1)):
        folder = checkout / "tests" / name
        folder.mkdir(parents=True)
        (folder / "objects.yaml").write_text("# a gizmo\n")
        assert words.main(checkout) == status


def test_each_folder_is_in_the_checkout() -> None:
    assert [name for name in words.FOLDERS if not (words.ROOT / name).exists()] == []

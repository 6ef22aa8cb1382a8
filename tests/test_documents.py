"""Manifests as users keep them: what is no manifest is said, whatever it is."""

import json
import re
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from admitter import documents
from admitter.documents import ManifestError, parsed, without_nulls

ROOT = Path(__file__).parents[1]


class InPython(documents._Rules, yaml.SafeLoader):
    """What reads where there is no libyaml."""


@pytest.fixture(params=["libyaml", "python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers, one after the other."""
    if request.param == "python":
        monkeypatch.setattr(documents, "_Loader", InPython)
    return str(request.param)


def read(text: str) -> list[object]:
    return [document for _, document in parsed("here", text)]


def bomb(levels: int) -> str:
    """A list of ten aliases of a list of ten aliases, and so on."""
    lines = ["a0: &a0 x"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


def merging_bomb(levels: int) -> str:
    """The same by merged maps, which are written out while they are read."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {{<<: [{aliases}]}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spec: &a {namespaceSelector: *a}", "here: line 1: has an alias of itself"),
        ("x: 1\nlist: &a\n- - *a", "here: line 2: has an alias of itself"),
        ("[" * 3000 + "]" * 3000, "here: is nested more than 100 levels deep"),
        ("[" * 101 + "]" * 101, "here: is nested more than 100 levels deep"),
        (bomb(40), "here: its aliases stand for more than 1000000 values"),
        (merging_bomb(40), "here: its aliases stand for more than 1000000 values"),
        ("a: [", "here: is no YAML"),
        ("a: !!int x", "here: is no YAML"),
        ("a: !!bool x", "here: is no YAML"),
        ("a: 1" + "0" * 5000, "here: is no YAML"),
        ("a: !!set {x}", "here: is no YAML"),
        ("a: !!timestamp x", "here: is no YAML"),
        ("- " * 200_000, "here: is nested more than 100 levels deep"),
        ("{a: " * 200_000, "here: is nested more than 100 levels deep"),
        ("? " * 200_000, "here: is nested more than 100 levels deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "here: is nested more than 100 levels deep"),
        ("a: {? [1] : 2}", "here: is no YAML"),
        ("a: {null: 2}", "here: is no YAML"),
        ("a: 1\nb: .inf", "here: is no YAML: line 2: is no float: JSON has no such number"),
        ("a: 1\nb: 1" + "0" * 400, "here: is no YAML: line 2: is no int: "),
    ],
    ids=[
        "alias of itself",
        "alias of a list above",
        "very deep",
        "a level too deep",
        "aliases of aliases",
        "merged aliases",
        "no YAML",
        "no number",
        "no truth value",
        "a number without end",
        "a set",
        "a time",
        "lists without end",
        "maps without end",
        "keys without end",
        "very deep JSON",
        "a list as a key",
        "nothing as a key",
        "no end",
        "no number of JSON",
    ],
)
@pytest.mark.usefixtures("loader")
def test_what_can_not_be_read_is_said_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(text)
    assert str(caught.value).startswith(says)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("kind: Job\nspec: a: b\n", ['in "here", line 2, column 8', "    spec: a: b\n           ^"]),
        ("a: 1\n---\nb: {c: d\n", ['in "here", line 3, column 4', "    b: {c: d"]),
        ('{"kind": "Job",\n "spec": {"a": 1,, }}', ['in "here", line 2', '"spec": {"a": 1,, }}']),
        ("é: é\nb: \x1b", ["line 2: unacceptable character #x001b"]),
        ("a: 1\nb: !!int é", ["line 2: is no int: "]),
        ("a: 1\nb: !!bool é", ["line 2: is no bool: "]),
        ("a: 1\nb: !file é", ['in "here", line 2, column 4', "    b: !file é\n       ^"]),
    ],
    ids=["of two maps", "open", "of JSON", "a control character", "no number", "no truth value", "a tag"],
)
def test_what_is_wrong_is_said_with_the_line_and_what_stands_there(text: str, parts: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        read(text)
    assert [part for part in ["here: is no YAML: ", *parts] if part not in str(caught.value)] == []


def plainly(text: str) -> list[Any]:
    """As PyYAML reads YAML by itself, but for times."""

    class Plain(yaml.SafeLoader):
        yaml_implicit_resolvers = InPython.yaml_implicit_resolvers

    return [as_json(without_nulls(each)) for each in yaml.load_all(text, Plain) if each is not None]


def as_json(value: Any) -> Any:
    """A value of YAML as JSON has it."""
    return json.loads(
        json.dumps(value), parse_float=lambda text: int(float(text)) if text.endswith(".0") else float(text)
    )


ODD = """
texts: [a, "b", 'c', "1", '', yes, no, on, "\\u00e9", =x, 1e3, 0o17, 1_0]
---
values: {int: 1, hex: 0x1F, old: 017, time: 1:30, float: 1.5, much: 1e+3, none: ~, empty: , yes: true}
? 1
: 2
1.5: x
twice: 1
twice: 2
gone: 1
gone: null
---
base: &base {a: 1, b: [x, null], c: null}
more: {<<: *base, a: 2}
same: *base
block: |
  a *b &c
folded: >-
  a
  b
---
plain
---
[a, {b: [{c: d}]}]
"""


def test_every_manifest_is_read_as_it_would_be_without_libyaml(loader: str) -> None:
    files = sorted(ROOT.glob("manifests/examples/*.yaml"))
    assert len(files) > 5
    for text in (ODD, *(file.read_text() for file in files)):
        assert repr(list(documents._loaded(text))) == repr(plainly(text)), loader


def test_json_is_read_as_its_yaml_is() -> None:
    given = [plainly(path.read_text())[0] for path in sorted(ROOT.glob("crds/*.yaml"))]
    for document in (*given, {"kind": "List", "items": given}, [1, 2.5, "é", True, {"a": None, "b": [None]}]):
        text = json.dumps(document)
        assert list(documents._loaded(text)) == plainly(text)
    assert read("{a: b}\n---\n[c]") == [{"a": "b"}, ["c"]], "which only begins like JSON"


def test_standard_input_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a: \xff"), encoding="utf-8"))
    ((place, found),) = documents.documents(["-"])
    assert place == "standard input"
    assert isinstance(found, ManifestError)
    assert re.fullmatch(r"can't be read: .*utf-8.*", str(found))


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("a: [", "is no YAML: line [45], column [15]: .*flow"),
        ("b: a: b", "is no YAML: line 4, column 5: mapping values are not allowed"),
        ("b: .inf", "is no YAML: line 4: is no float: JSON has no such number"),
        ("- &a [*a]", "line 4: has an alias of itself in it"),
        ("b: \x1b", "is no YAML: line 4: unacceptable character #x001b"),
        ("[" * 200, "is nested more than 100 levels deep"),
        ("? [a]\n: b", "is no YAML: line 4, column 3: .*a key that is no text"),
    ],
    ids=["open", "two maps", "no number", "an alias", "a control character", "deep", "a list as a key"],
)
def test_a_document_that_can_not_be_read_harms_no_other(tmp_path: Path, broken: str, says: str) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(f"kind: First\n---\n---\n{broken}\n--- # the last\nkind: Last\ntext: |\n  ---\n")
    (_, first), (place, error), (last_place, last) = documents.documents([str(path)])
    assert (first, last) == ({"kind": "First"}, {"kind": "Last", "text": "---\n"})
    assert (place, last_place) == (f"{path}: document 3", f"{path}: document 4")
    assert isinstance(error, ManifestError)
    assert re.match(says, str(error)), error
    assert "\n" not in str(error)


@pytest.mark.usefixtures("loader")
def test_aliases_stand_for_what_they_name() -> None:
    assert read("{a: &a {x: 1}, b: *a, c: {<<: *a, y: 2}}") == [
        {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    ]
    assert len(read("---\na: 1\n---\n---\nb: 2013-01-01\n")) == 2


@pytest.mark.usefixtures("loader")
def test_a_hundred_levels_are_not_too_deep() -> None:
    assert read("[" * 100 + "]" * 100)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("item", "says"),
    [
        (
            "kind: Job, metadata: {namespace: a, name: b}, spec: {x: [1, .inf]}",
            "items[1] (Job a/b): spec.x[1]: line 4: is no float: JSON has no such number",
        ),
        ("kind: Job, metadata: {name: .nan}", "items[1]: metadata.name: line 4: is no float"),
        (
            "kind: Job, spec: {a: {? [b] : c}}",
            "items[1]: spec.a: line 4, column 28: while constructing a mapping",
        ),
        ("kind: List, items: [{kind: A}, {b: !!int x}]", "items[1].items[1]: b: line 4: is no int"),
    ],
    ids=["a number", "a name", "a key", "a list in a list"],
)
def test_an_object_that_can_not_be_read_harms_no_other_of_its_list(item: str, says: str) -> None:
    found = read(f"kind: List\nitems:\n- {{kind: First}}\n- {{{item}}}\n- {{kind: Last}}\n")
    assert (found[0], found[-1]) == ({"kind": "First"}, {"kind": "Last"})
    (error,) = [each for each in found if isinstance(each, ManifestError)]
    assert str(error).startswith(says)


def test_objects_without_a_name_get_the_first_number_that_is_free() -> None:
    given = [
        {"metadata": {"generateName": "a-"}},
        {"metadata": {"name": "a-1", "namespace": "default"}},
        {"metadata": {"generateName": "a-"}},
        {"metadata": {"generateName": "a-", "namespace": "other"}},
        {"metadata": {"generateName": "a-", "name": "named"}},
        {"metadata": {"generateName": 5}},
        {"metadata": "a-"},
        ManifestError("can't be read"),
    ]
    assert documents.generated_names(given) == {0: "a-2", 2: "a-3", 3: "a-1"}


def test_each_number_is_tried_once_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def counted(start: int) -> Iterator[int]:
        nonlocal tried
        for number in count(start):
            tried += 1
            yield number

    monkeypatch.setattr(documents, "count", counted)
    given = [{"metadata": {"generateName": prefix}} for prefix in ("a-", "b-") * 100]
    assert documents.generated_names(given)[199] == "b-100"
    assert tried == 200
